"""easykube."""

import base64
import ssl
import threading

import yaml
from common import *
from easykube import ApiError, Configuration


def configuration():
    """Of kubeconfigs it reads those with certificates of users only: a token is told as it is in a Pod."""
    config = yaml.safe_load(Path(KUBECONFIG).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authorities = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Configuration(
        base_url=cluster["server"],
        headers={"Authorization": f"Bearer {user['token']}"},
        verify=ssl.create_default_context(cadata=authorities),
        default_namespace=NAMESPACE,
    )


client = configuration().sync_client(default_field_manager="easykube")


def define():
    definitions = client.api("apiextensions.k8s.io/v1").resource("customresourcedefinitions")
    made = client.create_object(DEFINITION)
    current, events = definitions.watch_one(made["metadata"]["name"])
    events = iter(events)
    while not any(
        each["type"] == "Established" and each["status"] == "True"
        for each in current.get("status", {}).get("conditions") or []
    ):
        current = next(events)["object"]


def gadgets():
    return client.api(API_VERSION).resource(PLURAL)


def increment(name):
    """Read, change, write, and on a Conflict again."""
    while True:
        current = gadgets().fetch(name)
        current["spec"]["count"] += 1
        try:
            client.replace_object(current)
            return
        except ApiError as error:
            if error.status_code != 409:
                raise


def refused(status, told, attempt, *arguments, **options):
    try:
        attempt(*arguments, **options)
    except ApiError as error:
        assert error.status_code == status and told in str(error), error
    else:
        raise AssertionError(f"expected {status}")


def conflicts():
    first = client.create_object(gadget("counter"))
    threads = [
        threading.Thread(target=lambda: [increment("counter") for _ in range(INCREMENTS)]) for _ in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gadgets().fetch("counter")["spec"]["count"] == WRITERS * INCREMENTS
    refused(409, "the object has been modified", client.replace_object, {**first, "spec": {"count": 99}})
    refused(422, "spec.count", client.create_object, gadget("bad", -1))
    refused(404, "not found", gadgets().fetch, "nobody")


def status():
    current = gadgets().fetch("counter")
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{PLURAL}/counter/status"
    changed = client.put(path, json={**current, "spec": {"count": 99}, "status": {"seen": 1}}).json()
    assert changed["status"] == {"seen": 1} and changed["spec"]["count"] == WRITERS * INCREMENTS


def patches():
    merged = gadgets().json_merge_patch("counter", {"spec": {"note": "merged"}})
    assert merged["spec"]["note"] == "merged"
    operations = [{"op": "replace", "path": "/spec/note", "value": "replaced"}]
    assert gadgets().json_patch("counter", operations)["spec"]["note"] == "replaced"
    made = client.create_object(deployment("easykube"))
    assert made["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"


def apply():
    made = client.apply_object(gadget("applied", 1), field_manager="one")
    again = client.apply_object(gadget("applied", 1), field_manager="one")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert again["metadata"]["managedFields"][0]["manager"] == "one"
    refused(409, 'conflict with "one": .spec.count', client.apply_object, gadget("applied", 2), field_manager="two")
    forced = client.apply_object(gadget("applied", 2), field_manager="two", force=True)
    assert forced["spec"]["count"] == 2


def watches():
    states, events = gadgets().watch_list()
    events = iter(events)
    assert "counter" in {each["metadata"]["name"] for each in states}
    client.create_object(gadget("watched"))
    event = next(events)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")


def lease():
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "easykube"}, "spec": spec}
    made = client.create_object(body)
    client.replace_object({**made, "spec": {**spec, "holderIdentity": "b"}})
    refused(409, "modified", client.replace_object, {**made, "spec": {**spec, "holderIdentity": "c"}})


for step in (define, conflicts, status, patches, apply, watches, lease):
    step()
    done(step.__name__)
