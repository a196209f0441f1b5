"""Sets spec.version of the MyApp `example-myapp` to the current time, through a model.

    kubectl apply -f examples/myapp-crd.yaml -f examples/example-myapp.yaml
    python examples/update_typed.py

The write carries the resourceVersion that was read. When somebody else has written in between, the server answers
Conflict, and the object is read again and changed again: five tries, one second apart. Exit codes: 0 updated, 1 failed,
2 given up because every try ended in a conflict.
"""

import asyncio
import sys
from datetime import UTC, datetime

import steersman as st

TRIES = st.Backoff(steps=5, duration=1.0)


class MyAppSpec(st.Model):
    version: str = ""
    replicas: int = 1


class MyAppStatus(st.Model):
    version: str = ""
    replicas: int = 0


@st.custom_resource("myorg.io/v1")
class MyApp(st.CustomResource[MyAppSpec, MyAppStatus]):
    """What the model does not know, here `spec.note`, is kept."""


def set_version(app: MyApp) -> None:
    app.spec.version = datetime.now(UTC).isoformat(timespec="seconds")


def lost(report: st.ConflictReport) -> None:
    print(report, file=sys.stderr)


async def main() -> int:
    try:
        async with st.Client() as client:
            app = await client.modify(
                MyApp, "example-myapp", set_version, namespace="default", backoff=TRIES, on_conflict=lost
            )
    except st.Conflict as error:
        print(f"given up after {TRIES.steps} conflicts: {error}", file=sys.stderr)
        return 2
    except (st.ApiError, st.ClientError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    print(f"spec.version is now {app.spec.version}, at resourceVersion {app.metadata.resource_version}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
