"""How much history a store keeps, and when it compacts by itself."""

from __future__ import annotations

from collections import deque

from steersman._util.dataclass import dataclass

_MARKS = 16


@dataclass(frozen=True, slots=True)
class History:
    """What automatic compaction leaves readable.

    At least the last `revisions` revisions, and at least everything that was overwritten or deleted in the last
    `seconds` seconds (kube-apiserver compacts etcd every 5 minutes, leaving 5 to 10 minutes). The time before a
    restart does not count. The current value of a key is always kept.
    """

    revisions: int = 10_000
    seconds: float = 300.0

    def __post_init__(self) -> None:
        if self.revisions < 0 or self.seconds < 0:
            raise ValueError("history cannot be negative")


class HistoryKeeper:
    """Says to which revision a store is to compact; asked after writes, with the time given."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._step = max(1, history.revisions // 10)
        self._marks: deque[tuple[float, int]] = deque()
        self._aged = 0

    def target(self, revision: int, compacted: int, now: float) -> int:
        """The revision to compact to, at least a step above `compacted`; 0 if it is not time.

        `revision` is the current one, `now` a monotonic time in seconds.
        """
        marks, seconds = self._marks, self._history.seconds
        if not marks or now - marks[-1][0] >= seconds / _MARKS:
            marks.append((now, revision))
        while marks and marks[0][0] <= now - seconds:
            self._aged = marks.popleft()[1]
        target = min(self._aged, revision - self._history.revisions)
        return target if target - compacted >= self._step else 0
