import asyncio
from pathlib import Path

from ..conftest import running

GROUP = "admissionregistration.k8s.io"
POLICIES = f"/apis/{GROUP}/v1/validatingadmissionpolicies"
MERGE = {"Content-Type": "application/merge-patch+json"}


def policy(expression):
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec}


def checked(generation):
    return lambda obj: obj and (obj.get("status") or {}).get("observedGeneration") == generation


async def test_each_generation_of_a_policy_is_checked(apiserver, until):
    await apiserver.request("POST", POLICIES, policy("object.spec.nothing == 1"))
    first = await until("validatingadmissionpolicies", "p", checked(1), group=GROUP)
    [warning] = first["status"]["typeChecking"]["expressionWarnings"]
    assert "undefined field 'nothing'" in warning["warning"]
    change = {"spec": {"validations": [{"expression": "object.spec.hostNetwork"}]}}
    assert (await apiserver.request("PATCH", POLICIES + "/p", change, headers=MERGE)).status == 422
    change["spec"]["validations"][0]["expression"] += " == true"
    await apiserver.request("PATCH", POLICIES + "/p", change, headers=MERGE)
    second = await until("validatingadmissionpolicies", "p", checked(2), group=GROUP)
    assert second["status"] == {"observedGeneration": 2}


async def test_what_was_stored_while_no_controller_ran_is_checked_at_the_start(certificates, tmp_path: Path):
    store = f"sqlite:///{tmp_path}/other.db"
    async with running(certificates, tmp_path, store) as server:
        await server.plane.controllers.stop()
        await server.request("POST", POLICIES, policy("object.kind == 1"))
        assert (await server.request("GET", POLICIES + "/p")).body["status"] == {}
    async with running(certificates, tmp_path, store) as server:
        cache = server.plane.server.core.catalog.look_up(GROUP, "v1", "validatingadmissionpolicies").cache
        changed = asyncio.Event()
        cache.watchers.append(lambda change: changed.set())
        if not checked(1)(cache.get("p").decode()):
            await asyncio.wait_for(changed.wait(), 5)
        assert checked(1)(cache.get("p").decode())
