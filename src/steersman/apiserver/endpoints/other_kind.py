"""Bodies of subresources whose kind is another than the resource's: Binding, Eviction, Scale."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from steersman.api.builtin import BuiltinStrategy
from steersman.api.kinds import BuiltinKind
from steersman.apimachinery.errors import BadRequest
from steersman.apiserver import rest
from steersman.apiserver.builtins import BuiltinRules, patch_schema
from steersman.apiserver.endpoints import bodies
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

_UNKNOWN = 'no kind is registered for the type {} in scheme "pkg/runtime/scheme.go:111"'


def read(x: Exchange, scope: ResourceScope, kind: BuiltinKind, level: str, *, also: str = "") -> Object:
    """The object of `kind` in the body, normalised, in the request's namespace; see `bodies.decode`."""
    try:
        obj = bodies.decode(x, inner(scope, kind), rules(kind), level, also=also)
    except BadRequest:
        if not scope.custom:
            raise
        # The scheme of custom resources does not know Scale, and fails where it tells of the failure.
        raise BadRequest(_UNKNOWN.format(f"{kind.version}.{kind.kind}")) from None
    rest.match_namespace(obj["metadata"], x.info.namespace, namespaced=scope.namespaced)
    return obj


def inner(scope: ResourceScope, kind: BuiltinKind) -> ResourceScope:
    """The scope of a subresource whose objects are of `kind`."""
    return replace(
        scope,
        gvr=kind.gvr,
        kind=kind.kind,
        strategy=rules(kind),
        stored=False,
        custom=False,
        patch_schema=partial(patch_schema, kind),
    )


@cache
def rules(kind: BuiltinKind) -> BuiltinRules:
    """How objects of a kind are decoded and completed."""
    return BuiltinRules(kind, BuiltinStrategy(kind))
