"""Records the audit events of a kube-apiserver that runs with policy.yaml and `--audit-log-path`.

python -m tests.apiserver.audit.record URL CA_FILE AUDIT_LOG
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

import aiohttp
import yarl
from tests.apiserver.audit.steps import CRD, STEPS, Step, normalised

RECORDED = Path(__file__).with_name("recorded.json")


async def ask(session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext, step: Step) -> str:
    """Play a step; the id of its events."""
    target = yarl.URL(url + step.path, encoded=True)
    async with session.request(
        step.method, target, data=step.sent or None, headers=step.all_headers, ssl=tls, skip_auto_headers=("Accept",)
    ) as answer:
        await answer.read()
        return answer.headers["Audit-Id"]


def _lines(log: str) -> list[str]:
    return Path(log).read_text().splitlines()


async def main(url: str, ca: str, log: str) -> None:
    tls = ssl.create_default_context(cafile=ca)
    before = len(await asyncio.to_thread(_lines, log))
    async with aiohttp.ClientSession() as session:
        await ask(session, url, tls, Step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD))
        await asyncio.sleep(3)
        ids = [await ask(session, url, tls, step) for step in STEPS]
    await asyncio.sleep(1)
    lines = (await asyncio.to_thread(_lines, log))[before:]
    found = [[normalised(json.loads(line)) for line in lines if f'"auditID":"{audit_id}"' in line] for audit_id in ids]
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
