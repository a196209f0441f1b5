"""What an API server makes of expressions: as rules of a definition, and on objects.

Every expression becomes a rule. One that is no boolean becomes `[expression] == []`, which never holds, with a message
that shows its value. Rules are numbered by their messages, so that one answer tells about many.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from steersman.net.tls import client_ssl_context

Ask = Callable[[str, str, Any], Awaitable[tuple[int, Any]]]
"""Sends a method, a path and a body; the status and the decoded body of the answer."""

GROUP = "cel.example.com"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HEAD = re.compile(r'Invalid value: \{"Rule":.*?"OptionalOldSelf":null\}: ', re.DOTALL)
_RULE = re.compile(r"x-kubernetes-validations\[(\d+)\]")
_NOT_BOOLEAN = "cel expression must evaluate to a bool"
_SELF_TYPE = re.compile(r"selfType[0-9]+")


@dataclass
class Finding:
    """What is told about one expression: why it cannot be a rule, or what it gives for each input ("": it holds)."""

    expression: str
    refused: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        answer = {"refused": self.refused} if self.refused else {"results": self.results}
        return {"expression": self.expression, **answer}


async def ask_all(
    ask: Ask, schema: Any, inputs: Sequence[Any], expressions: Sequence[str], *, size: int = 60
) -> list[Finding]:
    """What a server says about expressions on `self` of a schema, `size` of them in each definition."""
    findings = [Finding(expression) for expression in expressions]
    for number, chunk in enumerate(_chunks(findings, size)):
        rules = [{"rule": finding.expression} for finding in chunk]
        for index, text in await _refusals(ask, number, schema, rules):
            chunk[index].refused.append(text)
    candidates = [each for each in findings if not each.refused or _is_value(each)]
    for number, chunk in enumerate(_chunks(candidates, size if inputs else 0)):
        await _evaluate(ask, number, schema, inputs, chunk)
    return findings


def _chunks(findings: list[Finding], size: int) -> Iterator[list[Finding]]:
    for start in range(0, len(findings) if size else 0, size or 1):
        yield findings[start : start + size]


def _is_value(finding: Finding) -> bool:
    return all(text.endswith(_NOT_BOOLEAN) for text in finding.refused)


def _rule(number: int, finding: Finding, *, shown: bool) -> dict[str, str]:
    """The rule for a finding; `shown`: with a message that has the value."""
    source = finding.expression
    if not finding.refused:
        return {"rule": source, "message": f"#{number}"}
    rule = {"rule": f"[{source}\n] == []", "message": f"#{number}"}
    if shown:
        rule["messageExpression"] = f"'#{number} %s'.format([{source}\n])"
    return rule


async def _refusals(ask: Ask, number: int, schema: Any, rules: list[dict[str, str]]) -> list[tuple[int, str]]:
    """(index of the rule, error) of a definition with these rules."""
    status, body = await ask("POST", f"{_DEFINITIONS}?dryRun=All", _definition(f"Check{number}", schema, rules))
    if status == 201:
        return []
    assert status == 422, body
    out = []
    for cause in body["details"]["causes"]:
        found = _RULE.search(cause["field"])
        # what is said of the whole schema is about its one rule
        if found is not None or len(rules) == 1:
            out.append((int(found[1]) if found else 0, _HEAD.sub("", _normal(cause["message"]))))
    return out


async def _evaluate(ask: Ask, number: int, schema: Any, inputs: Sequence[Any], chunk: list[Finding]) -> None:
    rules = [_rule(index, finding, shown=True) for index, finding in enumerate(chunk)]
    for index, _ in await _refusals(ask, number, schema, rules):
        rules[index] = _rule(index, chunk[index], shown=False)
    refused = await _refusals(ask, number, schema, rules)
    kept = [index for index in range(len(chunk)) if index not in {each for each, _ in refused}]
    definition = _definition(f"Subject{number}", schema, [rules[index] for index in kept])
    status, body = await ask("POST", _DEFINITIONS, definition)
    assert status == 201, body
    plural = definition["spec"]["names"]["plural"]
    objects = f"/apis/{GROUP}/v1/{plural}"
    try:
        await _until_served(ask, objects)
        for value in inputs:
            told = await _results(ask, f"{objects}?dryRun=All", definition["spec"]["names"]["kind"], value)
            for index in kept:
                chunk[index].results.append(told.pop(index, ""))
            assert not told, told
    finally:
        await ask("DELETE", f"{_DEFINITIONS}/{plural}.{GROUP}", None)
    for index in kept:
        chunk[index].refused = []


async def _until_served(ask: Ask, path: str) -> None:
    for _ in range(600):
        if (await ask("GET", path, None))[0] == 200:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError(path)


async def _results(ask: Ask, path: str, kind: str, value: Any) -> dict[int, str]:
    """What rules say about an object, by their numbers."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "subject"}, "spec": value}
    status, answer = await ask("POST", path, body)
    if status == 201:
        return {}
    out: dict[int, str] = {}
    for cause in answer["details"]["causes"]:
        text = _normal(cause["message"])
        found = re.search(r"#(\d+)( |$)", text)
        assert found is not None, text
        out[int(found[1])] = text[found.end() :] or _failure(text[: found.start()])
    return out


def _failure(text: str) -> str:
    """Why a rule could not be evaluated, or that it does not hold."""
    return (
        text.removeprefix('Invalid value: "object": ').removesuffix(" evaluating rule: ") if "rule: " in text else "no"
    )


def _definition(kind: str, schema: Any, rules: list[dict[str, str]]) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    spec = {**schema, "x-kubernetes-validations": rules}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


def _normal(text: str) -> str:
    return _SELF_TYPE.sub("selfType", text)


def asking(session: aiohttp.ClientSession) -> Ask:
    """A way to ask the server that a session is with."""

    async def ask(method: str, path: str, body: Any) -> tuple[int, Any]:
        async with session.request(method, path, json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    return ask


@asynccontextmanager
async def server(url: str, token: str, ca: bytes) -> AsyncIterator[Ask]:
    """A way to ask the server at a URL."""
    connector = aiohttp.TCPConnector(ssl=client_ssl_context(ca))
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
        yield asking(session)


def read_expressions(text: str) -> list[str]:
    """The expressions of a file: one a line; lines that begin with `# ` are headings."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]


def dump(findings: list[Finding]) -> str:
    """A recording: one line for each expression."""
    lines = ",\n".join(json.dumps(each.record(), ensure_ascii=False) for each in findings)
    return f"[\n{lines}\n]\n"
