"""Two servers that are asked the same, over connections that stay open."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from .values import Raw, write

VERSION_OF = "@resourceVersion of {}@"  # in a body: the version that the server gave to an object last
UID_OF = "@uid of {}@"


@dataclass(frozen=True)
class Ask:
    """One request. `repeatable` says that asking again changes nothing."""

    method: str
    path: str
    body: str | bytes | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = "application/json"
    subject: str = ""  # the object's path, whose resourceVersion the answer tells
    agent: str = "fuzz/1"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        body = self.body.decode(errors="backslashreplace") if isinstance(self.body, bytes) else self.body
        return f"{self.method} {self.path}{'?' if query else ''}{query}\n  {self.content_type}: {body}"


@dataclass(frozen=True)
class Answer:
    """A status code, warnings in their order, and a body whose numbers are Raw."""

    status: int
    warnings: tuple[str, ...]
    body: Any

    def __str__(self) -> str:
        return f"{self.status} {list(self.warnings)} {write(self.body)}"


class Server:
    """A server, and the resourceVersions that it gave."""

    def __init__(self, url: str, token: str, connections: int) -> None:
        connector = aiohttp.TCPConnector(limit=connections, ssl=False, keepalive_timeout=4)
        self._session = aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"})
        self._url = url
        self._versions: dict[str, str] = {}
        self._uids: dict[str, str] = {}

    async def close(self) -> None:
        await self._session.close()

    async def ask(self, ask: Ask) -> Answer:
        """The answer, with the object's resourceVersion told as new or unchanged."""
        url = URL(self._url + ask.path, encoded=True).with_query(ask.query)
        headers = {"Content-Type": ask.content_type, "Accept": ask.accept, "User-Agent": ask.agent, **ask.headers}
        for _ in range(2):
            try:
                request = self._session.request(ask.method, url, data=self._filled(ask), headers=headers)
                async with await request as response:
                    raw = await response.read()
                warnings = tuple(response.headers.getall("Warning", ()))
                return Answer(response.status, warnings, self._marked(parsed(raw), ask))
            except aiohttp.ServerDisconnectedError:  # it closed a connection that was idle, or has a panic each time
                sys.stderr.write(f"{self._url} hung up on {ask.method} {ask.path}\n")
        return Answer(0, (), "no answer")

    def _filled(self, ask: Ask) -> bytes | None:
        if ask.body is None or isinstance(ask.body, bytes):
            return ask.body
        body = ask.body.replace(VERSION_OF.format(ask.subject), self._versions.get(ask.subject, "1"))
        return body.replace(UID_OF.format(ask.subject), self._uids.get(ask.subject, "")).encode(
            "utf-8", "surrogatepass"
        )

    def _marked(self, body: Any, ask: Ask) -> Any:
        meta = body.get("metadata") if isinstance(body, dict) and body.get("kind") != "Status" else None
        if isinstance(meta, dict) and "resourceVersion" in meta and ask.subject:
            version = str(meta["resourceVersion"])
            before = self._versions.get(ask.subject)
            meta["resourceVersion"] = "<as before>" if version == before else "<new>"
            if "dryRun" not in ask.query:
                self._versions[ask.subject] = version
                self._uids[ask.subject] = str(meta.get("uid", ""))
        return body


def parsed(raw: bytes) -> Any:
    """JSON whose numbers are Raw; other bodies are texts."""
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_float=Raw, parse_int=Raw, parse_constant=Raw)
    except ValueError:
        return text


async def ask_both(pair: tuple[Server, Server], ask: Ask) -> tuple[Answer, Answer]:
    """What the reference and the server under test answer."""
    reference, server = await asyncio.gather(*(each.ask(ask) for each in pair))
    return reference, server
