"""kopf: an operator, its finalizers, timers and retries."""

import threading

import kopf
from common import *
from kubernetes import client, config

config.load_kube_config(KUBECONFIG)
custom = client.CustomObjectsApi()
PLACE = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": PLURAL}
happened = {name: threading.Event() for name in ("created", "updated", "deleted", "ticked", "retried")}


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = True
    settings.persistence.finalizer = "interop.example.com/kopf"


@kopf.on.create(GROUP, VERSION, PLURAL)
def created(spec, patch, retry, **_):
    if not retry:
        raise kopf.TemporaryError("once more", delay=0.1)
    happened["retried"].set()
    patch.status["seen"] = spec["count"]
    happened["created"].set()


@kopf.on.field(GROUP, VERSION, PLURAL, field="spec.count")
def updated(old, new, **_):
    if (old, new) == (1, 2):
        happened["updated"].set()


@kopf.on.delete(GROUP, VERSION, PLURAL)
def deleted(**_):
    happened["deleted"].set()


@kopf.timer(GROUP, VERSION, PLURAL, interval=0.1)
def ticked(**_):
    happened["ticked"].set()


def until(name):
    assert happened[name].wait(60), name
    done(name)


client.ApiextensionsV1Api().create_custom_resource_definition(DEFINITION)
done("define")
stop, ready = threading.Event(), threading.Event()
operator = threading.Thread(
    target=kopf.run,
    kwargs={"namespaces": [NAMESPACE], "standalone": True, "ready_flag": ready, "stop_flag": stop},
    daemon=True,
)
operator.start()
assert ready.wait(60)
while True:
    try:
        custom.create_namespaced_custom_object(**PLACE, body=gadget("a", 1))
        break
    except client.exceptions.ApiException as error:
        assert error.status == 404, error
until("retried")
until("created")
custom.patch_namespaced_custom_object(**PLACE, name="a", body={"spec": {"count": 2}})
until("updated")
until("ticked")
custom.delete_namespaced_custom_object(**PLACE, name="a")
until("deleted")
stop.set()
operator.join(60)
assert not operator.is_alive()
done("stopped")
