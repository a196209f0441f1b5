"""Python functions as admission plugins, for embedders and tests: they run in the server's process.

@mutating("team-label", resources=["pods", "widgets.example.com"])
def label(write: AdmittedWrite) -> None:
    write.object["metadata"].setdefault("labels", {})["team"] = write.user.name

@validating("no-friday", operations=["CREATE", "DELETE"])
async def refuse(write: AdmittedWrite) -> None:
    if await is_friday():
        raise Denied("come back on Monday")
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError, forbidden, internal
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.replacing import replace
from steersman.apiserver.authn.user import UserInfo

log = logging.getLogger("steersman.apiserver.admission")
Object = dict[str, Any]
WRITES = ("CREATE", "UPDATE")


class Denied(Exception):
    """Raised by a plugin: the write is answered with 403 and this message."""


@dataclass(frozen=True, slots=True)
class AdmittedWrite:
    """A write that a plugin is asked about.

    `operation` is CREATE, UPDATE or DELETE; `resource` is the plural. `name` is "" while it is to be generated.
    `object` is a copy of what is to be stored ({} for a deletion): a mutating plugin changes it in place. `old` is what
    is stored ({} for a creation). `warn` takes a text for a Warning header of the answer.
    """

    operation: str
    group: str
    version: str
    resource: str
    subresource: str
    kind: str
    namespace: str
    name: str
    object: Object
    old: Object
    user: UserInfo
    dry_run: bool
    warn: Callable[[str], None]


Function = Callable[[AdmittedWrite], Awaitable[None] | None]


class _FunctionPlugin:
    def __init__(self, name: str, function: Function, resources: Iterable[str], operations: Iterable[str]) -> None:
        self.name = name
        self._function = function
        self._resources = frozenset(resources)
        self._operations = frozenset(operations)

    def _concerns(self, attributes: Attributes) -> bool:
        scope = attributes.scope
        resource = f"{scope.resource}.{scope.group}" if scope.group else scope.resource
        if attributes.subresource:
            resource = f"{resource}/{attributes.subresource}"
        wanted = resource in self._resources if self._resources else not attributes.subresource
        return wanted and attributes.operation in self._operations

    async def _ask(self, attributes: Attributes) -> AdmittedWrite:
        """The write as the function has left it. Raises Forbidden, InternalError, and ApiErrors of the function."""
        write = _shown(attributes)
        try:
            result = self._function(write)
            if inspect.isawaitable(result):
                await result
        except ApiError:
            raise
        except Denied as refusal:
            scope = attributes.scope
            raise forbidden(scope.group, scope.resource, attributes.name_shown, str(refusal)) from None
        except Exception:
            log.exception("an admission plugin failed", extra={"plugin": self.name})
            raise internal(f"admission plugin {quote(self.name)} failed") from None
        return write


class MutatingFunction(_FunctionPlugin):
    """Runs after the server's own plugins that change objects, before policies and webhooks."""

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is not None and self._concerns(attributes):
            write = await self._ask(attributes)
            if codec.encode(write.object) != codec.encode(attributes.obj):
                try:
                    replace(attributes, write.object)
                except ApiError as error:
                    raise internal(f"admission plugin {quote(self.name)} left no such object: {error}") from None


class ValidatingFunction(_FunctionPlugin):
    """Sees the object as it will be stored, before policies and webhooks do."""

    active = True

    async def validate(self, attributes: Attributes) -> None:
        if self._concerns(attributes):
            await self._ask(attributes)


def mutating(
    name: str, *, resources: Iterable[str] = (), operations: Iterable[str] = WRITES
) -> Callable[[Function], MutatingFunction]:
    """Makes a function (sync or async) a plugin that may change objects.

    `name` is what --disable-admission-plugins calls it. `resources` are plurals with their groups (`pods`,
    `deployments.apps`, `widgets.example.com/status`); without any, all resources, but no subresources.
    """
    return lambda function: MutatingFunction(name, function, resources, operations)


def validating(
    name: str, *, resources: Iterable[str] = (), operations: Iterable[str] = WRITES
) -> Callable[[Function], ValidatingFunction]:
    """Makes a function a plugin that may only refuse; the rest is as for `mutating`."""
    return lambda function: ValidatingFunction(name, function, resources, operations)


def _shown(attributes: Attributes) -> AdmittedWrite:
    scope, gvk = attributes.scope, attributes.gvk
    return AdmittedWrite(
        attributes.operation,
        scope.group,
        scope.gvr.version,
        scope.resource,
        attributes.subresource,
        gvk.kind,
        attributes.namespace,
        attributes.name,
        codec.copy(attributes.obj) if attributes.obj is not None else {},
        codec.copy(attributes.old) if attributes.old is not None else {},
        attributes.user,
        attributes.dry_run,
        lambda text: attributes.warn([text]),
    )
