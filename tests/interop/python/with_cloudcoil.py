"""cloudcoil: typed resources."""

import threading
from typing import Annotated, Literal

from cloudcoil.apimachinery import ObjectMeta
from cloudcoil.client import Config
from cloudcoil.errors import APIError, ResourceConflict, ResourceNotFound
from cloudcoil.pydantic import BaseModel
from cloudcoil.resources import Resource, get_dynamic_resource
from common import *
from pydantic import Field


class Spec(BaseModel):
    count: int = 0
    note: str | None = None


class Status(BaseModel):
    seen: int = 0


class Gadget(Resource):
    api_version: Annotated[Literal["interop.example.com/v1"], Field(alias="apiVersion")] = "interop.example.com/v1"
    kind: Literal["Gadget"] = "Gadget"
    metadata: ObjectMeta | None = None
    spec: Spec | None = None
    status: Status | None = None


def made(name, count=0):
    return Gadget(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=Spec(count=count))


def define():
    definition = get_dynamic_resource("CustomResourceDefinition", "apiextensions.k8s.io/v1")

    def established(event, each):
        conditions = each.raw.get("status", {}).get("conditions") or []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    definition.model_validate(DEFINITION).create().wait_for(established, timeout=60)
    config.refresh_api_resources()


def increment(name):
    """Read, change, write, and on a Conflict again."""
    while True:
        current = Gadget.get(name, NAMESPACE)
        current.spec.count += 1
        try:
            current.update()
            return
        except ResourceConflict:
            pass


def conflicts():
    first = made("counter").create()

    def work():
        with config:
            for _ in range(INCREMENTS):
                increment("counter")

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Gadget.get("counter", NAMESPACE).spec.count == WRITERS * INCREMENTS
    first.spec.count = 99
    for attempt, error in (
        (first.update, ResourceConflict),
        (made("counter").create, ResourceConflict),
        (made("nobody").fetch, ResourceNotFound),
        (made("bad", -1).create, APIError),
    ):
        try:
            attempt()
        except error:
            continue
        raise AssertionError(f"expected {error}")


def status():
    current = Gadget.get("counter", NAMESPACE)
    current.spec.count, current.status = 99, Status(seen=1)
    changed = current.update_status()
    assert changed.status.seen == 1 and changed.spec.count == WRITERS * INCREMENTS


def pages():
    for number in range(OBJECTS):
        made(f"page-{number}").create()
    page = Gadget.list(NAMESPACE, limit=PAGE)
    assert len(page.items) == PAGE and page.has_next_page()
    names = [each.name for each in page]
    assert len(set(names)) == len(names) >= OBJECTS


def watches():
    for kind, item in Gadget.watch(NAMESPACE):
        assert kind == "ADDED" and item.name
        break


def lease():
    kind = get_dynamic_resource("Lease", "coordination.k8s.io/v1")
    metadata = {"name": "cloudcoil", "namespace": NAMESPACE}
    held = kind(metadata=metadata, spec={"holderIdentity": "a", "leaseDurationSeconds": 15}).create()
    late = held.fetch()
    held["spec"]["holderIdentity"] = "b"
    held.update()
    late["spec"]["holderIdentity"] = "c"
    try:
        late.update()
    except ResourceConflict:
        return
    raise AssertionError("a lease was taken from its holder")


config = Config(kubeconfig=KUBECONFIG)
with config:
    for step in (define, conflicts, status, pages, watches, lease):
        step()
        done(step.__name__)
