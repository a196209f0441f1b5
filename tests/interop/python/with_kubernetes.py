"""The official client."""

import threading
import uuid

from common import *
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

config.load_kube_config(KUBECONFIG)
custom = client.CustomObjectsApi()
PLACE = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": PLURAL}


def define():
    api = client.ApiextensionsV1Api()
    api.create_custom_resource_definition(DEFINITION)
    for event in watch.Watch().stream(api.list_custom_resource_definition, timeout_seconds=30):
        conditions = event["object"].status.conditions or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            return
    raise AssertionError("never established")


def increment(name):
    """Read, change, write, and on a Conflict again."""
    while True:
        current = custom.get_namespaced_custom_object(**PLACE, name=name)
        current["spec"]["count"] += 1
        try:
            custom.replace_namespaced_custom_object(**PLACE, name=name, body=current)
            return
        except ApiException as error:
            if error.status != 409:
                raise


def conflicts():
    first = custom.create_namespaced_custom_object(**PLACE, body=gadget("counter"))
    threads = [
        threading.Thread(target=lambda: [increment("counter") for _ in range(INCREMENTS)]) for _ in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert custom.get_namespaced_custom_object(**PLACE, name="counter")["spec"]["count"] == WRITERS * INCREMENTS
    try:
        custom.replace_namespaced_custom_object(**PLACE, name="counter", body=first)
        raise AssertionError("a stale write was taken")
    except ApiException as error:
        assert (error.status, error.reason) == (409, "Conflict")
    try:
        custom.create_namespaced_custom_object(**PLACE, body=gadget("bad", -1))
        raise AssertionError("a wrong object was taken")
    except ApiException as error:
        assert error.status == 422 and "spec.count" in error.body


def status():
    current = custom.get_namespaced_custom_object(**PLACE, name="counter")
    body = {**current, "spec": {"count": 99}, "status": {"seen": 1}}
    changed = custom.replace_namespaced_custom_object_status(**PLACE, name="counter", body=body)
    assert changed["status"] == {"seen": 1} and changed["spec"]["count"] != 99


def patches():
    merged = custom.patch_namespaced_custom_object(**PLACE, name="counter", body={"spec": {"note": "merged"}})
    assert merged["spec"]["note"] == "merged"
    operations = [{"op": "replace", "path": "/spec/note", "value": "replaced"}]
    patched = custom.patch_namespaced_custom_object(
        **PLACE, name="counter", body=operations, _content_type="application/json-patch+json"
    )
    assert patched["spec"]["note"] == "replaced"
    apps = client.AppsV1Api()
    made = apps.create_namespaced_deployment(NAMESPACE, deployment("kubernetes"))
    assert made.spec.template.spec.containers[0].ports[0].protocol == "TCP"
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}}}
    changed = apps.patch_namespaced_deployment("kubernetes", NAMESPACE, body)
    [container] = changed.spec.template.spec.containers
    assert (container.image, container.ports[0].container_port) == ("example.com/c:2", 80)


def apply():
    resources = dynamic.DynamicClient(client.ApiClient())
    api = resources.resources.get(api_version=API_VERSION, kind=KIND)
    for _ in range(2):
        made = resources.server_side_apply(
            api, body=gadget("applied", 1), name="applied", namespace=NAMESPACE, field_manager="one"
        )
    assert made.metadata.managedFields[0].manager == "one"
    try:
        resources.server_side_apply(
            api, body=gadget("applied", 2), name="applied", namespace=NAMESPACE, field_manager="two"
        )
        raise AssertionError("a field of another's was taken")
    except dynamic.exceptions.ConflictError as error:
        assert "spec.count" in str(error.body)


def pages():
    for number in range(OBJECTS):
        custom.create_namespaced_custom_object(**PLACE, body=gadget(f"page-{number}"))
    seen, token = [], None
    while token != "":
        page = custom.list_namespaced_custom_object(**PLACE, limit=PAGE, _continue=token or "")
        assert len(page["items"]) <= PAGE
        seen += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert len(set(seen)) == len(seen) >= OBJECTS


def watches():
    old = custom.list_namespaced_custom_object(**PLACE)["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(**PLACE, body=gadget("watched"))
    stream = watch.Watch()
    for event in stream.stream(custom.list_namespaced_custom_object, **PLACE, resource_version=old):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")
        break
    custom.delete_namespaced_custom_object(**PLACE, name="watched")
    compact()
    try:
        for _ in watch.Watch().stream(custom.list_namespaced_custom_object, **PLACE, resource_version=old):
            raise AssertionError("told of what is forgotten")
    except ApiException as error:
        assert error.status == 410
    for event in watch.Watch().stream(custom.list_namespaced_custom_object, **PLACE, timeout_seconds=30):
        if event["object"]["metadata"]["name"] == "counter":
            return
    raise AssertionError("the list was not told anew")


def lease():
    led = threading.Event()
    lock = ConfigMapLock("kubernetes-lock", NAMESPACE, uuid.uuid4().hex)
    settings = electionconfig.Config(lock, 17, 15, 5, onstarted_leading=led.set, onstopped_leading=None)
    threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()
    assert led.wait(30)
    held = client.CoreV1Api().read_namespaced_config_map("kubernetes-lock", NAMESPACE)
    assert "holderIdentity" in held.metadata.annotations["control-plane.alpha.kubernetes.io/leader"]
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="kubernetes"),
        spec=client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15),
    )
    api = client.CoordinationV1Api()
    made = api.create_namespaced_lease(NAMESPACE, lease)
    made.spec.holder_identity = "b"
    assert api.replace_namespaced_lease("kubernetes", NAMESPACE, made).spec.holder_identity == "b"


for step in (define, conflicts, status, patches, apply, pages, watches, lease):
    step()
    done(step.__name__)
