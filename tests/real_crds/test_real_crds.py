"""CustomResourceDefinitions that people use: they load, publish OpenAPI and accept the examples of their projects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from steersman.apimachinery.codec import yaml

from ..conftest import RunningServer
from ..kubectl.conftest import Kubectl, kubectl, kubectl_binary
from .compare import REFERENCE
from .definitions import Definition, definition_text, examples, load
from .modules import Module, Package
from .observed import Observed, observe

__all__ = ["kubectl", "kubectl_binary"]

Modules = Mapping[Module, Package | str]
DEFINITIONS = load()
NAMED = {each.name: each for each in DEFINITIONS}
ANSWERS = json.loads(REFERENCE.read_text())


def packages_of(definition: Definition, modules: Modules) -> Mapping[Module, Package]:
    """The packages of a definition; without one of them the test is skipped."""
    found = {}
    for module in definition.modules:
        package = modules[module]
        if isinstance(package, str):
            pytest.skip(package)
        found[module] = package
    return found


def test_the_table_is_what_it_promises() -> None:
    assert len(DEFINITIONS) >= 20
    assert len({each.project for each in DEFINITIONS}) >= 12
    assert set(ANSWERS) == set(NAMED)


def test_twenty_can_be_had_or_none(modules: Modules) -> None:
    """Without a network there is nothing to test; with one, most of the table must be there."""
    if all(isinstance(each, str) for each in modules.values()):
        pytest.skip(f"no module can be fetched: {next(iter(modules.values()))}")
    had = [each.name for each in DEFINITIONS if not any(isinstance(modules[one], str) for one in each.modules)]
    assert len(had) >= 20, [each for each in modules.values() if isinstance(each, str)]


@pytest.mark.parametrize("name", NAMED)
async def test_it_loads_publishes_openapi_and_accepts_its_examples(
    name: str, modules: Modules, apiserver: RunningServer
) -> None:
    definition = NAMED[name]
    packages = packages_of(definition, modules)
    async with apiserver.session() as session:
        observed = await observe(session, definition, packages)
    assert observed.definition["status"] == 201, observed.definition["body"]
    assert_accepted(observed, definition, packages)
    await assert_published(apiserver, observed.served)
    assert observed.digests() == ANSWERS[name], "see tests/real_crds/compare.py for what differs from the reference"


def assert_accepted(observed: Observed, definition: Definition, packages: Mapping[Module, Package]) -> None:
    """Every example was created, and nothing of it is lost."""
    spec = observed.served["spec"]
    sent = {each.key: each for each in examples(definition, spec["group"], spec["names"]["kind"], packages)}
    assert sent.keys() == observed.examples.keys()
    assert sent
    for key, answer in observed.examples.items():
        assert answer["status"] == 201, (key, answer["body"])
        assert list(lost(yaml.decode(sent[key].text.encode()), answer["body"])) == [], key


def lost(sent: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Where a value that was sent is not in what was kept; nulls, and a status sent at creation, need not be."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for key, value in sent.items():
            if value is not None and (path, key) != ("", "status"):
                yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for number, (one, other) in enumerate(zip(sent, kept, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif sent != kept:
        yield path


async def assert_published(apiserver: RunningServer, crd: dict[str, Any]) -> None:
    """The kind is in both OpenAPI documents, and every reference in them leads somewhere."""
    spec = crd["spec"]
    versions = [each["name"] for each in spec["versions"] if each["served"]]
    v2 = (await apiserver.request("GET", "/openapi/v2")).body
    assert unresolved(v2, "#/definitions/", v2["definitions"]) == set()
    for version in versions:
        v3 = (await apiserver.request("GET", f"/openapi/v3/apis/{spec['group']}/{version}")).body
        schemas = v3["components"]["schemas"]
        assert unresolved(v3, "#/components/schemas/", schemas) == set()
        kind = {"group": spec["group"], "version": version, "kind": spec["names"]["kind"]}
        for known in (schemas, v2["definitions"]):
            assert [each for each in known.values() if kind in each.get("x-kubernetes-group-version-kind", ())]
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        assert path in v3["paths"]
        assert path in v2["paths"]


def unresolved(document: Any, prefix: str, known: Mapping[str, Any]) -> set[str]:
    """References below `prefix` that are not known."""
    if isinstance(document, dict):
        found = {name for value in document.values() for name in unresolved(value, prefix, known)}
        target = document.get("$ref")
        if isinstance(target, str) and target.startswith(prefix) and target.removeprefix(prefix) not in known:
            found.add(target)
        return found
    if isinstance(document, list):
        return {name for value in document for name in unresolved(value, prefix, known)}
    return set()


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("certificates.cert-manager.io", "certificate.spec.issuerRef", "name <string> -required-"),
        ("nodepools.karpenter.sh", "nodepools.spec.disruption.budgets.nodes", "FIELD: nodes <string>"),
        ("httproutes.gateway.networking.k8s.io", "httproute.spec.rules.matches.path", "FIELD: path <Object>"),
    ],
)
async def test_kubectl_explains_it(name: str, path: str, said: str, modules: Modules, kubectl: Kubectl) -> None:
    definition = NAMED[name]
    await kubectl("create -f -", stdin=definition_text(definition, packages_of(definition, modules)))
    await kubectl(f"wait --for=condition=Established crd/{name} --timeout=20s")
    told = await kubectl(f"explain {path}")
    assert said in " ".join(told.split())
    assert "DESCRIPTION:" in told
