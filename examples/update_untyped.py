"""Sets spec.version of the MyApp `example-myapp` to the current time, without a model: objects are dicts.

    kubectl apply -f examples/myapp-crd.yaml -f examples/example-myapp.yaml
    python examples/update_untyped.py

The steps are spelled out here: read, change, put back what was read, and do it again after a Conflict; five tries, one
second apart. `client.modify`, as in update_typed.py, does the same in one call, and tells who won. Exit codes: 0
updated, 1 failed, 2 given up because every try ended in a conflict.
"""

import asyncio
import sys
from datetime import UTC, datetime

import steersman as st

TRIES = st.Backoff(steps=5, duration=1.0)
MY_APP = st.Resource("myorg.io/v1", "MyApp")


async def update(client: st.Client) -> st.Object:
    app = await client.get(MY_APP, "example-myapp", namespace="default")
    app["spec"]["version"] = datetime.now(UTC).isoformat(timespec="seconds")
    return await client.update(app)


def lost(error: st.Conflict, attempt: int) -> None:
    print(f"conflict in attempt {attempt} of {TRIES.steps}: {error}", file=sys.stderr)


async def main() -> int:
    try:
        async with st.Client() as client:
            app = await st.retry_on_conflict(lambda: update(client), TRIES, on_conflict=lost)
    except st.Conflict as error:
        print(f"given up after {TRIES.steps} conflicts: {error}", file=sys.stderr)
        return 2
    except (st.ApiError, st.ClientError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    print(f"spec.version is now {app['spec']['version']}, at resourceVersion {app['metadata']['resourceVersion']}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
