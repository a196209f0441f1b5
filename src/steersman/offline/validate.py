"""The server's verdict on manifests: each is created on a server of this process, without being kept.

Only definitions and namespaces are really made, so that every object is judged by itself: what else stands among the
manifests makes no difference, in whatever order, and two of the same name are both judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from steersman.offline.findings import Finding
from steersman.offline.manifests import Manifest, Unusable, read_manifests
from steersman.offline.server import Answer, OfflineServer
from steersman.offline.sources import Source
from steersman.offline.verdicts import finding, findings_of, is_strict

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
FieldValidation = Literal["Ignore", "Warn", "Strict"]
Result = Literal["valid", "invalid", "skipped"]


@dataclass(frozen=True, slots=True)
class Options:
    """`namespace` is that of objects which name none. `ignore_missing_kinds`: what nobody defines is passed over."""

    field_validation: FieldValidation = "Strict"
    ignore_missing_kinds: bool = False
    namespace: str = "default"


@dataclass(slots=True)
class Verdict:
    """What became of one manifest, or of a document that is none. `status` is the server's, if it refused."""

    of: Manifest | Unusable
    result: Result
    findings: list[Finding] = field(default_factory=list)
    status: dict[str, Any] | None = None

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"file": self.of.source, "document": self.of.document, "line": self.of.line}
        if self.of.item is not None:
            found["item"] = self.of.item
        if isinstance(self.of, Manifest):
            found |= {
                "apiVersion": self.of.api_version,
                "kind": self.of.kind,
                "namespace": self.of.namespace,
                "name": self.of.name,
            }
        found["result"] = self.result
        if self.status is not None:
            found["status"] = self.status
        return found


async def validate(
    sources: Iterable[Source], definitions: Iterable[Source] = (), options: Options | None = None
) -> tuple[list[Verdict], list[Finding]]:
    """The verdicts on the manifests in `sources`, in their order, and what is wrong with `definitions`.

    Kinds are defined by the CustomResourceDefinitions in `sources`, and by those in `definitions` where they have none
    of the name; whatever else is in `definitions` is passed over.
    """
    found = [manifest for source in sources for manifest in read_manifests(source)]
    extra = [manifest for source in definitions for manifest in read_manifests(source)]
    async with OfflineServer.start() as server:
        run = _Run(server, options or Options())
        judged: dict[int, Verdict] = {}
        for index, manifest in enumerate(found):
            if is_crd(manifest):
                judged[index] = await run.define(manifest)
        wrong = await run.define_more(extra)
        for index, manifest in enumerate(found):
            if index not in judged:
                judged[index] = await run.judge(manifest)
    return [judged[index] for index in range(len(found))], wrong


def is_crd(manifest: Manifest | Unusable) -> bool:
    """Whether it is a definition."""
    return isinstance(manifest, Manifest) and (manifest.api_version, manifest.kind) == CRD


class _Run:
    def __init__(self, server: OfflineServer, options: Options) -> None:
        self._server = server
        self._options = options
        self._namespaces: set[str] = set()
        self._defined: dict[str, Manifest] = {}
        self._undefined: dict[tuple[str, str], Manifest] = {}

    async def define_more(self, found: Sequence[Manifest | Unusable]) -> list[Finding]:
        """Define what is not defined yet; returns what is wrong with these definitions."""
        wrong: list[Finding] = []
        for manifest in found:
            if isinstance(manifest, Unusable):
                wrong.append(_unusable(manifest))
            elif is_crd(manifest) and manifest.name not in self._defined:
                verdict = await self.define(manifest, "Ignore")
                wrong += [each for each in verdict.findings if each.severity == "error"]
        return wrong

    async def define(self, manifest: Manifest | Unusable, level: FieldValidation | None = None) -> Verdict:
        """Judge a definition, and serve what it defines."""
        assert isinstance(manifest, Manifest)
        own = without_webhook(manifest.obj)
        verdict, created = await self._try(manifest, level or self._options.field_validation, keep=own is manifest.obj)
        earlier = self._defined.get(manifest.name)
        if earlier is not None:
            if earlier.obj != manifest.obj and verdict.result == "valid":
                text = f"is defined differently in {earlier.source}:{earlier.line}, by which objects are judged"
                verdict.findings.append(finding(manifest, "warning", text, reason="AlreadyExists"))
            return verdict
        scope = self._server.scope(*CRD)
        assert scope is not None
        if own is not manifest.obj:
            created = (await self._server.create(scope, "", own, fieldValidation="Ignore")).ok
        if not created:
            self._remember_undefined(manifest)
            return verdict
        self._defined[manifest.name] = manifest
        refused = await self._server.established(manifest.name)
        if refused is not None:
            verdict.findings.append(finding(manifest, "error", refused["message"], "spec.names", refused["reason"]))
            verdict.result = "invalid"
            self._remember_undefined(manifest)
        return verdict

    def _remember_undefined(self, manifest: Manifest) -> None:
        spec = manifest.obj.get("spec")
        if not isinstance(spec, dict):
            return
        names, versions = spec.get("names"), spec.get("versions")
        kind = names.get("kind") if isinstance(names, dict) else None
        for version in versions if isinstance(versions, list) else ():
            if isinstance(version, dict):
                self._undefined[f"{spec.get('group')}/{version.get('name')}", str(kind)] = manifest

    async def judge(self, manifest: Manifest | Unusable) -> Verdict:
        """The verdict on an object that is no definition."""
        if isinstance(manifest, Unusable):
            return Verdict(manifest, "invalid", [_unusable(manifest)])
        if self._server.scope(manifest.api_version, manifest.kind) is not None:
            verdict, _ = await self._try(manifest, self._options.field_validation)
            return verdict
        by = self._undefined.get((manifest.api_version, manifest.kind))
        if by is not None:
            text = f"not judged: what defines the kind is invalid ({by.source}:{by.line})"
            return Verdict(manifest, "skipped", [finding(manifest, "warning", text, reason="NoMatch")])
        if self._options.ignore_missing_kinds:
            return Verdict(manifest, "skipped")
        text = f'no matches for kind "{manifest.kind}" in version "{manifest.api_version}"'
        return Verdict(manifest, "invalid", [finding(manifest, "error", text, reason="NoMatch")])

    async def _try(self, manifest: Manifest, level: FieldValidation, *, keep: bool = False) -> tuple[Verdict, bool]:
        """Have an object created, but not kept if that is not asked for. Returns whether it was in the end, too."""
        scope = self._server.scope(manifest.api_version, manifest.kind)
        assert scope is not None
        namespace = manifest.namespace or self._options.namespace
        if scope.namespaced and namespace not in self._namespaces:
            self._namespaces.add(namespace)
            await self._server.create_namespace(namespace)
        query = {} if keep else {"dryRun": "All"}
        answer = await self._server.create(scope, namespace, manifest.obj, fieldValidation=level, **query)
        created = answer.ok
        if answer.body.get("reason") == "AlreadyExists":  # found after all the object's own rules
            answer = Answer(200, {}, answer.warnings)
        findings = [*_repeated(manifest, level), *findings_of(manifest, answer)]
        if is_strict(answer):  # which hides from a client what else is wrong
            rest = await self._server.create(scope, namespace, manifest.obj, fieldValidation="Ignore", **query)
            findings += findings_of(manifest, rest)
            created = rest.ok
        refused = any(each.severity == "error" for each in findings)
        result: Result = "invalid" if refused else "valid"
        return Verdict(manifest, result, findings, None if answer.ok else answer.body), created


def without_webhook(crd: dict[str, Any]) -> dict[str, Any]:
    """A definition whose objects are converted without asking anybody; the same one, if they are so already."""
    spec = crd.get("spec")
    conversion = spec.get("conversion") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(conversion, dict) or conversion.get("strategy") == "None":
        return crd
    return {**crd, "spec": {**spec, "conversion": None}}


def _repeated(manifest: Manifest, level: FieldValidation) -> list[Finding]:
    """Keys that stand twice: they are lost when a text is decoded, so they are told here, in the server's words."""
    if level == "Ignore":
        return []
    found = []
    for each in manifest.repeated:
        about = finding(manifest, "error" if level == "Strict" else "warning", each.message, each.field, "BadRequest")
        found.append(about.at(each.line))
    return found


def _unusable(found: Unusable) -> Finding:
    return Finding(
        "error", found.source, found.line, found.message, reason="BadRequest", document=found.document, item=found.item
    )
