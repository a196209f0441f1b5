"""An API server as a test sees it: one of its own in this process, or a namespace of a real cluster."""

from __future__ import annotations

import asyncio
import uuid
from asyncio import new_event_loop as new_loop  # its time can be moved
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from steersman.apimachinery.errors import AlreadyExists
from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.faults import FaultPlan
from steersman.apiserver.server import ADMINISTRATOR, ServerConfig
from steersman.client.client import Client
from steersman.client.config import Config
from steersman.client.config.credentials import StaticCredentials
from steersman.client.config.model import Impersonation
from steersman.client.resources import Object, Resource
from steersman.client.sync import SyncClient
from steersman.controlplane.plane import ControlPlane
from steersman.store.memory import MemoryStore
from steersman.testing.manifests import Loadable, objects_of
from steersman.testing.thread import ThreadedControlPlane, control_plane
from steersman.testing.timeline import Timeline

CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
ESTABLISHED = 30.0


@dataclass
class ApiServer:
    """`kube` is a blocking client as administrator; its default namespace is the test's own.

    `config` reaches the same from elsewhere: `async with st.Client(apiserver.config) as client`, and `kubeconfig(path)`
    writes it for other programs. `faults` makes things go wrong: `apiserver.faults.add(Fault(verbs=["update"],
    status=409, times=3))`; it is None for a real cluster.
    """

    config: Config
    kube: SyncClient
    directory: Path
    timeline: Timeline | None = None
    faults: FaultPlan | None = None
    token: str = field(default="", repr=False)
    is_real: bool = False
    """Whether this is a cluster, which others use, too."""
    plane: ThreadedControlPlane | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Where the server is reached: `http://127.0.0.1:PORT` for one of the test's own."""
        return self.config.server

    @property
    def namespace(self) -> str:
        """The test's own."""
        return self.config.namespace

    def compact(self) -> None:
        """Forget what was overwritten or deleted: lists that go on and watches that begin at an older resourceVersion
        are told 410 Expired, as by kube-apiserver when etcd was compacted. Watches that run go on.

        As the next two, it blocks until it is done (from async code, `await asyncio.to_thread(apiserver.compact)`), and
        raises RuntimeError for a real cluster.
        """
        self._own("compacted").compact()

    def restart(self, down: float = 0.0) -> None:
        """Stop the server and start it again after `down` seconds, at the same address, with what it has stored.

        All connections are cut off, and its memory is cold: old revisions are gone from it, as from `compact`'s.
        """
        self._own("started again").restart(down)
        self.kube.server_version()  # its connection is a new one now

    def advance(self, seconds: float) -> None:
        """Let time pass for the server, without waiting, and for the wall clock of this process: Events and tokens
        expire, watches end. `await steersman.testing.advance(...)` does it for an operator on the test's event loop."""
        self._own("moved in time").advance(seconds)
        self.kube.server_version()  # the server has closed the connections that it finds unused for long

    def _own(self, done: str) -> ThreadedControlPlane:
        if self.plane is None:
            raise RuntimeError(f"a real cluster cannot be {done}")
        return self.plane

    def client(self, **options: Any) -> Client:
        """An async client as administrator; the caller closes it."""
        return Client(self.config, **options)

    def kubeconfig(self, user: Config | None = None) -> Path:
        """A kubeconfig file for other programs, for an administrator or for what `user` gave.

        Raises RuntimeError for a real cluster, which has one.
        """
        if self.is_real:
            raise RuntimeError("this is a real cluster: pass its own kubeconfig on")
        config = user or self.config
        acts = config.impersonate
        identity: Object = {"token": self.token}
        if acts is not None:
            identity |= {"as": acts.user, "as-groups": list(acts.groups)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": identity}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": self.namespace}}],
            "current-context": "test",
        }
        path = self.directory / f"kubeconfig-{uuid.uuid4().hex[:8]}"
        path.write_bytes(orjson.dumps(content))
        path.chmod(0o600)
        return path

    def load(self, *sources: Loadable) -> list[Object]:
        """Create what there is in files, directories, objects and model classes; gives what was created.

        CustomResourceDefinitions come first, and are served when this returns. What exists already stays as it is.
        Raises TypeError for what can be none of these, and ValueError, which names the file and the document, for what
        holds no objects.
        """
        objects = [obj for source in sources for obj in objects_of(source)]
        definitions = [obj for obj in objects if obj.get("kind") == CRD.kind]
        made = [self._create(obj) for obj in definitions]
        for definition in definitions:
            self._await_established(definition["metadata"]["name"])
        return made + [self._create(obj) for obj in objects if obj.get("kind") != CRD.kind]

    def user(
        self,
        name: str,
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        groups: Sequence[str] = (),
        everywhere: bool = False,
    ) -> Config:
        """Another user, who may do what `rules` (of a Role) say in the test's namespace, or `everywhere`.

        Raises TypeError or ValueError for names that are none.

        `st.Client(apiserver.user("alice", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]))`
        """
        if isinstance(groups, str):
            raise TypeError(f"groups is a list of names, not {groups!r}")
        for each in (name, *groups):
            _check_name(each)
        kind = "ClusterRole" if everywhere else "Role"
        if rules:
            api, metadata = "rbac.authorization.k8s.io/v1", {"name": f"test-{uuid.uuid4().hex[:6]}"}
            self.kube.create({"apiVersion": api, "kind": kind, "metadata": metadata, "rules": list(rules)})
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]}
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
            binding = {"apiVersion": api, "kind": f"{kind}Binding", "metadata": metadata}
            self.kube.create({**binding, "roleRef": reference, "subjects": [subject]})
        acting = Impersonation(user=name, groups=[*groups, "system:authenticated"])
        return replace(self.config, impersonate=acting)

    def _create(self, obj: Object) -> Object:
        try:
            return self.kube.create(obj)
        except AlreadyExists:
            metadata = obj["metadata"]
            return self.kube.get(Resource.of(obj), metadata["name"], namespace=metadata.get("namespace"))

    def _await_established(self, name: str) -> None:
        with self.kube.watch(CRD, name=name) as events:
            for event in events:
                conditions = event.object.get("status", {}).get("conditions") or []
                if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                    return
                if any(c["type"] == "NamesAccepted" and c["status"] == "False" for c in conditions):
                    raise ValueError(f"{name} cannot be served: {conditions[0]['message']}")


def _check_name(name: object) -> None:
    """Names travel in headers, which take neither ends that are blank nor control characters."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a user or group is a text, not {name!r}")
    if not name or name != name.strip() or not name.isprintable():
        raise ValueError(f"the name of a user or group is a line of text without blank ends, not {name!r}")


@contextmanager
def fresh_server(
    directory: Path, *, server: ServerConfig | None = None, namespace: str = "default"
) -> Iterator[ApiServer]:
    """A server of its own, in memory, in a thread of this process; ready within some 20 ms."""
    timeline, token = Timeline(), uuid.uuid4().hex
    faults = (server.faults if server else None) or FaultPlan()
    tokens = StaticTokens({token: ADMINISTRATOR})
    chosen = replace(server or ServerConfig(), tokens=tokens, audit=timeline.auditor, faults=faults)
    with ExitStack() as stack:
        plane = stack.enter_context(control_plane(_first_content().copy(), chosen, grace=0.0, new_loop=new_loop))
        config = Config(plane.url, namespace=namespace, credentials=StaticCredentials(f"Bearer {token}"))
        kube = stack.enter_context(SyncClient(config))
        yield ApiServer(config, kube, directory, timeline, faults, token=token, plane=plane)


@cache
def _first_content() -> MemoryStore:
    """What every server makes when it first starts: roles, namespaces, service accounts. It is made once."""

    async def make() -> MemoryStore:
        store = MemoryStore()
        async with await ControlPlane.start(store, ServerConfig()):
            revision = 0
            while store.revision != revision:  # the controllers have nothing to do any more
                revision = store.revision
                await asyncio.sleep(0.1)
            return store.copy()

    return asyncio.run(make())
