"""The network between clients and server, where everything is in flight until the schedule lets it arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from steersman.testing.explore.schedule import BREAK, Decider
from steersman.testing.explore.story import Story


@dataclass(eq=False, slots=True)
class Flow:
    """Messages that arrive in the order in which they were sent: a request and its answer, or a watch."""

    number: int
    actor: str
    waiting: deque[Message] = field(default_factory=deque)


@dataclass(eq=False, slots=True)
class Message:
    number: int
    arrive: Callable[[], None]
    broken: Callable[[], None]
    text: Callable[[], str]
    hold: int
    held: int


class Network:
    """Messages in flight. They arrive when no task can go on by itself: the oldest first that is not held back.

    A message that is held back arrives after so many other things have happened, which may be that time passes, if
    nothing else can happen. All of these times together are at most `patience` seconds, so that what is held back
    is a slow network and not a broken one. The connections of the actors in `breaks` may break.
    """

    def __init__(self, decider: Decider, story: Story, patience: float, breaks: Collection[str] = ()) -> None:
        self._decider = decider
        self._story = story
        self._patience = patience
        self._breaks = frozenset(breaks)
        self._flows: dict[Flow, None] = {}
        self._messages = 0
        self._flow_numbers = 0
        self.decided = 0
        """How many messages a schedule could name."""
        self.in_order = False
        """From now on nothing is held back: the test is over."""

    def flow(self, actor: str) -> Flow:
        self._flow_numbers += 1
        return Flow(self._flow_numbers, actor)

    def send(self, flow: Flow, text: Callable[[], str], arrive: Callable[[], None], broken: Callable[[], None]) -> None:
        """Send a message; `arrive` is called when it arrives, or `broken` in its place, when nothing else of this flow
        arrives either. `text` tells it in the story."""
        self._messages += 1
        if not self.in_order:
            self.decided = self._messages
        fragile = flow.actor.partition("#")[0] in self._breaks
        hold = 0 if self.in_order else self._decider.hold(self._messages, flow.number, fragile=fragile)
        flow.waiting.append(Message(self._messages, arrive, broken, text, hold, hold))
        self._flows[flow] = None

    def idle(self, wait: float | None) -> bool:
        """See `loop.Idle`."""
        if not self._flows:
            return False
        free = [flow for flow in self._flows if flow.waiting[0].hold <= 0]
        if free or self.in_order:
            flow = min(free or self._flows, key=lambda flow: flow.waiting[0].number)
        elif wait is not None and wait <= self._patience:
            self._patience -= wait
            self._step()
            return False
        else:
            flow = min(self._flows, key=lambda flow: (flow.waiting[0].hold, flow.waiting[0].number))
        message = flow.waiting.popleft()
        breaks = message.held == BREAK
        if breaks:
            flow.waiting.clear()
        if not flow.waiting:
            del self._flows[flow]
        self._step()
        self._story.tell(flow.actor, message.text, message.number, message.held)
        (message.broken if breaks else message.arrive)()
        return True

    def _step(self) -> None:
        for flow in self._flows:
            for message in flow.waiting:
                message.hold -= 1
