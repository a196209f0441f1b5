"""An operator in one file, on the client's watch alone: keeps the status of every MyApp in step with its spec.

    kubectl apply -f examples/myapp-crd.yaml
    python examples/myapp_operator.py      # until SIGTERM or Ctrl-C
    kubectl apply -f examples/example-myapp.yaml && kubectl get myapps

It is level-based: an event only says which object to look at, and what is done follows from the object as it is read
then. The status is written only if it differs, so the operator's own writes come to rest.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable

from pydantic import Field

import steersman as st

log = logging.getLogger("operator")

RETRY = st.Backoff(steps=1, duration=0.5, factor=2.0, jitter=0.1, cap=60.0)


class MyAppSpec(st.Model):
    version: str = ""
    replicas: int = 1


class MyAppStatus(st.Model):
    observed_generation: int = 0
    version: str = ""
    replicas: int = 0
    conditions: list[st.Condition] = Field(default_factory=list)


@st.custom_resource("myorg.io/v1")
class MyApp(st.CustomResource[MyAppSpec, MyAppStatus]): ...


def observe(app: MyApp) -> None:
    """Brings the status to what the spec asks for: the place for the real work."""
    generation = app.metadata.generation
    app.status.observed_generation = generation
    app.status.version = app.spec.version
    app.status.replicas = app.spec.replicas
    message = f"version {app.spec.version} is running"
    ready = st.Condition(
        type="Ready", status="True", reason="UpToDate", message=message, observed_generation=generation
    )
    st.set_condition(app.status.conditions, ready)


class Operator:
    """One worker for each object that needs attention: never two for the same one."""

    def __init__(self, client: st.Client, change: Callable[[MyApp], None] = observe) -> None:
        self._client = client
        self._change = change
        self._workers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._again: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            async with self._client.watch(MyApp) as events:
                async for event in events:
                    if event.type != "DELETED":
                        self._look_at((event.object.metadata.namespace, event.object.metadata.name))
        finally:
            for worker in self._workers.values():
                worker.cancel()
            await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _look_at(self, key: tuple[str, str]) -> None:
        if key in self._workers:
            self._again.add(key)
            return
        self._workers[key] = asyncio.create_task(self._work(key))

    async def _work(self, key: tuple[str, str]) -> None:
        failures = 0
        try:
            while True:
                self._again.discard(key)
                try:
                    await self._reconcile(*key)
                except (st.ApiError, st.ClientError) as error:
                    delay = RETRY.delay(failures)
                    failures += 1
                    log.warning("%s/%s: %s; trying again in %.1f s", *key, error, delay)
                    await asyncio.sleep(delay)
                    continue
                if key not in self._again:
                    return
        finally:
            del self._workers[key]

    async def _reconcile(self, namespace: str, name: str) -> None:
        with contextlib.suppress(st.NotFound):  # deleted meanwhile: nothing is left to do
            app = await self._client.modify(MyApp, name, self._change, namespace=namespace, subresource="status")
            log.info("%s/%s: status is at generation %d", namespace, name, app.status.observed_generation)


async def main() -> None:
    async with st.Client(field_manager="myapp-operator") as client:
        running = asyncio.ensure_future(Operator(client).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, running.cancel)
        log.info("watching")
        with contextlib.suppress(asyncio.CancelledError):
            await running
    log.info("stopped")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        asyncio.run(main())
    except st.ClientError as error:  # no configuration, no server: one line says what to do
        sys.exit(f"myapp_operator: {error}")
