"""Epochs: a definition's form may change while requests of its old form are under way.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (crdInfo.waitGroup), which lets such requests
end before their storage goes.
"""

from __future__ import annotations

from collections.abc import Callable


class EpochEnded(Exception):
    """The resource has another form now, or is gone: the request is to be answered anew."""


class Epoch:
    """The time for which a resource has one form.

    A write is begun before it goes to the store and ended when it is durable; once the epoch is over none begins.
    """

    def __init__(self) -> None:
        self._over = False
        self._writes = 0
        self._last = 0
        self._waiting: list[Callable[[int], None]] = []

    def begin(self) -> None:
        """A write goes to the store. Raises EpochEnded."""
        if self._over:
            raise EpochEnded
        self._writes += 1

    def end(self, revision: int) -> None:
        """A write is durable at a revision, or has failed (0)."""
        self._writes -= 1
        self._last = max(self._last, revision)
        if not self._writes:
            self._tell()

    def close(self) -> None:
        """From now on no write begins."""
        self._over = True

    def when_quiet(self, tell: Callable[[int], None]) -> None:
        """Call `tell`, now or as soon as no write is under way, with the revision of the last one."""
        self._waiting.append(tell)
        if not self._writes:
            self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell(self._last)
