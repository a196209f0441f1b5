"""kubernetes_asyncio."""

import asyncio

from common import *
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.dynamic import DynamicClient

PLACE = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": PLURAL}


async def define(api):
    extensions = client.ApiextensionsV1Api(api)
    await extensions.create_custom_resource_definition(DEFINITION)
    async with watch.Watch().stream(extensions.list_custom_resource_definition, timeout_seconds=30) as events:
        async for event in events:
            conditions = event["object"].status.conditions or []
            if any(c.type == "Established" and c.status == "True" for c in conditions):
                return
    raise AssertionError("never established")


async def increment(custom, name):
    while True:
        current = await custom.get_namespaced_custom_object(**PLACE, name=name)
        current["spec"]["count"] += 1
        try:
            await custom.replace_namespaced_custom_object(**PLACE, name=name, body=current)
            return
        except ApiException as error:
            if error.status != 409:
                raise


async def conflicts(api):
    custom = client.CustomObjectsApi(api)
    first = await custom.create_namespaced_custom_object(**PLACE, body=gadget("counter"))

    async def writer():
        for _ in range(INCREMENTS):
            await increment(custom, "counter")

    await asyncio.gather(*(writer() for _ in range(WRITERS)))
    current = await custom.get_namespaced_custom_object(**PLACE, name="counter")
    assert current["spec"]["count"] == WRITERS * INCREMENTS
    try:
        await custom.replace_namespaced_custom_object(**PLACE, name="counter", body=first)
        raise AssertionError("a stale write was taken")
    except ApiException as error:
        assert (error.status, error.reason) == (409, "Conflict")


async def status(api):
    custom = client.CustomObjectsApi(api)
    current = await custom.get_namespaced_custom_object(**PLACE, name="counter")
    body = {**current, "spec": {"count": 99}, "status": {"seen": 1}}
    changed = await custom.replace_namespaced_custom_object_status(**PLACE, name="counter", body=body)
    assert changed["status"] == {"seen": 1} and changed["spec"]["count"] != 99


async def patches(api):
    custom = client.CustomObjectsApi(api)
    merged = await custom.patch_namespaced_custom_object(
        **PLACE, name="counter", body={"spec": {"note": "merged"}}, _content_type="application/merge-patch+json"
    )
    assert merged["spec"]["note"] == "merged"
    operations = [{"op": "replace", "path": "/spec/note", "value": "replaced"}]
    patched = await custom.patch_namespaced_custom_object(**PLACE, name="counter", body=operations)
    assert patched["spec"]["note"] == "replaced"
    apps = client.AppsV1Api(api)
    await apps.create_namespaced_deployment(NAMESPACE, deployment("asyncio"))
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}}}
    changed = await apps.patch_namespaced_deployment("asyncio", NAMESPACE, body)
    [container] = changed.spec.template.spec.containers
    assert (container.image, container.ports[0].container_port) == ("example.com/c:2", 80)


async def apply(api):
    resources = await DynamicClient(api)
    kind = await resources.resources.get(api_version=API_VERSION, kind=KIND)
    place = {"name": "applied", "namespace": NAMESPACE}
    for _ in range(2):
        made = await resources.server_side_apply(kind, body=gadget("applied", 1), field_manager="one", **place)
    assert made.metadata.managedFields[0].operation == "Apply"  # this client does not pass the manager on


async def pages(api):
    custom = client.CustomObjectsApi(api)
    for number in range(OBJECTS):
        await custom.create_namespaced_custom_object(**PLACE, body=gadget(f"page-{number}"))
    seen, token = [], None
    while token != "":
        page = await custom.list_namespaced_custom_object(**PLACE, limit=PAGE, _continue=token or "")
        assert len(page["items"]) <= PAGE
        seen += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert len(set(seen)) == len(seen) >= OBJECTS


async def watches(api):
    custom = client.CustomObjectsApi(api)
    listed = await custom.list_namespaced_custom_object(**PLACE)
    old = listed["metadata"]["resourceVersion"]
    await custom.create_namespaced_custom_object(**PLACE, body=gadget("watched"))
    async with watch.Watch().stream(custom.list_namespaced_custom_object, **PLACE, resource_version=old) as events:
        async for event in events:
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")
            break
    await custom.delete_namespaced_custom_object(**PLACE, name="watched")
    compact()
    try:
        async with watch.Watch().stream(custom.list_namespaced_custom_object, **PLACE, resource_version=old) as events:
            async for _ in events:
                raise AssertionError("told of what is forgotten")
    except ApiException as error:
        assert error.status == 410


async def lease(api):
    leases = client.CoordinationV1Api(api)
    spec = client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15)
    body = client.V1Lease(metadata=client.V1ObjectMeta(name="asyncio"), spec=spec)
    made = await leases.create_namespaced_lease(NAMESPACE, body)
    made.spec.holder_identity = "b"
    changed = await leases.replace_namespaced_lease("asyncio", NAMESPACE, made)
    assert changed.spec.holder_identity == "b"


async def main():
    await config.load_kube_config(KUBECONFIG)
    async with client.ApiClient() as api:
        for step in (define, conflicts, status, patches, apply, pages, watches, lease):
            await step(api)
            done(step.__name__)


asyncio.run(main())
