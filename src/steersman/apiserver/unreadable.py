"""Stored objects that cannot be read: their conversion to the version that was asked for failed, or they are encrypted.

Source: apiserver `pkg/storage/errors.go`, `pkg/storage/etcd3/{store,corrupt_obj_deleter}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman._util.dataclass import dataclass
from steersman.apimachinery.errors import ApiError, InternalError, StoreReadError, details, qualified

MOST_CAUSES = 100
"""How many objects of a list are named."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One object that could not be read: its place in the store (`/GROUP/PLURAL/...`), its revision, and why."""

    key: str
    revision: int
    why: str
    what: str = "object not decodable"

    @property
    def plain(self) -> str:
        return f"{self.what} revision={self.revision}: {self.why}"

    def text(self, prefix: str = "") -> str:
        key = prefix + self.key
        return (
            f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {self.plain}"
        )


class Unreadable(InternalError):
    """As a read or delete of one object tells it; a write and a list have other words."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = failures
        text = failures[0].text()
        super().__init__(f"Internal error occurred: {text}", details={"causes": [{"message": text}]})

    def of_write(self) -> ApiError:
        return ApiError(self.failures[0].plain)

    def of_answer(self) -> ApiError:
        """What was written is stored, and only its answer failed."""
        return ApiError(self.failures[0].why)

    def of_list(self, group: str, resource: str) -> StoreReadError:
        told = self.failures[:MOST_CAUSES]
        causes = [
            {
                "reason": "UnexpectedServerResponse",
                "message": failure.text("/registry"),
                "field": f"/registry{failure.key}",
            }
            for failure in told
        ]
        if len(self.failures) > len(told):
            causes.append({"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"})
        message = f"failed to read one or more {qualified(group, resource)} from the storage: {causes[0]['message']}"
        if len(told) > 1:
            message += f" (and {len(told) - 1} more)"
        return StoreReadError(message, details=details(group, resource, "list", causes=causes))
