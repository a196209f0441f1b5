"""Plays a recorded scenario, a list of steps with their expected answers, against a server.

A step is one of: a request; `sleep`; `await` (poll until an answer is as wanted); `watch` (open a stream) and `events`
(take from it); `script` (a webhook's answers) and `calls` (what it was asked).
"""

from __future__ import annotations

import asyncio
import json
import random
import string
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from .normalise import Normaliser, differences, look_up, remove, substitute
from .webhook import Webhook

POLL_FIRST, POLL_MOST = 0.005, 0.1  # seconds between two polls of an `await`
SUFFIX_LENGTH = 6  # as recorded: some messages cut a text after so many characters
RAW_HEADERS = ("User-Agent", "Accept-Encoding", "Content-Type")  # sent only if a scenario names them
Scenario = dict[str, Any]
Step = dict[str, Any]


@dataclass(frozen=True)
class Patience:
    """The most seconds that a step takes; a scenario may ask for less."""

    sleep: float = 1.0
    wait: float = 20.0
    events: float = 10.0
    request: float = 30.0


@dataclass(frozen=True)
class Target:
    """Where to send requests: a session on each server, any of which is asked, and the token of each user (`admin` is
    the default one)."""

    sessions: Sequence[aiohttp.ClientSession]
    tokens: Mapping[str, str]

    def any_session(self) -> aiohttp.ClientSession:
        return random.choice(self.sessions)

    async def send(self, step: Step, session: aiohttp.ClientSession, timeout: float = 30.0) -> aiohttp.ClientResponse:
        """Send a step's request. The caller reads and releases the answer."""
        headers, body = {"Accept": "application/json"}, None
        if "rawBody" in step or "body" in step:
            body = (step["rawBody"] if "rawBody" in step else json.dumps(step["body"])).encode()
            headers["Content-Type"] = "application/json"
        if token := self.tokens.get(step.get("as", "admin")):
            headers["Authorization"] = f"Bearer {token}"
        headers |= {name: str(value) for name, value in (step.get("headers") or {}).items()}
        return await session.request(
            step.get("method", "GET"),
            URL(_path(step), encoded=True),
            data=body,
            headers=headers,
            skip_auto_headers=RAW_HEADERS,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
        )


def _path(step: Step) -> str:
    pairs = [
        (name, each if isinstance(each, str) else json.dumps(each))
        for name, value in (step.get("query") or {}).items()
        for each in (value if isinstance(value, list) else [value])
    ]
    path: str = step["path"]
    return path + ("&" if "?" in path else "?") + urlencode(pairs) if pairs else path


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


class Watch:
    """An open watch. Its events are collected as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        with suppress(aiohttp.ClientError, TimeoutError):  # the stream was cut: it is closed, too
            if self.status != 200:
                self._events.put_nowait(_decoded(await self._response.read()))
                return
            buffer = b""
            async for chunk in self._response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in filter(bytes.strip, lines):
                    self._events.put_nowait(json.loads(line))
        self._events.put_nowait({"closed": True})

    async def take(self, count: int, seconds: float) -> list[Any]:
        """The next `count` events; fewer if the stream ends (a last {"closed": true}) or `seconds` are over."""
        taken: list[Any] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(taken) < count and (not taken or taken[-1] != {"closed": True}):
                    taken.append(await self._events.get())
        return taken

    async def close(self) -> None:
        self._response.close()
        await asyncio.gather(self._task, return_exceptions=True)


class TimedOutError(Exception):
    """An `await` did not come true; the rest of the scenario makes no sense."""


class Player:
    """Plays one scenario once."""

    def __init__(self, target: Target, webhook: Webhook, patience: Patience) -> None:
        self._target = target
        self._session = target.any_session()
        self._webhook = webhook
        self._patience = patience
        # Groups are told in their order: a recorded one came after apps.
        first = random.choice(string.ascii_lowercase[1:])
        suffix = first + "".join(random.choices(string.ascii_lowercase, k=SUFFIX_LENGTH - 1))
        self._variables: dict[str, Any] = {
            "suffix": suffix,
            "group": f"{suffix}.example.com",
            "ns": f"ns-{suffix}",
            "webhook.url": webhook.url,
            "webhook.ca": webhook.ca_bundle,
            "webhook.base": f"/{suffix}",
        }
        self._sent: list[str] = []
        self._watches: dict[str, Watch] = {}

    async def play(self, scenario: Scenario) -> list[str]:
        """Every difference from what was recorded, a line each."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._variables["ns"]}}
        own_namespace = scenario.get("namespace", True)
        if own_namespace:
            await self._request({"method": "POST", "path": "/api/v1/namespaces", "body": namespace})
        answers = []
        try:
            for step in scenario["steps"]:
                filled = substitute({key: each for key, each in step.items() if key != "expect"}, self._variables)
                answers.append(await self._step(filled))
        except TimedOutError as error:
            return [f"step {len(answers) + 1}: {error}"]
        finally:
            await asyncio.gather(*(watch.close() for watch in self._watches.values()))
            own = [{"path": "/api/v1/namespaces/{{ns}}"}] if own_namespace else []
            for left in [*scenario.get("cleanup", []), *own]:
                with suppress(aiohttp.ClientError, TimeoutError):
                    await self._request({"method": "DELETE", **substitute(left, self._variables)})
        return self._compare(scenario["steps"], answers)

    def _compare(self, steps: list[Step], answers: list[Any]) -> list[str]:
        normalise = Normaliser(self._variables, "".join(self._sent), answers)
        found = []
        for number, (step, answer) in enumerate(zip(steps, answers, strict=True), 1):
            label = step.get("id") or f"{step.get('method', '')} {step.get('path', '')}"
            lines = differences(step.get("expect"), normalise(answer))
            found += [f"step {number} ({label}) {line}" for line in lines]
        return found

    async def _step(self, step: Step) -> Any:
        if "sleep" in step:
            next_second = 1.01 - time.time() % 1  # recorded sleeps wait for a cache or for another second in a time
            await asyncio.sleep(min(step["sleep"], next_second, self._patience.sleep))
        elif "script" in step:
            self._webhook.scripts[step["script"]] = step
        elif "await" in step:
            await self._poll(step["await"])
        elif "calls" in step:
            return {"calls": self._webhook.take_calls(step["calls"])}
        elif "watch" in step:
            watch = self._watches[step["watch"]] = Watch(await self._send(step, 60.0))
            return {"status": watch.status}
        elif "events" in step:
            return await self._take_events(step)
        else:
            return await self._ask(step)
        return None

    async def _take_events(self, step: Step) -> dict[str, Any]:
        watch = self._watches[step["events"]]
        events = await watch.take(step.get("count", 1), min(step.get("timeout", 10), self._patience.events))
        if "quiet" in step:
            more = await watch.take(1, step["quiet"])
            events += [each for each in more if each != {"closed": True} and each.get("type") != "BOOKMARK"]
        if step.get("close"):
            await watch.close()
        answer = {"events": events}
        self._save(step, answer)
        return answer

    async def _ask(self, step: Step) -> dict[str, Any]:
        self._sent += (json.dumps(step.get("body", step.get("rawBody", ""))), step["path"])
        self._sent.append(json.dumps(step.get("query", "")))
        response, raw = await self._request(step)
        answer: dict[str, Any] = {"status": response.status}
        if wanted := step.get("headersOf"):
            answer["headers"] = {name.lower(): _joined(response.headers.getall(name, [])) for name in wanted}
        answer["body"] = body = _decoded(raw) if raw else None
        self._save(step, body)
        if "only" in step:
            answer["body"] = body = {path: look_up(body, path) for path in step["only"]}
        for path in step.get("ignore", []):
            remove(body, path)
        return answer

    def _save(self, step: Step, answer: Any) -> None:
        for name, path in (step.get("save") or {}).items():
            self._variables[name] = look_up(answer, path)

    async def _request(self, step: Step) -> tuple[aiohttp.ClientResponse, bytes]:
        timeout = min(step.get("timeout", 30), self._patience.request)
        async with await self._send(step, timeout) as response:
            return response, await response.read()

    async def _send(self, step: Step, timeout: float) -> aiohttp.ClientResponse:
        """Send to any server, but a read of any state to the one asked last: others may not know all that it does."""
        if (step.get("query") or {}).get("resourceVersion") != "0":
            self._session = self._target.any_session()
        return await self._target.send(step, self._session, timeout)

    async def _poll(self, wanted: Step) -> None:
        """Ask until the answer is as `wanted`. Raises TimedOutError."""
        deadline = time.monotonic() + min(wanted.get("timeout", 20), self._patience.wait)
        pause = POLL_FIRST
        while True:
            response, raw = await self._request({key: each for key, each in wanted.items() if key != "timeout"})
            body = _decoded(raw)
            if _is_as_wanted(wanted, response.status, body):
                return
            if time.monotonic() > deadline:
                raise TimedOutError(f"{wanted} did not come true; the last answer: {response.status} {str(body)[:300]}")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, POLL_MOST)


def _is_as_wanted(wanted: Step, status: int, body: Any) -> bool:
    if "status" in wanted and status == wanted["status"]:
        return True
    if "where" in wanted:
        found = look_up(body, wanted["where"])
        if found == wanted["equals"] if "equals" in wanted else found is not None:
            return True
    if "condition" not in wanted:
        return False
    pair = wanted["condition"], wanted.get("value", "True")
    return any((each["type"], each["status"]) == pair for each in look_up(body, "status.conditions") or [])


def _joined(values: list[str]) -> str | None:
    return ", ".join(values) if values else None
