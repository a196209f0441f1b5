"""For tests: a real control plane in this process, assertions that become true, objects that look like something.

The fixtures are in `plugin`, which pytest finds by itself. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.apiserver.faults import Fault as Fault
    from steersman.apiserver.faults import FaultPlan as FaultPlan
    from steersman.testing.apiserver import ApiServer as ApiServer
    from steersman.testing.clock import advance as advance
    from steersman.testing.matching import differences as differences
    from steersman.testing.matching import like as like
    from steersman.testing.operators import running as running
    from steersman.testing.polling import eventually as eventually
    from steersman.testing.polling import eventually_async as eventually_async
    from steersman.testing.thread import ThreadedControlPlane as ThreadedControlPlane
    from steersman.testing.thread import control_plane as control_plane

_MODULES = {
    "ApiServer": "apiserver",
    "Fault": "steersman.apiserver.faults",
    "FaultPlan": "steersman.apiserver.faults",
    "advance": "clock",
    "ThreadedControlPlane": "thread",
    "control_plane": "thread",
    "differences": "matching",
    "eventually": "polling",
    "eventually_async": "polling",
    "like": "matching",
    "running": "operators",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    value = getattr(importlib.import_module(module if "." in module else f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
