"""An operator under the roles that are generated for it: nothing is forbidden, and nothing can be left out.

    python -m tests.generate.permissions https://127.0.0.1:6443 TOKEN CA_FILE

runs the example, and an operator with webhooks, under their roles on a server, then again without each verb in turn,
and says what was forbidden.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from tests.generate.hooked import GROUP

import steersman as st
from steersman.client.config.credentials import StaticCredentials
from steersman.client.config.model import Tls
from steersman.generate.deploy import own_definitions
from steersman.generate.grants import Grant
from steersman.generate.kinds import Kinds
from steersman.generate.rbac import Identity, objects, permitted
from steersman.net.tls import client_ssl_context
from steersman.runtime.operator_file import load_manager

EXAMPLES = Path(__file__).parents[2] / "examples"
OPERATOR = EXAMPLES / "myapp_operator.py"
HOOKED = Path(__file__).with_name("hooked.py")
DEFINITION = (EXAMPLES / "myapp-crd.yaml").read_text()
SOON = 60.0
CRD = st.Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MY_APP = st.Resource("myorg.io/v1", "MyApp", "myapps", True)
MAP = st.Resource("v1", "ConfigMap")
SECRET = st.Resource("v1", "Secret")
LEASE = st.Resource("coordination.k8s.io/v1", "Lease")
CONFIGURATIONS = [
    st.Resource("admissionregistration.k8s.io/v1", f"{phase}WebhookConfiguration")
    for phase in ("Validating", "Mutating")
]
_FORBIDDEN = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')
_READ = ("/myapps/a", "/configmaps/a-settings")
_NOT_PASSED_ON = frozenset({"content-length", "transfer-encoding", "host", "connection", "accept-encoding"})


@dataclass
class Proxy:
    """Passes on what operators ask of a server, knows what was answered, and can do something before a write."""

    url: str
    ssl: ssl.SSLContext
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    forbidden: list[tuple[str, str, str]] = field(default_factory=list)
    """(verb, group, resource) of what was refused with 403."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _races: dict[tuple[str, str], Callable[[], Awaitable[object]]] = field(default_factory=dict)
    _telling: asyncio.Event = field(default_factory=asyncio.Event)

    def lose_race(self, method: str, end: str, act: Callable[[], Awaitable[object]]) -> None:
        """Have something happen, once, before a request with this method and this end of its path goes on.

        No watch tells of it until an object has been read: who loses the race has to ask.
        """
        self._races[method, end] = act

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            # As a server says it that does not know WatchList: then there are lists.
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return web.json_response(
                {"kind": "Status", "code": 422, "reason": "Invalid", "message": message}, status=422
            )
        for (method, end), act in list(self._races.items()):
            if request.method == method and request.path.endswith(end):
                del self._races[method, end]
                self._telling.clear()
                await act()
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _NOT_PASSED_ON}
        headers["Accept-Encoding"] = "identity"
        url, body = f"{self.url}{request.raw_path}", await request.read() or None
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None)) as session,
            session.request(request.method, url, headers=headers, data=body, ssl=self.ssl) as answer,
        ):
            return await self._pass_back(request, answer)

    async def _pass_back(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        if answer.status == 403:
            said = await answer.json()
            found = _FORBIDDEN.search(said["message"])
            assert found is not None, said
            self.forbidden.append((found[1], found[3], found[2]))
        await self._note(request, answer.status)
        headers = {key: value for key, value in answer.headers.items() if key.lower() not in _NOT_PASSED_ON}
        response = web.StreamResponse(status=answer.status, headers=headers)
        with suppress(ConnectionError, aiohttp.ClientError):  # who has asked is gone
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if "watch" in request.query:
                    await self._telling.wait()
                await response.write(chunk)
        return response

    async def _note(self, request: web.Request, status: int) -> None:
        async with self.changed:
            watch = request.query.get("watch") in ("1", "true")
            self.seen.append(("WATCH" if watch else request.method, request.path, status))
            if request.method == "GET" and request.path.endswith(_READ):
                self._telling.set()
            self.changed.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns once something holds of what was seen."""
        async with self.changed:
            await self.changed.wait_for(holds)

    async def until_forbidden(self) -> None:
        await self.until(lambda: bool(self.forbidden))

    def count(self, method: str, end: str, status: int) -> int:
        return len([each for each in self.seen if each[0] == method and each[1].endswith(end) and each[2] == status])

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its own URL."""
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        self._telling.set()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@dataclass
class Target:
    """A server, an administrator's client of it, and the two namespaces of one run."""

    config: st.Config
    admin: st.Client
    number: int = 0
    identity = Identity("op", "ops")

    @property
    def ssl(self) -> ssl.SSLContext:
        assert self.config.tls.ca_data is not None
        return client_ssl_context(self.config.tls.ca_data.encode())

    @property
    def apps(self) -> str:
        return f"apps-{self.number}"


Story = Callable[[Target, Proxy, st.Config], Awaitable[None]]


def grants(operator: Path) -> list[Grant]:
    """What an operator needs."""
    module, manager = fresh(operator)
    return permitted(manager, Kinds(module), Target.identity).grants


def fresh(operator: Path) -> tuple[ModuleType, st.Manager]:
    """An operator's module, and a Manager of its own."""
    sys.modules.pop(operator.stem, None)
    return load_manager(str(operator))


async def under(target: Target, given: list[Grant], story: Story) -> list[tuple[str, str, str]]:
    """Run an operator with these grants; gives what was forbidden, first of all.

    It ends with the first refusal, or when the story is told.
    """
    admin = target.admin
    for name in (target.identity.namespace, target.apps):
        with suppress(st.AlreadyExists):
            await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    made = objects(given, target.identity)
    for obj in made:
        await admin.create(obj)
    proxy = Proxy(target.config.server, target.ssl)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(proxy.serving())
        config = st.Config(url, namespace=target.identity.namespace, credentials=StaticCredentials(await token(target)))
        told = asyncio.create_task(story(target, proxy, config))
        refused = asyncio.create_task(proxy.until_forbidden())
        try:
            async with asyncio.timeout(SOON):
                await asyncio.wait([told, refused], return_when=asyncio.FIRST_COMPLETED)
            if told.done():
                told.result()
        finally:
            for task in (told, refused):
                task.cancel()
            await asyncio.wait([told, refused])
            for obj in made:
                metadata = obj["metadata"]
                await admin.delete(st.Resource.of(obj), metadata["name"], namespace=metadata.get("namespace"))
    return proxy.forbidden


async def token(target: Target) -> str:
    """The Authorization header of the operator's ServiceAccount."""
    identity = target.identity
    path = f"/api/v1/namespaces/{identity.namespace}/serviceaccounts/{identity.name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    headers = {"Authorization": await target.config.credentials.authorization() or ""}
    async with (
        aiohttp.ClientSession(target.config.server) as session,
        session.post(path, json=body, headers=headers, ssl=target.ssl) as answer,
    ):
        made = await answer.json()
        assert answer.status == 201, made
    return f"Bearer {made['status']['token']}"


async def define(admin: st.Client, crd: Any) -> None:
    """Have the server serve a kind."""
    with suppress(st.AlreadyExists):
        await admin.create(crd)
    async with asyncio.timeout(SOON), admin.watch(CRD, name=crd["metadata"]["name"]) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                return


async def example_story(target: Target, proxy: Proxy, config: st.Config) -> None:
    """All that the example does: two replicas, both races that it can lose, a series of Events, an end in order."""
    await define(target.admin, yaml.safe_load(DEFINITION))
    try:
        async with running(fresh(OPERATOR)[1], config) as first:
            await first.leading.wait()
            async with running(fresh(OPERATOR)[1], config) as second:
                await _reconciled(target, proxy)
                await proxy.until(lambda: any(m == "WATCH" and "/leases" in path for m, path, _ in proxy.seen))
                first.stop()
                await second.leading.wait()
                await target.admin.delete(MY_APP, "a", namespace=target.apps)
                await gone(target.admin, MY_APP, "a", target.apps)
    finally:
        await _leave(target)


async def _reconciled(target: Target, proxy: Proxy) -> None:
    admin, apps, settings = target.admin, target.apps, "/configmaps/a-settings"
    app = {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {"name": "a", "namespace": apps}}
    labelled = {"metadata": {"labels": {"by": "somebody"}}}
    proxy.lose_race("PATCH", "/myapps/a/status", lambda: admin.patch(MY_APP, "a", labelled, namespace=apps))
    await admin.create({**app, "spec": {"version": "1", "replicas": 1, "counter": 0}})
    await until(admin, MY_APP, "a", apps, lambda found: (found.get("status") or {}).get("version") == "1")
    assert proxy.count("PATCH", "/myapps/a/status", 409) == 1
    assert proxy.count("GET", "/myapps/a", 200) >= 1  # the reconcile after that
    proxy.lose_race("PUT", settings, lambda: admin.patch(MAP, "a-settings", labelled, namespace=apps))
    for wrong in ("x", "y"):
        await admin.patch(MAP, "a-settings", {"data": {"version": wrong}}, namespace=apps)
        await until(admin, MAP, "a-settings", apps, lambda found: found["data"]["version"] == "1")
    assert proxy.count("PUT", settings, 409) == 1
    assert proxy.count("GET", settings, 200) >= 1
    # The second one of the same Event is counted in the first.
    await proxy.until(lambda: any(m == "PATCH" and "/events/" in path for m, path, _ in proxy.seen))


async def hooked_story(target: Target, proxy: Proxy, config: st.Config) -> None:
    """A start on a cluster that knows nothing of the webhooks, and one where half of the Secret is lost."""
    module, manager = fresh(HOOKED)
    admin, place = target.admin, target.identity.namespace
    for crd in own_definitions(module, manager, None):
        await define(admin, crd)
    try:
        for _ in range(2):
            async with running(fresh(HOOKED)[1], config) as manager:
                await manager.ready.wait()
                for kind in CONFIGURATIONS:
                    found = await admin.get(kind, "shops")
                    assert found["webhooks"][0]["clientConfig"]["caBundle"]
                assert (await admin.get(CRD, f"shops.{GROUP}"))["spec"]["conversion"]["strategy"] == "Webhook"
            await admin.patch(SECRET, "shops-webhook-cert", {"data": {"ca.key": None}}, namespace=place)
    finally:
        for kind, name in ((SECRET, "shops-webhook-cert"), *((kind, "shops") for kind in CONFIGURATIONS)):
            with suppress(st.NotFound):
                await admin.delete(kind, name, namespace=place)


@asynccontextmanager
async def running(manager: st.Manager, config: st.Config) -> AsyncIterator[st.Manager]:
    """Run a manager; what is forbidden to it shows elsewhere."""
    manager.configure(config=config)
    task = asyncio.create_task(manager.start())
    try:
        yield manager
    finally:
        manager.stop()
        done, _ = await asyncio.wait([task], timeout=SOON)
        assert done
        with suppress(st.ApiError):
            task.result()


async def until(admin: st.Client, kind: st.Resource, name: str, namespace: str, holds: Callable[[Any], bool]) -> None:
    """Returns once there is such an object and something holds of it."""
    async with admin.watch(kind, name=name, namespace=namespace) as events:
        async for event in events:
            if event.type != "DELETED" and holds(event.object):
                return


async def gone(admin: st.Client, kind: st.Resource, name: str, namespace: str) -> None:
    """Returns once there is no such object."""
    async with admin.watch(kind, name=name, namespace=namespace) as events:
        try:
            await admin.get(kind, name, namespace=namespace)
        except st.NotFound:
            return
        async for event in events:
            if event.type == "DELETED":
                return


async def _leave(target: Target) -> None:
    """Nothing that another run would find."""
    for kind, name in ((MY_APP, "a"), (MAP, "a-settings")):
        with suppress(st.NotFound):
            await target.admin.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=target.apps)
            await target.admin.delete(kind, name, namespace=target.apps)
    with suppress(st.NotFound):
        await target.admin.delete(LEASE, "myapp-operator", namespace=target.identity.namespace)


async def main(url: str, bearer: str, ca_file: str) -> int:
    """Ask a server; gives the exit status."""
    tls = Tls(await asyncio.to_thread(Path(ca_file).read_text))
    config = st.Config(url, tls=tls, credentials=StaticCredentials.bearer(bearer))
    wrong = 0
    numbers = count()
    async with st.Client(config, namespace="default") as admin:
        for operator, story in STORIES.items():
            everything = grants(operator)
            for removed in [None, *everything]:
                target = Target(config, admin, next(numbers))
                forbidden = await under(target, [each for each in everything if each is not removed], story)
                expected = [] if removed is None else [(removed.verb, removed.group, removed.resource)]
                good = forbidden[:1] == expected
                wrong += not good
                what = "with all" if removed is None else f"without {removed.verb} {removed.resource}"
                print("as expected" if good else "DIFFERS", operator.name, what, forbidden, flush=True)
    print(f"{next(numbers)} runs, {wrong} not as expected")
    return int(bool(wrong))


STORIES = {OPERATOR: example_story, HOOKED: hooked_story}

if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
