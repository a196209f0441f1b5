"""The pages of the public Python names, made of their source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import steersman
import steersman.testing

from .source import Described, describe, module_doc, names_in
from .text import code, docstring, page

GROUPS = {
    "Client": ("client.client", "client.sync", "client.config", "client.resources", "client.watch"),
    "Conflicts and retries": ("client.retry", "client.modify", "client.rebase"),
    "Errors": ("apimachinery.errors", "client.errors", "client.transport"),
    "Models": ("client.models",),
    "Operators": (
        "runtime.manager",
        "runtime.controller",
        "runtime.context",
        "runtime.requests",
        "runtime.cluster",
        "runtime.cache.cache",
        "runtime.cache.events",
        "runtime.finalizers",
        "runtime.owners",
    ),
    "Webhooks": ("runtime.webhook.setup", "runtime.webhook.reviews"),
    "Leader election": ("runtime.election", "runtime.leaderelection"),
    "Definitions of kinds": ("crdgen", "crdgen.markers"),
}
"""The modules that `steersman` has its names from, by the title under which they stand."""
SERVER = {
    "A control plane in your program": (
        ("steersman.controlplane.plane", "ControlPlane"),
        ("steersman.apiserver.server", "ServerConfig"),
    ),
    "Python functions in admission": (
        ("steersman.apiserver.admission", "mutating"),
        ("steersman.apiserver.admission", "validating"),
        ("steersman.apiserver.admission", "AdmittedWrite"),
        ("steersman.apiserver.admission", "Denied"),
    ),
}


def package_page() -> str:
    """`steersman`: every name, in groups."""
    exports = steersman._EXPORTS
    grouped = {module for modules in GROUPS.values() for module in modules}
    if grouped != set(exports):
        raise LookupError(f"modules without a group, or gone: {sorted(grouped ^ set(exports))}")
    parts = [
        section(
            title,
            [(f"steersman.{module}", name) for module in modules for name in exports[module]],
        )
        for title, modules in GROUPS.items()
    ]
    return page(
        "Python",
        "What `import steersman as st` has. Names are loaded when they are first used. Units are seconds where nothing "
        "else is said. `SyncClient` is `Client` without `await`; async names are marked as such.",
        *parts,
    )


def testing_page() -> str:
    """`steersman.testing`, and the fixtures."""
    modules = steersman.testing._MODULES
    names = [(m if "." in m else f"steersman.testing.{m}", name) for name, m in modules.items()]
    faults = {"Fault", "FaultPlan"}
    return page(
        "Testing",
        "What `steersman.testing` has, and pytest's fixtures. [How to test an operator](../how-to/test-with-pytest.md) "
        "shows them at work.",
        "\n\n".join(["## Fixtures", *map(_fixture, ("apiserver", "kube", "kube_client"))]),
        "## Settings of pytest\n\n"
        "- `--kubeconfig=FILE`, `--kube-context=NAME`: run the tests against that cluster, each in a namespace of its "
        "own.\n"
        "- `apiserver_load` (in the configuration file): manifests that each API server starts with, files or "
        "directories.\n"
        "- `@pytest.mark.apiserver(*load, config=None)`: what the test's API server starts with, and how it is "
        "configured.\n"
        "- `@pytest.mark.explore(runs=200, seed=0, delay=5.0, breaks=())`: an async test is run under many "
        "interleavings of its requests, answers and watch events. "
        "[How to](../how-to/test-with-pytest.md#interleavings)\n"
        "- `--explore-runs=N`, `--explore-seed=N`: how many interleavings, and which.\n"
        "- `--explore-replay=SCHEDULE`: run this one, as a failure has told it, and no other.",
        section("Servers, assertions, time", [pair for pair in names if pair[1] not in faults]),
        section("Faults", [pair for pair in names if pair[1] in faults]),
    )


def _fixture(name: str) -> str:
    """A fixture, as a test asks for it: what it needs itself is not told."""
    found = describe("steersman.testing.plugin", name)
    gives = found.signature.rpartition(" -> ")[2]
    given = gives.removeprefix("Iterator[").removesuffix("]") if gives.startswith("Iterator[") else gives
    return entry(replace(found, signature=f"{name}: {given}"))


def cel_page() -> str:
    """`steersman.cel`."""
    module = "steersman.cel"
    about = docstring(module_doc(module).replace(">>>", "    >>>").replace("\n    True", "\n        True"))
    return page("CEL", about, section("steersman.cel", [(module, name) for name in names_in(module, "__all__")]))


def server_page() -> str:
    """What of the server's half is meant to be imported."""
    return page(
        "The server in a program",
        "A control plane runs on your program's event loop, or, for code that blocks, in a thread "
        "([`control_plane`](testing.md#control_plane)). Other names of `steersman.apiserver` are not meant to be "
        "relied on.",
        *(section(title, pairs, module=True) for title, pairs in SERVER.items()),
    )


def faults_page() -> str:
    """The file of `--faults`, and its fields."""
    fault = describe("steersman.apiserver.faults", "Fault")
    example = """seed: 1
faults:
  - verbs: [update, patch]
    resources: [myapps.myorg.io]
    status: 409
    probability: 0.5
  - verbs: [get]
    user_agents: [kubectl]
    delay: 0.2
  - watch: expire
    events: 100
    every: 10
"""
    return page(
        "Plans of faults",
        "`steersman serve --faults plan.yaml` makes things go wrong, for tests of clients in any language; "
        "`apiserver.faults` does so [in a test](../how-to/test-with-pytest.md#faults). The first fault that strikes a "
        "request is carried out.",
        f'```yaml title="plan.yaml"\n{example}```',
        "<!-- background: serving on -->\n\n```sh\nsteersman serve --faults plan.yaml\n```",
        "## Fields\n\nOf the file: `seed` (an integer, 0 by default) and `faults`, a list. Of a fault:",
        code("\n".join(member.signature for member in fault.members if member.kind == "attribute")),
        docstring(fault.doc.partition("\n\n")[2]),
        "A fault strikes the requests that fit all of the first six fields, as far as they are given. What is no plan "
        "is refused when the server starts, with the place of what is wrong.",
    )


def section(title: str, pairs: Iterable[tuple[str, str]], *, module: bool = False) -> str:
    """A heading, and the names below it."""
    entries = [entry(describe(source, name), source if module else "") for source, name in pairs]
    return "\n\n".join([f"## {title}", *entries])


def entry(found: Described, module: str = "") -> str:
    """One name: its signature, what it is, its members. Raises LookupError if it is not described."""
    if not found.doc:
        raise LookupError(f"{found.name} has no docstring")
    parts = [f"### {found.name}"]
    if module:
        parts.append(f"`from {module} import {found.name}`")
    shown = f"{found.name} = {found.signature}" if found.kind == "value" else found.signature
    if found.kind == "class":
        bases = [base for base in found.bases if base not in ("object", "Protocol")]
        parts.append(code(shown))
        if bases:
            parts.append("A subclass of " + ", ".join(f"`{base}`" for base in bases) + ".")
    elif found.kind == "function" or not found.name.islower():  # what a marker is made of says nothing
        parts.append(code(shown))
    parts.append(docstring(found.doc))
    fields = [m for m in found.members if m.kind == "attribute" and m.name.islower()]
    inherited = found.signature == f"class {found.name}"
    if inherited and fields:
        parts.append(code("\n".join(member.signature for member in fields)))
    parts += [_member(found.name, m) for m in found.members if m.doc]
    return "\n\n".join(parts)


def _member(owner: str, member: Described) -> str:
    return f"#### {owner}.{member.name}\n\n{code(member.signature)}\n\n{docstring(member.doc)}"
