"""The chain of admission plugins that every write passes: those that may change it, then those that only judge.

Source: apiserver `pkg/admission/{attributes,chain,reinvocation}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from steersman._util.dataclass import dataclass
from steersman.apimachinery.apply.entries import problem
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object


class Form(Protocol):
    """How an object of the request's kind is decoded and completed; a strategy is one. `type_view` is how it merges."""

    @property
    def type_view(self) -> TypeView: ...

    def decode(self, obj: Object, /) -> tuple[Object, list[str]]: ...

    def default(self, obj: Object, /) -> None: ...


Annotate = Callable[[str, str, int], None]
METADATA, REQUEST = 1, 2
"""Audit levels from which on an annotation is told."""


def untold(key: str, value: str, level: int) -> None:
    """Annotations of a request that is not recorded."""


@dataclass(slots=True)
class Attributes:
    """What a plugin may know of a write. `operation` is CREATE, UPDATE or DELETE; `name` is "" when it is generated.

    A plugin that changes the object changes its top level or metadata in place, or puts another one in its place.
    `kind` is what the request is about: a subresource may have a kind of its own, whose objects `form` knows.
    `options` are the request's (CreateOptions and so on), as an object. `warn` takes texts for Warning headers,
    `annotate` what an audit event is to tell: key, value, and the audit level from which on it is told. `patched` says
    that the object came back from outside. `afterwards` is called once the write is over, with whether it was stored.
    """

    operation: str
    scope: ResourceScope
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: UserInfo
    dry_run: bool = False
    subresource: str = ""
    kind: GroupVersionKind | None = None
    form: Form | None = None
    options: Object | None = None
    warn: Callable[[list[str]], None] = lambda texts: None
    annotate: Annotate = untold
    patched: bool = False
    reinvocation: Reinvocation | None = None
    afterwards: list[Callable[[bool], None]] = field(default_factory=list)

    def finish(self, stored: bool) -> None:
        """Tell those who wait for it what became of the write, or of an attempt at it."""
        while self.afterwards:
            self.afterwards.pop()(stored)

    @property
    def name_shown(self) -> str:
        """What refusals call the object, which may have no name yet."""
        meta = (self.obj or {}).get("metadata") or {}
        return self.name or meta.get("name") or meta.get("generateName") or "Unknown"

    @property
    def gvk(self) -> GroupVersionKind:
        return self.kind or self.scope.gvk

    @property
    def rules(self) -> Form:
        return self.form or self.scope.strategy


@dataclass(slots=True)
class Reinvocation:
    """The second round, which plugins ask for that were asked before the object changed.

    Each plugin keeps its own notes in `notes`, by its name.
    """

    wanted: bool = False
    running: bool = False
    notes: dict[str, object] = field(default_factory=dict)


@runtime_checkable
class Plugin(Protocol):
    """One plugin; `name` is what `--disable-admission-plugins` calls it. `admit` raises an ApiError to refuse."""

    name: str

    async def admit(self, attributes: Attributes) -> None:
        """May change the object, before it is judged by its kind's rules."""


@runtime_checkable
class Validator(Protocol):
    """A plugin of the second phase: it sees the object as it will be stored. `active` as for `Reinvocable`."""

    name: str

    @property
    def active(self) -> bool: ...

    async def validate(self, attributes: Attributes) -> None:
        """May only refuse, with an ApiError."""


@runtime_checkable
class Selective(Protocol):
    """A plugin of the second phase that few resources concern. It asks nobody outside of the server."""

    name: str

    def concerns(self, scope: ResourceScope) -> bool: ...

    async def validate(self, attributes: Attributes) -> None:
        """May only refuse, with an ApiError. Called for the resources that concern it."""


class Reinvocable(Protocol):
    """A plugin that may want a second round. `active` says whether any write may concern it."""

    name: str

    @property
    def active(self) -> bool: ...

    async def admit(self, attributes: Attributes) -> None: ...


class Admission:
    """Plugins in order: `plugins`, then `late` ones, which change objects on behalf of others, then `guards`, which see
    what came of it; and in the second phase `validators`."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        late: Sequence[Reinvocable] = (),
        guards: Sequence[Plugin] = (),
        validators: Sequence[Validator | Selective] = (),
    ) -> None:
        self.plugins = list(plugins)
        self.late = list(late)
        self.guards = list(guards)
        self.validators = [(plugin, _interest(plugin)) for plugin in validators]
        self._general = [plugin for plugin in validators if isinstance(plugin, Validator)]
        self._selective = [plugin for plugin in validators if isinstance(plugin, Selective)]

    @property
    def mutates(self) -> bool:
        """Whether someone else sees writes, and may change objects, before they are known to conflict."""
        return any(plugin.active for plugin in self.late)

    async def admit(self, attributes: Attributes) -> None:
        """The first phase. Plugins run again when one of the late ones asks for it, once."""
        for plugin in self.plugins:
            await plugin.admit(attributes)
        if self.mutates:
            owned = _managed_fields(attributes)
            await self._admit_late(attributes)
            _keep_readable(attributes, owned)
        for plugin in self.guards:
            await plugin.admit(attributes)

    async def _admit_late(self, attributes: Attributes) -> None:
        late = [plugin for plugin in self.late if plugin.active]
        round_ = attributes.reinvocation = Reinvocation()
        for plugin in late:
            await plugin.admit(attributes)
        if round_.wanted and attributes.obj is not None:
            round_.running = True
            for again in (*self.plugins, *late):
                await again.admit(attributes)

    @property
    def judges(self) -> bool:
        """Whether there is anyone to ask in the second phase, whatever is written."""
        return any(plugin.active for plugin in self._general)

    def judges_of(self, scope: ResourceScope) -> bool:
        """Whether there is anyone to ask about a resource in the second phase."""
        return self.judges or any(plugin.concerns(scope) for plugin in self._selective)

    async def validate(self, attributes: Attributes) -> None:
        """The second phase."""
        for plugin, interested in self.validators:
            if interested(attributes.scope):
                await plugin.validate(attributes)


def _interest(plugin: Validator | Selective) -> Callable[[ResourceScope], bool]:
    if isinstance(plugin, Selective):
        return plugin.concerns
    return lambda scope: plugin.active


def _managed_fields(attributes: Attributes) -> Any:
    return ((attributes.obj or {}).get("metadata") or {}).get("managedFields")


def _keep_readable(attributes: Attributes, owned: Any) -> None:
    """Put managedFields back as they were if they cannot be read any more (`pkg/endpoints/handlers/fieldmanager`)."""
    found = _managed_fields(attributes)
    why = problem(found) if isinstance(found, list) else ""
    if not why:
        return
    assert attributes.obj is not None
    meta = {name: value for name, value in attributes.obj["metadata"].items() if name != "managedFields"}
    attributes.obj["metadata"] = meta if owned is None else {**meta, "managedFields": owned}
    cause = "this could be caused by an outdated mutating admission controller; please fix your requests"
    attributes.warn([f".metadata.managedFields was in an invalid state after admission; {cause}: {why}"])
