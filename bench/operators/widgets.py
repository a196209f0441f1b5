"""The Widget operator of the comparison of runtimes (bench/README.md), on steersman."""

import os

import steersman as st

COUNTER = os.open(os.environ["BENCH_COUNTER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)


class Spec(st.Model):
    replicas: int = 0


class Status(st.Model):
    observed_generation: int = 0
    ready: int = 0


@st.custom_resource("bench.example.com/v1")
class Widget(st.CustomResource[Spec, Status]): ...


async def reconcile(ctx: st.Context, widget: Widget) -> None:
    os.write(COUNTER, b".")
    await ctx.create_or_update(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{widget.metadata.name}-cfg"},
            "data": {"replicas": str(widget.spec.replicas)},
        }
    )
    widget.status.ready = widget.spec.replicas
    widget.status.observed_generation = widget.metadata.generation


elected = os.environ.get("BENCH_LEADER_ELECT") == "1"
manager = st.Manager(
    name="widgets",
    watch_default=st.CacheScope(namespaces=["bench"]),
    leader_election=st.Election("widgets", namespace="bench") if elected else None,
)
manager.controller(Widget, reconcile, concurrency=int(os.environ.get("BENCH_WORKERS", "10"))).owns(
    st.Resource("v1", "ConfigMap")
)

if __name__ == "__main__":
    manager.run()
