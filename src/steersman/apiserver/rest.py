"""What every write does to an object's metadata, whatever its kind.

Source: apiserver `pkg/registry/rest/{create,update,delete,meta}.go` and `pkg/registry/generic/registry/store.go`.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta

from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import times
from steersman.apimachinery.errors import ApiError, BadRequest, conflict, invalid
from steersman.apimachinery.names import generate_name
from steersman.apimachinery.options import DeleteOptions
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"
_UINT64_DIGITS = 100
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
Check = Callable[[], Awaitable[None]]


async def allow() -> None:
    """A check that never refuses."""


def wipe_system_metadata(meta: Object) -> None:
    """Take out of a new object's metadata what only the server sets."""
    for key in (
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
        "uid",
    ):
        meta.pop(key, None)


def fill_new_metadata(meta: Object, now: str) -> None:
    """System fields of an object to be created; a name is made from generateName when there is none."""
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = generate_name(meta["generateName"], secrets.SystemRandom())


def match_namespace(meta: Object, namespace: str, *, namespaced: bool) -> None:
    """The body's namespace is the URL's; a cluster-scoped object has none."""
    if not namespaced:
        meta.pop("namespace", None)
        return
    given = meta.get("namespace")
    if given and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = namespace


def match_name(meta: Object, name: str) -> None:
    given = meta.get("name")
    if not given:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")


def parse_revision(text: str, prefix: str = "") -> int:
    """A resourceVersion as a number, "" as 0. Raises the 500 that upstream gives for nonsense."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise ApiError(f"{prefix}strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    if len(text) > _UINT64_DIGITS or int(text) >= 2**64:
        raise ApiError(f"{prefix}strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def parse_option(text: str) -> int:
    """The resourceVersion of a read or a watch, which upstream's error names."""
    return parse_revision(text, f"resourceVersion: Invalid value: {quote(text)}: ")


def check_resource_version(
    scope: ResourceScope, name: str, given: object, revision: int, *, unconditional: bool
) -> None:
    """An update is made on the version that is stored, or on none where the kind allows that."""
    version = parse_revision(str(given or ""))
    if version == 0:
        if not unconditional:
            error = fe.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(scope.group, scope.resource, name, [error])
    elif version != revision:
        raise conflict(scope.group, scope.resource, name, OPTIMISTIC_LOCK)


def check_delete_preconditions(
    scope: ResourceScope, name: str, meta: Object, revision: int, options: DeleteOptions
) -> None:
    kind = scope.kind
    uid = options.precondition_uid
    if uid is not None and uid != meta["uid"]:
        raise conflict(
            scope.group,
            kind,
            name,
            f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated",
        )
    version = options.precondition_resource_version
    if version is not None and version != str(revision):
        raise conflict(
            scope.group,
            kind,
            name,
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({revision}). The object might have been modified",
        )


def deletion_finalizers(current: list[str], options: DeleteOptions, default: str = "background") -> list[str]:
    """The finalizers after a delete call: `orphan` and `foregroundDeletion` follow the propagation policy.

    `default` is the resource's own policy for calls that name none: "background", "orphan", or "unsupported" when the
    garbage collector leaves it alone.
    """
    if default == "unsupported":
        return current
    policy = options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        chosen = ORPHAN in current or FOREGROUND in current
        return [*current, ORPHAN] if default == "orphan" and not chosen else current
    kept = [item for item in current if item not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    elif policy == "Foreground":
        kept.append(FOREGROUND)
    return current if set(kept) == set(current) else kept


def announce_deletion(meta: Object, period: int, asked: int | None, now: str) -> None:
    """Mark an object that is given time to end.

    `period` is what the object's rules allow now, `asked` what the call named (seconds); `now` in RFC 3339. A second
    call may only shorten the period.
    """
    present = meta.get("deletionGracePeriodSeconds")
    if meta.get("deletionTimestamp") is not None:
        if not present or asked is None or asked >= present:
            return
        begun = times.parse_time(meta["deletionTimestamp"]) - timedelta(seconds=present)
        meta["deletionTimestamp"] = times.format_time(begun + timedelta(seconds=asked))
        meta["deletionGracePeriodSeconds"] = asked
        return
    meta["deletionTimestamp"] = times.format_time(times.parse_time(now) + timedelta(seconds=period))
    meta["deletionGracePeriodSeconds"] = period
    if meta.get("generation", 0) > 0:
        meta["generation"] += 1


def mark_deleting(meta: Object, now: str) -> None:
    """Set the deletion timestamp once; the first mark counts as a change of the desired state."""
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = now
    if "deletionGracePeriodSeconds" not in meta:
        if meta.get("generation", 0) > 0:
            meta["generation"] += 1
        meta["deletionGracePeriodSeconds"] = 0
