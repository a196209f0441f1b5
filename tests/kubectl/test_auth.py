"""kubectl's commands about identity and permission."""

from __future__ import annotations

from .conftest import Kubectl


async def test_who_one_is(kubectl: Kubectl) -> None:
    assert "system:masters" in await kubectl("auth whoami")
    said = await kubectl("auth whoami --as zoe --as-group zoo --as-uid 7 -o jsonpath={.status.userInfo}")
    assert said == '{"groups":["zoo","system:authenticated"],"uid":"7","username":"zoe"}'


async def test_what_one_may_do(kubectl: Kubectl) -> None:
    assert await kubectl("auth can-i delete nodes") == "yes"
    await kubectl("create role reader --verb=get,list --resource=configmaps")
    await kubectl("create rolebinding readers --role=reader --user=zoe")
    assert await kubectl("auth can-i get configmaps --as zoe") == "yes"
    refused = await kubectl.run("auth", "can-i", "delete", "configmaps", "--as", "zoe")
    assert (refused.code, refused.out) == (1, "no")
    listed = (await kubectl("auth can-i --list --as zoe")).splitlines()
    assert ["configmaps", "[]", "[]", "[get", "list]"] in [line.split() for line in listed]
    assert "Forbidden" in await kubectl.fails("get secrets --as zoe")


async def test_tokens_of_service_accounts(kubectl: Kubectl) -> None:
    await kubectl("create serviceaccount bot")
    token = await kubectl("create token bot --duration 1h")
    said = await kubectl(f"--token {token} auth whoami -o jsonpath={{.status.userInfo.username}}")
    assert said == "system:serviceaccount:default:bot"
    assert "Forbidden" in await kubectl.fails(f"--token {token} get secrets")
