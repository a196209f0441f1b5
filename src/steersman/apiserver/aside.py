"""Work on expressions that may take long: on the event loop while it is short, in a thread when it turns out not to be.

What is done in a thread still takes turns with the event loop; there are few threads, so that its turn comes soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from steersman.apimachinery.schema.patience import Patience, TakesLong, patience

P = ParamSpec("P")
T = TypeVar("T")
_COST: Final = 20_000
"""What rules may cost on the event loop: milliseconds, some tens where every function is a slow one."""
_TEXT: Final = 1_000
"""Code points of expressions that may be compiled on the event loop: some tens of milliseconds."""
_threads: Final = ThreadPoolExecutor(2, "expressions")


async def patiently(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns. It is begun on the event loop, and once more in a thread if it takes long.

    So it must bear to be broken off, and read nothing that changes meanwhile.
    """
    given = patience.set(Patience(_COST, _TEXT))
    try:
        return work(*args, **kwargs)
    except TakesLong:
        pass
    finally:
        patience.reset(given)
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: work(*args, **kwargs))
