"""Parameters of operations: what each is, and where in a path's description it stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from steersman.apimachinery.openapi.routes import Operation


@dataclass(frozen=True, slots=True)
class Parameter:
    """`place` is `query` or `path`, `type` a JSON type."""

    name: str
    place: str
    type: str
    description: str


def _query(name: str, type_: str, description: str) -> tuple[str, Parameter]:
    return name, Parameter(name, "query", type_, description)


QUERY = dict(
    (
        _query(
            "allowWatchBookmarks",
            "boolean",
            "Lets a watch send BOOKMARK events, which carry nothing but a newer resourceVersion. Not used by lists.",
        ),
        _query(
            "continue",
            "string",
            "Where the next page begins: metadata.continue of the page before, with all other parameters as they were. "
            "A token that is too old is answered with 410; the answer then has one that goes on from a newer state.",
        ),
        _query(
            "dryRun",
            "string",
            "All: do everything but write. Nothing else is allowed.",
        ),
        _query(
            "fieldManager",
            "string",
            "Who makes this change, for metadata.managedFields: up to 128 printable characters. Needed by apply "
            "patches; else the part of the User-Agent before the first slash stands in for it.",
        ),
        _query(
            "fieldSelector",
            "string",
            "Only objects whose fields match this selector. Everything by default.",
        ),
        _query(
            "fieldValidation",
            "string",
            "What becomes of unknown and duplicate fields of a body. Ignore: they are dropped. Warn (the default): "
            "dropped with a Warning header for each. Strict: the request is refused with 400.",
        ),
        _query(
            "force",
            "boolean",
            "Take over fields that other managers own. Apply patches only.",
        ),
        _query(
            "gracePeriodSeconds",
            "integer",
            "Seconds until the object is to be gone; 0 at once. The kind's own default when unset.",
        ),
        _query(
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            "boolean",
            "Delete the object even if it cannot be read from the store. Unsafe: no finalizer or precondition holds.",
        ),
        _query(
            "labelSelector",
            "string",
            "Only objects whose labels match this selector. Everything by default.",
        ),
        _query(
            "limit",
            "integer",
            "How many objects a page has at most. When there are more, metadata.continue of the answer is set; "
            "all pages show one state of the collection. Not used by watches.",
        ),
        _query(
            "orphanDependents",
            "boolean",
            "Deprecated in favour of propagationPolicy: whether dependents stay.",
        ),
        _query(
            "pretty",
            "string",
            "true: indent the answer. By default only for browsers and command-line HTTP tools.",
        ),
        _query(
            "propagationPolicy",
            "string",
            "What becomes of dependents. Orphan: they stay; Background: they go afterwards; Foreground: before.",
        ),
        _query(
            "resourceVersion",
            "string",
            "How new the answer must be; a watch starts after it. Unset means the newest state.",
        ),
        _query(
            "resourceVersionMatch",
            "string",
            "How a list reads resourceVersion: Exact, or NotOlderThan.",
        ),
        _query(
            "sendInitialEvents",
            "boolean",
            "A watch begins with ADDED events for what is there, then a bookmark with the annotation "
            "k8s.io/initial-events-end. Needs resourceVersionMatch=NotOlderThan.",
        ),
        _query(
            "shardSelector",
            "string",
            "Only objects whose hashed metadata lies in these ranges. Alpha; needs a feature that is off by default.",
        ),
        _query(
            "timeoutSeconds",
            "integer",
            "After how many seconds a list or watch ends.",
        ),
        _query(
            "watch",
            "boolean",
            "Watch for changes instead of listing: the answer is a stream of events. Give a resourceVersion.",
        ),
    )
)
NAMESPACE = Parameter("namespace", "path", "string", "object name and auth scope, such as for teams and projects")


@dataclass(frozen=True, slots=True)
class PathItem:
    """All operations of one path; `shared` are the parameters that all of them have, by name."""

    path: str
    operations: tuple[Operation, ...]
    shared: tuple[Parameter, ...]

    def own(self, operation: Operation) -> list[Parameter]:
        """The parameters that the operation alone declares, by name."""
        shared = {parameter.name for parameter in self.shared}
        return [QUERY[name] for name in sorted(operation.query) if name not in shared]


def path_items(operations: Iterable[Operation]) -> list[PathItem]:
    """The operations by path, paths in order."""
    by_path: dict[str, list[Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, []).append(operation)
    return [PathItem(path, tuple(by_path[path]), _shared(path, by_path[path])) for path in sorted(by_path)]


def _shared(path: str, operations: list[Operation]) -> tuple[Parameter, ...]:
    first = operations[0]
    if first.gvk is None:
        return ()
    names = set(first.query).intersection(*(operation.query for operation in operations[1:]))
    found = [QUERY[name] for name in (*names, "pretty")]
    if "{name}" in path:
        found.append(Parameter("name", "path", "string", f"name of the {first.gvk.kind}"))
    if "{namespace}" in path:
        found.append(NAMESPACE)
    return tuple(sorted(found, key=lambda parameter: parameter.name))
