"""Health, readiness and version.

Source: apiserver `pkg/server/healthz/healthz.go`.
"""

from __future__ import annotations

import platform
import re

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import JSON
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers
from steersman.apiserver.exchange import Answer, Exchange

KUBERNETES = (1, 37, 2)


def health(core: Core, x: Exchange, endpoint: str, check: str) -> Answer:
    """GET /healthz, /livez, /readyz, and of one check below them."""
    checks = dict(core.health_checks(endpoint))
    if check:
        if check not in checks:
            return answers.page_not_found()
        failure = checks[check]
        return answers.text(200, "ok") if failure is None else answers.text(500, f"internal server error: {failure}\n")
    excluded = set(x.info.query.get("exclude", []))
    lines, failed = [], []
    for name, failure in checks.items():
        if name in excluded:
            excluded.discard(name)
            lines.append(f"[+]{name} excluded: ok")
        elif failure is None:
            lines.append(f"[+]{name} ok")
        else:
            failed.append(name)
            lines.append(f"[-]{name} failed: reason withheld")
    if excluded:
        unmatched = ", ".join(f'"{name}"' for name in sorted(excluded))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unmatched}")
    if failed:
        return answers.text(500, "\n".join([*lines, f"{endpoint} check failed\n"]))
    if "verbose" in x.info.query:
        return answers.text(200, "\n".join([*lines, f"{endpoint} check passed\n"]))
    return answers.text(200, "ok")


def version(core: Core, x: Exchange) -> Answer:
    """GET /version: the Kubernetes version whose API this is."""
    from steersman import __version__

    answers.route(x.request.headers.get("accept", ""), (JSON,))
    major, minor, patch = KUBERNETES
    machine = re.sub("x86_64", "amd64", platform.machine())
    content = {
        "major": str(major),
        "minor": str(minor),
        "emulationMajor": str(major),
        "emulationMinor": str(minor),
        "minCompatibilityMajor": str(major),
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v{major}.{minor}.{patch}+steersman-{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{machine}",
    }
    return answers.raw(200, JSON, codec.encode(content))
