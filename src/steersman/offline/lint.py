"""`crd lint`: what the server refuses in definitions, by asking it, and what the rules for authors find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from steersman.api.apiextensions import lint as rules
from steersman.offline.findings import Finding
from steersman.offline.manifests import Manifest, Unusable, read_manifests
from steersman.offline.server import Answer, OfflineServer
from steersman.offline.sources import Source
from steersman.offline.validate import CRD, is_crd, without_webhook
from steersman.offline.verdicts import finding, findings_of

REFUSED, WARNED = "refused", "server-warning"
SERVERS = frozenset({REFUSED, WARNED})
RULES = {
    REFUSED: rules.RULES["type-changed"]._replace(about="what the server refuses"),
    WARNED: rules.RULES["atomic-list"]._replace(about="what the server warns of"),
    **rules.RULES,
}


@dataclass(slots=True)
class Report:
    """What was found in `definitions` definitions, in their order; each finding's `reason` is the rule's id."""

    definitions: int = 0
    findings: list[Finding] = field(default_factory=list)


async def lint(sources: Iterable[Source], against: Iterable[Source] = ()) -> Report:
    """Judge all definitions in `sources`, and their changes since those of the same names in `against`.

    Other manifests are passed over.
    """
    report = Report()
    earlier: dict[str, Manifest] = {}
    for source in against:
        for manifest in read_manifests(source):
            if isinstance(manifest, Unusable):
                report.findings.append(_unusable(manifest))
            elif is_crd(manifest):
                earlier.setdefault(manifest.name, manifest)
    async with OfflineServer.start() as server:
        for source in sources:
            for manifest in read_manifests(source):
                if isinstance(manifest, Unusable):
                    report.findings.append(_unusable(manifest))
                elif is_crd(manifest):
                    report.definitions += 1
                    report.findings += await _judge(server, manifest, earlier.get(manifest.name))
    return report


def _unusable(found: Unusable) -> Finding:
    return Finding(
        "error", found.source, found.line, found.message, reason=REFUSED, document=found.document, item=found.item
    )


async def _judge(server: OfflineServer, manifest: Manifest, earlier: Manifest | None) -> list[Finding]:
    scope = server.scope(*CRD)
    assert scope is not None
    answer = await server.create(scope, "", manifest.obj, dryRun="All", fieldValidation="Strict")
    found = [finding(manifest, "error", each.message, each.field, REFUSED).at(each.line) for each in manifest.repeated]
    found += _of_answer(manifest, answer)
    if answer.code == 400:  # unknown fields, or what cannot be decoded at all
        answer = await server.create(scope, "", manifest.obj, dryRun="All", fieldValidation="Ignore")
        found += _of_answer(manifest, answer)
    if earlier is not None:
        found += _of_answer(manifest, await _update(earlier, manifest))
    found = list(dict.fromkeys(found))
    crd = server.decoded(*CRD, manifest.obj)
    if crd is None:
        return found
    found += [_finding(manifest, each) for each in rules.lint(crd)]
    before = server.decoded(*CRD, earlier.obj) if earlier is not None else None
    if before is not None:
        found += [_finding(manifest, each) for each in rules.compare(before, crd)]
    return found


def _of_answer(manifest: Manifest, answer: Answer) -> Iterator[Finding]:
    for each in findings_of(manifest, answer):
        rule = REFUSED if each.severity == "error" else WARNED
        yield finding(manifest, each.severity, each.message, each.field, rule)


def _finding(manifest: Manifest, found: rules.LintFinding) -> Finding:
    about = f"{found.subject}: {found.message}" if found.subject else found.message
    return finding(manifest, found.severity, about, found.path, found.rule)


async def _update(earlier: Manifest, manifest: Manifest) -> Answer:
    """What a server says when the earlier definition, that it has served, is replaced; nothing if it refuses that.

    The status of the earlier one, if it has any, says which versions are stored.
    """
    async with OfflineServer.start() as server:
        scope = server.scope(*CRD)
        assert scope is not None
        created = await server.create(scope, "", without_webhook(earlier.obj), fieldValidation="Ignore")
        if not created.ok:
            return Answer(200, {}, [])
        await server.established(earlier.name)
        path = f"/apis/{CRD[0]}/customresourcedefinitions/{earlier.name}"
        current = (await server.send("GET", path)).body
        if stored := _stored_versions(earlier.obj):
            current["status"]["storedVersions"] = stored
            current = (await server.send("PUT", f"{path}/status", current)).body
        meta = {**manifest.obj["metadata"], "uid": "", "resourceVersion": current["metadata"]["resourceVersion"]}
        proposed = {**manifest.obj, "metadata": meta}
        return await server.send("PUT", path, proposed, dryRun="All", fieldValidation="Ignore")


def _stored_versions(crd: dict[str, Any]) -> list[str]:
    status = crd.get("status")
    stored = status.get("storedVersions") if isinstance(status, dict) else None
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []
