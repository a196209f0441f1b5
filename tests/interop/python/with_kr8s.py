"""kr8s."""

import kr8s
from common import *
from kr8s.objects import CustomResourceDefinition, Deployment, new_class, object_from_spec

api = kr8s.api(kubeconfig=KUBECONFIG, namespace=NAMESPACE)
Gadget = new_class(KIND, version=API_VERSION, namespaced=True, plural=PLURAL)


def define():
    crd = CustomResourceDefinition(DEFINITION, api=api)
    crd.create()
    # Its wait() cannot read the conditions before there are any: a server answers null first.
    while not crd.status.get("conditions"):
        crd.refresh()
    crd.wait("condition=Established", timeout=30)


def conflicts():
    made = Gadget(gadget("counter"), api=api)
    made.create()
    assert made.exists()
    stale = Gadget.get("counter", api=api)
    made.patch({"spec": {"count": 1}})
    body = {"metadata": {"resourceVersion": stale.metadata.resourceVersion}, "spec": {"count": 9}}
    try:
        stale.patch(body)
        raise AssertionError("a stale write was taken")
    except kr8s.ServerError as error:
        assert error.response.status_code == 409
    stale.refresh()
    stale.patch({"metadata": {"resourceVersion": stale.metadata.resourceVersion}, "spec": {"count": 2}})
    assert Gadget.get("counter", api=api).spec.count == 2


def status():
    made = Gadget.get("counter", api=api)
    made.patch({"status": {"seen": 1}}, subresource="status")
    assert made.status.seen == 1


def patches():
    made = Gadget.get("counter", api=api)
    made.patch([{"op": "add", "path": "/spec/note", "value": "added"}], type="json")
    assert made.spec.note == "added"
    made.label({"a": "b"})
    assert [item.name for item in api.get(Gadget, label_selector={"a": "b"})] == ["counter"]
    workload = Deployment(deployment("kr8s"), api=api)
    workload.create()
    workload.patch({"spec": {"replicas": 3}})
    assert workload.replicas == 3


def pages():
    for number in range(OBJECTS):
        Gadget(gadget(f"page-{number}"), api=api).create()
    names = [item.name for item in api.get(Gadget)]
    assert len(set(names)) == len(names) >= OBJECTS


def watches():
    for kind, item in api.watch(Gadget, namespace=NAMESPACE):
        assert kind == "ADDED" and item.name
        break


def lease():
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kr8s"}, "spec": spec}
    made = object_from_spec(body, api=api, allow_unknown_type=True)
    made.create()
    made.patch({"spec": {"holderIdentity": "b"}})
    made.refresh()
    assert made.spec.holderIdentity == "b"


def delete():
    made = Gadget.get("counter", api=api)
    made.delete()
    made.wait("delete", timeout=30)
    assert not made.exists()


for step in (define, conflicts, status, patches, pages, watches, lease, delete):
    step()
    done(step.__name__)
