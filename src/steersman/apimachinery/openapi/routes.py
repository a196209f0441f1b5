"""The operations that a resource serves, said once for both versions of OpenAPI.

Source: apiserver `pkg/endpoints/installer.go` (built-in kinds), apiextensions-apiserver
`pkg/controller/openapi/builder/builder.go` (custom resources).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.openapi.names import operation_id, tag, with_article
from steersman.apimachinery.openapi.resources import ResourceDescription, SubresourceDescription

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS, PATCH, DELETE_OPTIONS, WATCH_EVENT = (
    f"{META}{kind}" for kind in ("Status", "Patch", "DeleteOptions", "WatchEvent")
)
_JSON, _YAML, _PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_WATCHED = (f"{_JSON};stream=watch", f"{_PROTOBUF};stream=watch")
_JSON_PATCH, _MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
_STRATEGIC_PATCH, _APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

_PAGE = ("continue", "fieldSelector", "labelSelector", "limit")
_AT = ("resourceVersion", "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds")
LIST_PARAMETERS = ("allowWatchBookmarks", *_PAGE, *_AT, "watch")
WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
PATCH_PARAMETERS = (*WRITE_PARAMETERS, "force")
DELETE_PARAMETERS = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_DELETE_COLLECTION_PARAMETERS = (*_PAGE, *_AT, *DELETE_PARAMETERS)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path.

    `query` are names of query parameters (`pretty` goes without saying when `gvk` is set), `body` the schema of the
    request's body or "", `responses` pairs of a status and the schema of its body.
    """

    method: str
    path: str
    id: str
    tag: str
    description: str
    responses: tuple[tuple[int, str], ...]
    produces: tuple[str, ...]
    consumes: tuple[str, ...]
    action: str = ""
    gvk: GroupVersionKind | None = None
    query: tuple[str, ...] = ()
    body: str = ""
    body_required: bool = True


def operations(resource: ResourceDescription) -> list[Operation]:
    """All operations on a resource and its subresources."""
    build = _Builder(resource)
    found = [*build.collection(), *build.item()]
    for subresource in resource.subresources:
        found += build.subresource(subresource)
    if not resource.custom and "watch" in resource.verbs:
        found += build.watches()
    return found


class _Builder:
    def __init__(self, resource: ResourceDescription) -> None:
        self.resource = resource
        group, version, self.kind = resource.gvk
        self.base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        self.tag = tag(group, version)
        scoped = "/namespaces/{namespace}" if resource.namespaced else ""
        self.root = f"{self.base}{scoped}/{resource.plural}"
        self.scope = "Namespaced" if resource.namespaced else ""
        watched = not resource.custom and "watch" in resource.verbs
        self.list_verb = "list or watch" if watched else "list"
        self.produces = (_JSON, _YAML) if resource.custom else (_JSON, _YAML, _PROTOBUF)
        self.list_produces = (*self.produces, *_WATCHED) if watched else self.produces
        self.consumes = (_JSON, _YAML) if resource.custom else ("*/*",)
        strategic = () if resource.custom else (_STRATEGIC_PATCH,)
        self.patch_consumes = (_JSON_PATCH, _MERGE_PATCH, *strategic, _APPLY)

    def operation(
        self,
        method: str,
        path: str,
        action: str,
        verb: str,
        rest: str,
        description: str,
        *responses: tuple[int, str],
        gvk: GroupVersionKind | None = None,
        query: tuple[str, ...] = (),
        body: str = "",
        body_required: bool = True,
        produces: tuple[str, ...] = (),
    ) -> Operation:
        group, version, _ = self.resource.gvk
        return Operation(
            method=method,
            path=path,
            id=operation_id(verb, group, version, rest),
            tag=self.tag,
            description=description,
            responses=responses,
            produces=produces or self.produces,
            consumes=self.patch_consumes if method == "patch" else self.consumes,
            action=action,
            gvk=gvk or self.resource.gvk,
            query=query,
            body=body,
            body_required=body_required,
        )

    def collection(self) -> Iterator[Operation]:
        resource, kind = self.resource, self.kind
        if "list" in resource.verbs:
            names = [(self.root, f"{self.scope}{kind}")]
            if resource.namespaced:
                names.append((f"{self.base}/{resource.plural}", f"{kind}ForAllNamespaces"))
            for path, rest in names:
                description = f"{self.list_verb} objects of kind {kind}"
                yield self.operation(
                    "get", path, "list", "list", rest, description, (200, resource.list_model),
                    query=LIST_PARAMETERS, produces=self.list_produces,
                )  # fmt: skip
        if "create" in resource.verbs:
            yield self.write("create", self.root, f"{self.scope}{kind}", f"create {with_article(kind)}", resource.model)
        if "deletecollection" in resource.verbs:
            rest, description = f"Collection{self.scope}{kind}", f"delete collection of {kind}"
            query = LIST_PARAMETERS if resource.custom else _DELETE_COLLECTION_PARAMETERS
            body = "" if resource.custom else DELETE_OPTIONS
            yield self.operation(
                "delete", self.root, "deletecollection", "delete", rest, description, (200, STATUS),
                query=query, body=body, body_required=False,
            )  # fmt: skip

    def item(self) -> Iterator[Operation]:
        resource, kind = self.resource, self.kind
        path, rest = f"{self.root}/{{name}}", f"{self.scope}{kind}"
        for verb in ("get", "update", "patch"):
            if verb in resource.verbs:
                yield self.write(verb, path, rest, f"{_PHRASES[verb]} the specified {kind}", resource.model)
        if "delete" in resource.verbs:
            deleted = resource.model if resource.returns_deleted else STATUS
            description = f"delete {with_article(kind)}"
            yield self.operation(
                "delete", path, "delete", "delete", rest, description, (200, deleted), (202, deleted),
                query=DELETE_PARAMETERS, body=DELETE_OPTIONS, body_required=False,
            )  # fmt: skip

    def subresource(self, sub: SubresourceDescription) -> Iterator[Operation]:
        path, rest = f"{self.root}/{{name}}/{sub.name}", f"{self.scope}{self.kind}{sub.name.capitalize()}"
        gvk = self.resource.gvk if self.resource.custom else sub.gvk
        for verb in ("create", "get", "update", "patch"):
            if verb in sub.verbs:
                of = with_article(self.kind) if verb == "create" else f"the specified {self.kind}"
                yield self.write(verb, path, rest, f"{_PHRASES[verb]} {sub.name} of {of}", sub.model, gvk)

    def write(
        self, verb: str, path: str, rest: str, description: str, model: str, gvk: GroupVersionKind | None = None
    ) -> Operation:
        """A get, or a write whose answer is the object."""
        if verb == "get":
            query = ("resourceVersion",) if self.resource.custom else ()
            return self.operation("get", path, "get", "read", rest, description, (200, model), gvk=gvk, query=query)
        if verb == "patch":
            codes: tuple[int, ...] = (200,) if self.resource.custom else (200, 201)
            return self.operation(
                "patch", path, "patch", "patch", rest, description, *((code, model) for code in codes),
                gvk=gvk, query=PATCH_PARAMETERS, body=PATCH,
            )  # fmt: skip
        method, id_verb, codes = _WRITES[verb]
        return self.operation(
            method, path, method, id_verb, rest, description, *((code, model) for code in codes),
            gvk=gvk, query=WRITE_PARAMETERS, body=model,
        )  # fmt: skip

    def watches(self) -> Iterator[Operation]:
        """The deprecated paths under /watch/."""
        resource, kind = self.resource, self.kind
        scoped = "/namespaces/{namespace}" if resource.namespaced else ""
        root = f"{self.base}/watch{scoped}/{resource.plural}"
        every = f"watch changes to objects of kind {kind}; deprecated: list with the parameter watch instead"
        one = f"watch changes to one {kind}; deprecated: list with the parameters watch and fieldSelector instead"
        found = [
            (root, "watchlist", f"{self.scope}{kind}List", every),
            (f"{root}/{{name}}", "watch", f"{self.scope}{kind}", one),
        ]
        if resource.namespaced:
            path = f"{self.base}/watch/{resource.plural}"
            found.append((path, "watchlist", f"{kind}ListForAllNamespaces", every))
        for path, action, rest, description in found:
            yield self.operation(
                "get", path, action, "watch", rest, description, (200, WATCH_EVENT),
                query=LIST_PARAMETERS, produces=self.list_produces,
            )  # fmt: skip


_WRITES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "update": ("put", "replace", (200, 201)),
    "create": ("post", "create", (200, 201, 202)),
}
_PHRASES = {"create": "create", "get": "read", "update": "replace", "patch": "partially update"}
