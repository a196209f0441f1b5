"""Random roles and bindings, and what they permit, on two servers.

python -m tools.fuzz.permissions --reference URL --server URL --cases 20 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from .wire import Answer, Ask, Server, ask_both

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
NAMESPACE = "default"
GROUPS = ("", "apps", "x.io", "*", GROUP)
RESOURCES = ("pods", "pods/log", "pods/*", "*/log", "*", "configmaps", "*/*", "roles", "deployments/scale")
VERBS = ("get", "list", "*", "create", "delete", "escalate", "bind", "update")
URLS = ("/x", "/x/*", "/x*", "*", "/y", "/x/y", "/*")
PATHS = ("/x", "/x/", "/x/y", "/y", "/z", "", "x", "/x/y/z", "*")
USERS = (
    ("ann", ("crew",)),
    ("ben", ()),
    ("zed", ("system:authenticated",)),
    ("system:serviceaccount:default:bot", ()),
    ("", ("crew",)),
)
GRANTERS = ("ann", "ben")
OWN = [{"apiGroups": [GROUP], "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
        "verbs": ["create", "update", "get"]}]  # fmt: skip
# Which of several bindings allows something is a matter of chance upstream.
_BINDING = re.compile(r"RBAC: allowed by .*")
_MISSING = re.compile(r'[a-z]+\.rbac\.authorization\.k8s\.io "[^"]*" not found')

Object = dict[str, Any]


class Case:
    """The objects of one case, and what is asked about them; all of it follows from the seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311
        prefix = f"fuzz-{seed}"
        self.cluster_roles = [self._role(f"{prefix}-{index}") for index in range(10)]
        self.roles = [self._role(f"{prefix}-{index}", paths=False) for index in range(6)]
        self.cluster_bindings = [self._binding(f"{prefix}-{index}", prefix, ("ClusterRole",)) for index in range(5)]
        self.bindings = [self._binding(f"{prefix}-{index}", prefix, ("ClusterRole", "Role")) for index in range(8)]
        self.cluster_roles.append({"metadata": {"name": f"{prefix}-own"}, "rules": OWN})
        granters = [{"kind": "User", "name": name, "apiGroup": GROUP} for name in GRANTERS]
        own = {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"{prefix}-own"}
        self.cluster_bindings.append({"metadata": {"name": f"{prefix}-own"}, "roleRef": own, "subjects": granters})
        self._prefix = prefix

    def placed(self) -> Iterator[tuple[str, Object]]:
        """The objects with the paths that they are created at, roles first."""
        within = f"{RBAC}/namespaces/{NAMESPACE}"
        for path, objects in (
            (f"{RBAC}/clusterroles", self.cluster_roles),
            (f"{within}/roles", self.roles),
            (f"{RBAC}/clusterrolebindings", self.cluster_bindings),
            (f"{within}/rolebindings", self.bindings),
        ):
            for obj in objects:
                yield path, obj

    def questions(self, count: int) -> Iterator[Object]:
        """SubjectAccessReviews."""
        choose = self._random.choice
        for _ in range(count):
            user, groups = choose(USERS)
            spec: Object = {"user": user, "groups": list(groups)}
            if self._random.random() < 0.3:
                spec["nonResourceAttributes"] = {"path": choose(PATHS), "verb": choose(VERBS)}
            else:
                spec["resourceAttributes"] = {
                    "group": choose(GROUPS),
                    "resource": choose(("pods", "configmaps", "roles", "deployments", "*")),
                    "subresource": choose(("", "", "log", "scale", "*")),
                    "verb": choose(VERBS),
                    "name": choose(("a", "b", "*", "")),
                    "namespace": choose((NAMESPACE, "", "kube-public")),
                }
            yield {"spec": spec}

    def grants(self, count: int) -> Iterator[tuple[str, str, Object]]:
        """Roles and bindings that someone tries to create: who, the path, the object."""
        within = f"{RBAC}/namespaces/{NAMESPACE}"
        for index in range(count):
            who, name = self._random.choice(GRANTERS), f"{self._prefix}-tried-{index}"
            match self._random.randrange(4):
                case 0:
                    yield who, f"{RBAC}/clusterroles", self._role(name)
                case 1:
                    yield who, f"{within}/roles", self._role(name, paths=False)
                case 2:
                    binding = self._binding(name, self._prefix, ("ClusterRole",))
                    yield who, f"{RBAC}/clusterrolebindings", binding
                case _:
                    yield who, f"{within}/rolebindings", self._binding(name, self._prefix, ("ClusterRole", "Role"))

    def _some(self, values: tuple[str, ...], most: int) -> list[str]:
        return self._random.sample(values, self._random.randint(1, most))

    def _rule(self, *, paths: bool) -> Object:
        rule: Object = {"verbs": self._some(VERBS, 3)}
        if paths and self._random.random() < 0.25:
            return {**rule, "nonResourceURLs": self._some(URLS, 2)}
        rule |= {"apiGroups": self._some(GROUPS, 2), "resources": self._some(RESOURCES, 3)}
        return {**rule, "resourceNames": self._some(("a", "b", "*"), 2)} if self._random.random() < 0.4 else rule

    def _role(self, name: str, *, paths: bool = True) -> Object:
        rules = [self._rule(paths=paths) for _ in range(self._random.randint(0, 3))]
        return {"metadata": {"name": name}, "rules": rules}

    def _binding(self, name: str, prefix: str, kinds: tuple[str, ...]) -> Object:
        """A binding to one of the roles, or to one that is not there."""
        role = {"apiGroup": GROUP, "kind": self._random.choice(kinds), "name": f"{prefix}-{self._random.randrange(12)}"}
        subjects = [self._subject() for _ in range(self._random.randint(1, 2))]
        return {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}

    def _subject(self) -> Object:
        account = {"kind": "ServiceAccount", "name": "bot", "namespace": NAMESPACE}
        others = (
            ("User", "ann"),
            ("User", "ben"),
            ("User", "zed"),
            ("Group", "crew"),
            ("Group", "system:authenticated"),
        )
        kind, name = self._random.choice((*others, ("ServiceAccount", "")))
        return {"kind": kind, "name": name, "apiGroup": GROUP} if name else account


class Campaign:
    """Plays cases one after another, and counts."""

    def __init__(self, pair: tuple[Server, Server]) -> None:
        self._pair = pair
        self.requests = self.differences = 0

    async def play(self, case: Case, questions: int, grants: int) -> None:
        placed = list(case.placed())
        try:
            for path, obj in placed:
                await self._compare(_post(path, obj))
            # What a kube-apiserver has stored it goes by a moment later.
            await asyncio.sleep(1)
            for question in case.questions(questions):
                await self._compare(_post(REVIEWS, question))
            for who, path, obj in case.grants(grants):
                await self._compare(_post(path, obj, who))
        finally:
            for path, obj in reversed(placed):
                await ask_both(self._pair, Ask("DELETE", f"{path}/{obj['metadata']['name']}"))

    async def _compare(self, ask: Ask) -> None:
        self.requests += 1
        reference, server = await ask_both(self._pair, ask)
        expected, got = _essence(reference), _essence(server)
        if expected != got:
            self.differences += 1
            sys.stdout.write(f"{ask}\n  reference: {expected}\n  server:    {got}\n")


def _post(path: str, obj: Object, who: str = "") -> Ask:
    """A creation; by someone it is a dry run, who has the groups of an authenticated user."""
    query = {"dryRun": "All"} if who else {}
    headers = {"Impersonate-User": who} if who else {}
    return Ask("POST", path, json.dumps(obj), query=query, headers=headers)


def _essence(answer: Answer) -> Any:
    """What must be the same: code and message, and the status of a review."""
    body = answer.body if isinstance(answer.body, dict) else {}
    status = body.get("status")
    if isinstance(status, dict):
        reason = _BINDING.sub("RBAC: allowed", str(status.get("reason", "")))
        return answer.status, status.get("allowed"), _in_any_order(reason)
    return answer.status, _in_any_order(str(body.get("message", ""))), json.dumps(body.get("details"), sort_keys=True)


def _in_any_order(text: str) -> tuple[str, list[str]]:
    """The roles that are missing are listed in the order of a map."""
    return _MISSING.sub("-", text), sorted(_MISSING.findall(text))


async def campaign(options: argparse.Namespace) -> Campaign:
    pair = (Server(options.reference, options.token, 4), Server(options.server, options.token, 4))
    found = Campaign(pair)
    try:
        for number in range(options.first, options.first + options.cases):
            await found.play(Case(f"{options.seed}-{number}"), options.questions, options.grants)
    finally:
        for server in pair:
            await server.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.fuzz.permissions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reference", required=True, help="URL of a kube-apiserver")
    parser.add_argument("--server", required=True, help="URL of the server to compare with it")
    parser.add_argument("--token", default="admintoken", help="bearer token of an administrator of both")
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--questions", type=int, default=250, help="access reviews of each case")
    parser.add_argument("--grants", type=int, default=60, help="roles and bindings that someone tries to create")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    started = time.monotonic()
    found = asyncio.run(campaign(options))
    seconds = time.monotonic() - started
    sys.stdout.write(f"{found.requests} requests, {found.differences} differences, {seconds:.0f} seconds\n")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
