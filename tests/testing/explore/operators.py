"""Small operators, each with a bug that needs an unlucky moment, and each without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import steersman as st
from steersman.testing import ApiServer, eventually_async, running

MAP = st.Resource("v1", "ConfigMap")
Body = Callable[[ApiServer, bool], Awaitable[None]]


def config_map(name: str, **more: Any) -> st.Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def lost_update(server: ApiServer, broken: bool) -> None:
    """An operator that writes what it has read, with its change, whatever has happened since."""

    async def reconcile(ctx: st.Context, app: st.Object) -> None:
        tally = await ctx.client.get(MAP, "tally")
        if app["metadata"]["name"] in tally.get("data", {}) or app["metadata"]["name"] == "tally":
            return
        tally = {**tally, "data": {**tally.get("data", {}), app["metadata"]["name"]: "seen"}}
        if broken:
            tally["metadata"] = {**tally["metadata"], "resourceVersion": ""}
        await ctx.client.update(tally)

    async with server.client(user_agent="user") as user:
        await user.create(config_map("tally"))
        manager = st.Manager(client=server.client(user_agent="operator"))
        manager.controller(MAP, reconcile)
        async with running(manager):
            await user.create(config_map("app"))
            await asyncio.sleep(1)
            await user.modify(MAP, "tally", lambda obj: obj.setdefault("data", {}).update(user="here"))

            async def check() -> None:
                assert (await user.get(MAP, "tally"))["data"] == {"app": "seen", "user": "here"}

            await eventually_async(check, timeout=60)


async def duplicates(server: ApiServer, broken: bool) -> None:
    """An operator that looks for its child in its cache, and creates it beside the cache."""
    own = server.client(user_agent="operator-writes")

    async def reconcile(ctx: st.Context, app: st.Object) -> None:
        if app["metadata"].get("labels"):
            return
        children = await ctx.client.list(MAP, label_selector="child").collect()
        if not children:
            body = config_map("", metadata={"generateName": "child-", "labels": {"child": "yes"}})
            body["metadata"]["namespace"] = "default"
            await (own if broken else ctx.client).create(body)

    async with own, server.client(user_agent="user") as user:
        manager = st.Manager(client=server.client(user_agent="operator"))
        manager.controller(MAP, reconcile)
        async with running(manager):
            await user.create(config_map("app"))
            await asyncio.sleep(1)
            await user.patch(MAP, "app", {"data": {"a": "1"}})
            await asyncio.sleep(20)
        children = await user.list(MAP, label_selector="child").collect()
        assert len(children) == 1


async def any_other_error_is_success(server: ApiServer, broken: bool) -> None:
    """A worker that tries again after a conflict, and takes every other error for the end of its work."""

    async def mark(client: st.Client) -> None:
        while True:
            try:
                job = await client.get(MAP, "job")
                await client.update({**job, "data": {"done": "yes"}})
                return
            except st.Conflict:
                continue
            except st.ApiError:
                if broken:
                    return
                await asyncio.sleep(0.1)

    async with server.client(user_agent="worker") as worker, server.client(user_agent="user") as user:
        await user.create(config_map("job"))
        working = asyncio.create_task(mark(worker))
        await asyncio.sleep(1)
        job = await user.get(MAP, "job")
        with suppress(st.Conflict):
            if not job.get("data"):  # not done yet: it begins anew
                await user.delete(MAP, "job", resource_version=job["metadata"]["resourceVersion"])
                await user.create(config_map("job"))
        await working
        assert (await user.get(MAP, "job"))["data"] == {"done": "yes"}


async def check_then_act(server: ApiServer, broken: bool) -> None:
    """A leader that looks whether there is one, and then says that it is it."""
    leaders: list[str] = []

    async def lead(client: st.Client, name: str) -> None:
        lock = await client.get(MAP, "lock")
        if lock.get("data"):
            return
        try:
            if broken:
                await client.patch(MAP, "lock", {"data": {"holder": name}})
            else:
                await client.update({**lock, "data": {"holder": name}})
        except st.Conflict:
            return
        leaders.append(name)

    async with server.client(user_agent="first") as first, server.client(user_agent="second") as second:
        await first.create(config_map("lock"))
        one = asyncio.create_task(lead(first, "first"))
        await asyncio.sleep(1)
        await asyncio.gather(one, lead(second, "second"))
        assert len(leaders) == 1


async def lost_answer(server: ApiServer, broken: bool) -> None:
    """An operator that creates its child anew when it has got no answer: is run with connections that break."""

    async def reconcile(ctx: st.Context, app: st.Object) -> None:
        if app["metadata"]["name"] != "app":
            return
        if broken:
            body = config_map("", metadata={"generateName": "child-", "labels": {"child": "yes"}})
            while True:
                try:
                    await ctx.client.create(body, namespace="default")
                    return
                except st.TransportError:
                    await asyncio.sleep(0.1)
        child = config_map("", metadata={"name": "child", "namespace": "default", "labels": {"child": "yes"}})
        await ctx.create_or_update(child)

    manager = st.Manager(client=server.client(user_agent="operator"))
    manager.controller(MAP, reconcile)
    async with running(manager), server.client(user_agent="user") as user:
        await user.create(config_map("app"))
        await asyncio.sleep(60)
        children = await user.list(MAP, label_selector="child").collect()
        assert len(children) == 1


BUGS: list[Body] = [lost_update, duplicates, any_other_error_is_success, check_then_act]
