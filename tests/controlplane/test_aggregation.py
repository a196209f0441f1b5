GROUP = "rbac.authorization.k8s.io"
ROLES = f"/apis/{GROUP}/v1/clusterroles"
READ = {"apiGroups": ["x.io"], "resources": ["widgets"], "verbs": ["get"]}
WRITE = {"apiGroups": ["x.io"], "resources": ["widgets"], "verbs": ["update"]}
MERGE = {"Content-Type": "application/merge-patch+json"}


def role(name, *rules, labels=None, **more):
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": meta, "rules": list(rules), **more}


async def test_an_aggregated_role_follows_what_it_selects(apiserver, until):
    selects = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}
    await apiserver.request("POST", ROLES, role("all", aggregationRule=selects))
    await apiserver.request("POST", ROLES, role("reader", READ, labels={"to": "all"}))
    got = await until("clusterroles", "all", lambda obj: obj and obj.get("rules") == [READ], group=GROUP)
    managers = {(entry["manager"], entry["operation"]) for entry in got["metadata"]["managedFields"]}
    assert ("clusterrole-aggregation-controller", "Apply") in managers
    await apiserver.request("PATCH", f"{ROLES}/reader", {"rules": [READ, WRITE]}, headers=MERGE)
    await until("clusterroles", "all", lambda obj: obj["rules"] == [READ, WRITE], group=GROUP)
    await apiserver.request("DELETE", f"{ROLES}/reader")
    await until("clusterroles", "all", lambda obj: not obj.get("rules"), group=GROUP)


async def test_operators_may_extend_the_roles_that_ship(apiserver, until):
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    await apiserver.request("POST", ROLES, role("widget-view", READ, labels=label))
    await until("clusterroles", "view", lambda obj: READ in obj["rules"], group=GROUP)
    await until("clusterroles", "admin", lambda obj: READ in obj["rules"], group=GROUP)
