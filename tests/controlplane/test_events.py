import asyncio

import pytest

from steersman.controlplane.events import EventExpiry

EVENTS = "/api/v1/namespaces/default/events"


def event(name):
    involved = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": involved}


@pytest.fixture
async def expiry(apiserver):
    """`expiry(ttl)` starts another expiry of Events, with another time to live (seconds)."""
    client = await apiserver.client()
    tasks = []

    def start(ttl):
        core = apiserver.plane.server.core
        core.event_ttl = ttl
        controller = EventExpiry(lambda: client.rest, core)
        tasks.append(asyncio.ensure_future(controller.run()))

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await client.close()


async def test_events_go_when_their_time_has_come(apiserver, until, expiry):
    assert (await apiserver.request("POST", EVENTS, event("before"))).status == 201
    expiry(0.0)
    await until("events", "default/before", lambda obj: obj is None)
    assert (await apiserver.request("POST", EVENTS, event("after"))).status == 201
    await until("events", "default/after", lambda obj: obj is None)


async def test_they_stay_until_then(apiserver, until, expiry):
    expiry(3600.0)
    assert (await apiserver.request("POST", EVENTS, event("young"))).status == 201
    assert await until("events", "default/young", lambda obj: obj is not None)
