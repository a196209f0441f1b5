"""An operator in one file: gives every MyApp a ConfigMap of its own, and tells in its status how far it is.

    kubectl apply -f examples/myapp-crd.yaml
    steersman run examples/myapp_operator.py      # until SIGTERM or Ctrl-C
    kubectl apply -f examples/example-myapp.yaml && kubectl get myapps,configmaps

It runs on any cluster. Change or delete the ConfigMap: it is put right at once. Delete the MyApp: both are gone.
"""

from pydantic import Field

import steersman as st


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


def settings_of(app: MyApp) -> st.Object:
    """What the app's processes are to know."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{app.metadata.name}-settings"},
        "data": {"version": app.spec.version, "replicas": str(app.spec.replicas)},
    }


async def reconcile(ctx: st.Context, app: MyApp) -> None:
    """Called whenever the app or its ConfigMap has changed; makes the cluster what the spec says."""
    async with ctx.finalizing("myorg.io/cleanup") as deleting:
        if deleting:
            ctx.log.info("cleaning up after version %s", app.spec.version)
            return

    _, done = await ctx.create_or_update(settings_of(app))
    if done != "unchanged":
        ctx.event("SettingsWritten", f"the settings of version {app.spec.version} are {done}")

    status, generation = app.status, app.metadata.generation
    status.observed_generation = generation
    status.version, status.replicas = app.spec.version, app.spec.replicas
    message = f"version {app.spec.version} is running"
    ready = st.Condition(
        type="Ready", status="True", reason="UpToDate", message=message, observed_generation=generation
    )
    st.set_condition(status.conditions, ready)  # the status is written after this function, if it has changed


manager = st.Manager(name="myapp-operator", leader_election="myapp-operator")
manager.controller(MyApp, reconcile).owns(st.Resource("v1", "ConfigMap"))

if __name__ == "__main__":
    manager.run()
