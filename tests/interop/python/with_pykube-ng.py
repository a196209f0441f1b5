"""pykube-ng: all its writes are merge patches, so that a Conflict is one with the resourceVersion in the patch."""

import threading

import pykube
from common import *
from pykube.objects import NamespacedAPIObject

api = pykube.HTTPClient(pykube.KubeConfig.from_file(KUBECONFIG))


class Gadget(NamespacedAPIObject):
    version, kind, endpoint = API_VERSION, KIND, PLURAL


class Lease(NamespacedAPIObject):
    version, kind, endpoint = "coordination.k8s.io/v1", "Lease", "leases"


def define():
    definition = pykube.object_factory(api, "apiextensions.k8s.io/v1", DEFINITION["kind"])(api, DEFINITION)
    definition.create()
    for event in definition.watch():
        conditions = event.object.obj.get("status", {}).get("conditions") or []
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            break
    assert pykube.object_factory(api, API_VERSION, KIND).endpoint == PLURAL


def named(name):
    return Gadget.objects(api, namespace=NAMESPACE).get_by_name(name)


def increment(name):
    """Read, change, write, and on a Conflict again."""
    while True:
        current = named(name)
        current.obj["spec"]["count"] += 1
        try:
            current.update()
            return
        except pykube.exceptions.HTTPError as error:
            if error.code != 409:
                raise


def conflicts():
    Gadget(api, gadget("counter")).create()
    stale = named("counter")
    threads = [
        threading.Thread(target=lambda: [increment("counter") for _ in range(INCREMENTS)]) for _ in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert named("counter").obj["spec"]["count"] == WRITERS * INCREMENTS
    stale.obj["spec"]["count"] = 99
    try:
        stale.update()
        raise AssertionError("a stale write was taken")
    except pykube.exceptions.HTTPError as error:
        assert error.code == 409 and "the object has been modified" in str(error)
    try:
        Gadget(api, gadget("bad", -1)).create()
        raise AssertionError("a wrong object was taken")
    except pykube.exceptions.HTTPError as error:
        assert error.code == 422 and "spec.count" in str(error)


def status():
    current = named("counter")
    current.patch({"spec": {"count": 99}, "status": {"seen": 1}}, subresource="status")
    assert current.obj["status"] == {"seen": 1} and current.obj["spec"]["count"] == WRITERS * INCREMENTS


def patches():
    current = named("counter")
    current.patch({"spec": {"note": "merged"}})
    assert current.obj["spec"]["note"] == "merged"
    current.labels["a"] = "b"
    current.update()
    assert [each.name for each in Gadget.objects(api).filter(namespace=NAMESPACE, selector={"a": "b"})] == ["counter"]
    workload = pykube.Deployment(api, deployment("pykube"))
    workload.create()
    workload.scale(replicas=0)
    assert workload.obj["spec"]["replicas"] == 0


def watches():
    gadgets = Gadget.objects(api, namespace=NAMESPACE)
    old = gadgets.response["metadata"]["resourceVersion"]
    Gadget(api, gadget("watched")).create()
    for event in gadgets.watch(since=old):
        assert (event.type, event.object.name) == ("ADDED", "watched")
        break
    named("watched").delete()
    compact()
    # It knows no errors in a watch: what it is told is the object of an event.
    for event in gadgets.watch(since=old):
        assert (event.type, event.object.obj["code"]) == ("ERROR", 410)
        break
    table = Gadget.objects(api, namespace=NAMESPACE).as_table()
    assert [row["cells"][0] for row in table.rows] == ["counter"]


def lease():
    body = {
        "apiVersion": Lease.version,
        "kind": "Lease",
        "metadata": {"name": "pykube", "namespace": NAMESPACE},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
    }
    held = Lease(api, body)
    held.create()
    late = Lease.objects(api, namespace=NAMESPACE).get_by_name("pykube")
    held.obj["spec"]["holderIdentity"] = "b"
    held.update()
    late.obj["spec"]["holderIdentity"] = "c"
    try:
        late.update()
        raise AssertionError("a lease was taken from its holder")
    except pykube.exceptions.HTTPError as error:
        assert error.code == 409


for step in (define, conflicts, status, patches, watches, lease):
    step()
    done(step.__name__)
