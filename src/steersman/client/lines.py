"""Splits a stream of byte chunks into lines of any length."""

from __future__ import annotations


class LineSplitter:
    """Feed it chunks as they arrive; it gives the lines that are complete.

    There is no limit on a line's length: a watch event is as large as its object. The parts of an unfinished line are
    kept apart and joined once, so that a line of n chunks costs n steps and not n squared.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their line ends; empty lines are left out."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line and not line.isspace()]

    def rest(self) -> bytes:
        """What has arrived after the last line end: a line that was cut short when the stream has ended."""
        return b"".join(self._parts)
