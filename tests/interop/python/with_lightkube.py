"""lightkube."""

import threading

from common import *
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.coordination_v1 import Lease
from lightkube.types import PatchType

client = Client(KubeConfig.from_file(KUBECONFIG), namespace=NAMESPACE, field_manager="one")
Gadget = create_namespaced_resource(GROUP, VERSION, KIND, PLURAL)


def define():
    client.create(CustomResourceDefinition.from_dict(DEFINITION))
    client.wait(CustomResourceDefinition, DEFINITION["metadata"]["name"], for_conditions=["Established"])


def increment(name):
    while True:
        current = client.get(Gadget, name)
        current.spec["count"] += 1
        try:
            client.replace(current)
            return
        except ApiError as error:
            if error.status.code != 409:
                raise


def conflicts():
    first = client.create(Gadget.from_dict(gadget("counter")))
    threads = [
        threading.Thread(target=lambda: [increment("counter") for _ in range(INCREMENTS)]) for _ in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(Gadget, "counter").spec["count"] == WRITERS * INCREMENTS
    try:
        client.replace(first)
        raise AssertionError("a stale write was taken")
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (409, "Conflict")


def status():
    body = {"spec": {"count": 99}, "status": {"seen": 1}}
    changed = client.patch(Gadget.Status, "counter", body, patch_type=PatchType.MERGE)
    assert changed.status == {"seen": 1} and changed.spec["count"] != 99


def patches():
    merged = client.patch(Gadget, "counter", {"spec": {"note": "merged"}}, patch_type=PatchType.MERGE)
    assert merged.spec["note"] == "merged"
    operations = [{"op": "replace", "path": "/spec/note", "value": "replaced"}]
    assert client.patch(Gadget, "counter", operations, patch_type=PatchType.JSON).spec["note"] == "replaced"
    client.create(Deployment.from_dict(deployment("lightkube")))
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}}}
    changed = client.patch(Deployment, "lightkube", body)
    [container] = changed.spec.template.spec.containers
    assert (container.image, container.ports[0].containerPort) == ("example.com/c:2", 80)


def apply():
    for _ in range(2):
        made = client.apply(Gadget.from_dict(gadget("applied", 1)))
    assert made.metadata.managedFields[0].manager == "one"
    try:
        client.apply(Gadget.from_dict(gadget("applied", 2)), field_manager="two")
        raise AssertionError("a field of another's was taken")
    except ApiError as error:
        assert error.status.code == 409 and "spec.count" in error.status.message


def pages():
    for number in range(OBJECTS):
        client.create(Gadget.from_dict(gadget(f"page-{number}")))
    seen = [item.metadata.name for item in client.list(Gadget, chunk_size=PAGE)]
    assert len(set(seen)) == len(seen) >= OBJECTS


def watches():
    listed = client.list(Gadget)
    assert [item.metadata.name for item in listed]
    old = listed.resourceVersion
    client.create(Gadget.from_dict(gadget("watched")))
    for kind, item in client.watch(Gadget, resource_version=old):
        assert (kind, item.metadata.name) == ("ADDED", "watched")
        break
    client.delete(Gadget, "watched")
    compact()
    try:
        for _ in client.watch(Gadget, resource_version=old):
            raise AssertionError("told of what is forgotten")
    except ApiError as error:
        assert error.status.code == 410


def lease():
    spec = LeaseSpec(holderIdentity="a", leaseDurationSeconds=15)
    made = client.create(Lease(metadata=ObjectMeta(name="lightkube", namespace=NAMESPACE), spec=spec))
    made.spec.holderIdentity = "b"
    assert client.replace(made).spec.holderIdentity == "b"


for step in (define, conflicts, status, patches, apply, pages, watches, lease):
    step()
    done(step.__name__)
