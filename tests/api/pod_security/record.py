"""Records what Pods violate: `python -m tests.api.pod_security.record URL TOKEN CA_FILE` asks a kube-apiserver.

The Pods are those in `recorded.json`, with the defaults that count. Each is put into a PodTemplate, in namespaces that
warn of every standard; what is answered is written to the file again.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from steersman.api.pod_security.levels import BASELINE, PREFIX, RESTRICTED
from steersman.net.tls import client_ssl_context

RECORDED = Path(__file__).parent / "recorded.json"
VERSIONS = (*(f"v1.{minor}" for minor in (0, 7, 8, *range(18, 38), 99)), "latest")
LEVELS = (BASELINE, RESTRICTED)
_WARNING = re.compile(r'299 - "would violate PodSecurity \\"([^"\\]+)\\": (.*)"', re.DOTALL)


async def _namespace(session: aiohttp.ClientSession, level: str, version: str) -> str:
    name = f"standard-{secrets.token_hex(4)}"
    labels = {f"{PREFIX}warn": level, f"{PREFIX}warn-version": version}
    body = {"metadata": {"name": name, "labels": labels}}
    async with session.post("/api/v1/namespaces", json=body) as response:
        response.raise_for_status()
    return name


async def _verdict(session: aiohttp.ClientSession, namespace: str, pod: Any) -> str:
    body = {"metadata": {"name": "x"}, "template": {"metadata": pod["metadata"], "spec": pod["spec"]}}
    async with session.post(f"/api/v1/namespaces/{namespace}/podtemplates?dryRun=All", json=body) as response:
        response.raise_for_status()
        warnings = response.headers.getall("Warning", [])
    found = [match[2] for match in map(_WARNING.fullmatch, warnings) if match]
    return re.sub(r"\\(.)", r"\1", found[0]) if found else ""


async def _history(
    session: aiohttp.ClientSession, namespaces: Mapping[tuple[str, str], str], level: str, pod: Any
) -> dict[str, str]:
    """The verdicts of a level, each by the first of the versions that it was given for."""
    history: dict[str, str] = {}
    last = None
    for version in VERSIONS:
        verdict = await _verdict(session, namespaces[level, version], pod)
        if verdict != last:
            history[version] = last = verdict
    return history


async def main(url: str, token: str, ca: bytes) -> None:
    pods = json.loads(RECORDED.read_text())
    connector = aiohttp.TCPConnector(ssl=client_ssl_context(ca), limit=8)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, connector=connector, headers=headers) as session:
        namespaces = {
            (level, version): await _namespace(session, level, version) for level in LEVELS for version in VERSIONS
        }
        for pod in pods:
            pod["verdicts"] = {level: await _history(session, namespaces, level, pod) for level in LEVELS}
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(pod) for pod in pods) + "\n]\n")


if __name__ == "__main__":
    given_url, given_token, ca_file = sys.argv[1:]
    asyncio.run(main(given_url, given_token, Path(ca_file).read_bytes()))
