"""`python -m steersman.envtest PROGRAM ...`: what the stand-ins' scripts run."""

from __future__ import annotations

import importlib
import sys

PROGRAMS = {"kube-apiserver": "apiserver", "etcd": "etcd", "kubectl": "kubectl"}


def main(arguments: list[str]) -> int:
    """Run the stand-in that the first argument names; gives its exit status."""
    module = PROGRAMS.get(arguments[0]) if arguments else None
    if module is None:
        print(f"name a program: one of {', '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    status: int = importlib.import_module(f"steersman.envtest.{module}").main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
