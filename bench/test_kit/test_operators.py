"""A hundred tests of a small operator, each with a server of its own: what the test kit costs.

pytest -n 2 bench/test_kit -p no:randomly -o asyncio_mode=auto
"""

from __future__ import annotations

import asyncio

import pytest

import steersman as st
from steersman.testing import ApiServer, advance, eventually_async, like, running

TURNS = pytest.mark.parametrize("turn", range(20))


class Spec(st.Model):
    replicas: int = 1


class Status(st.Model):
    replicas: int = 0


@st.custom_resource("bench.example.com/v1", rules=[st.rule("self.spec.replicas >= 0", message="not negative")])
class App(st.CustomResource[Spec, Status]): ...


APP = App.api_kind()
PATIENT = st.Backoff(steps=50, duration=0.01)


def app(name: str, replicas: int) -> st.Object:
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "App",
        "metadata": {"name": name},
        "spec": {"replicas": replicas},
    }


async def reconcile(ctx: st.Context, obj: App) -> None:
    await ctx.create_or_update(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{obj.metadata.name}-settings"},
            "data": {"replicas": str(obj.spec.replicas)},
        }
    )
    obj.status.replicas = obj.spec.replicas


@TURNS
def test_a_definition(apiserver: ApiServer, turn: int) -> None:
    apiserver.load(App)
    assert apiserver.kube.create(app("a", turn)) == like({"spec": {"replicas": turn}})
    with pytest.raises(st.Invalid, match="not negative"):
        apiserver.kube.create(app("b", -1))


@TURNS
async def test_a_reconcile(apiserver: ApiServer, turn: int) -> None:
    apiserver.load(App)
    manager = st.Manager(apiserver.config)
    manager.controller(App, reconcile).owns(st.Resource("v1", "ConfigMap"))
    async with running(manager), apiserver.client() as client:
        await client.create(app("a", turn + 1))

        async def check() -> None:
            assert await client.get(APP, "a") == like({"status": {"replicas": turn + 1}})

        await eventually_async(check)


@TURNS
async def test_a_conflict(apiserver: ApiServer, turn: int) -> None:
    apiserver.load(App)
    async with apiserver.client() as client:
        await client.create(app("a", 0))

        def increment(obj: st.Object) -> None:
            obj["spec"]["replicas"] += 1

        await asyncio.gather(*(client.modify(APP, "a", increment, backoff=PATIENT) for _ in range(4)))
        assert await client.get(APP, "a") == like({"spec": {"replicas": 4}})


@TURNS
async def test_a_webhook(apiserver: ApiServer, turn: int) -> None:
    apiserver.load(App)

    def validate(obj: App, request: st.AdmissionRequest) -> None:
        if obj.spec.replicas > 3:
            raise st.Denied("too many")

    manager = st.Manager(apiserver.config, name="rules", webhooks=st.Webhooks("127.0.0.1:0"))
    manager.webhook(App, validate=validate)
    async with running(manager), apiserver.client() as client:

        async def check() -> None:
            with pytest.raises(st.Forbidden, match="too many"):
                await client.create(app("a", 4), dry_run=True)

        await eventually_async(check)
        await client.create(app("a", 3))


@TURNS
async def test_a_change_of_leaders(apiserver: ApiServer, turn: int) -> None:
    led: list[str] = []

    async def lead(leadership: st.Leadership) -> None:
        led.append(leadership.identity)
        await asyncio.Event().wait()

    async with apiserver.client() as client, apiserver.client() as other:
        lock = st.LeaseLock("default", "lock")
        tasks = {
            name: asyncio.create_task(st.LeaderElector(each, lock, identity=name).run(lead))
            for name, each in (("a", client), ("b", other))
        }

        async def first() -> str:
            return led[0]

        tasks.pop(await eventually_async(first)).cancel()
        [(left, task)] = tasks.items()

        async def check() -> None:
            await advance(5)
            assert led[1:] == [left]

        await eventually_async(check, timeout=600)
        task.cancel()
        await asyncio.wait([task])
