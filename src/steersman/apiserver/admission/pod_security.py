"""PodSecurity: a namespace's labels say what Pods may ask of their node.

Source: kubernetes `plugin/pkg/admission/security/podsecurity/admission.go`, pod-security-admission
`admission/admission.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steersman._util.gotext import quote
from steersman.api.pod_security.levels import PREFIX, PRIVILEGED, STRICTNESS, LevelVersion, Policy, policy_of
from steersman.apimachinery.errors import forbidden, internal, invalid, not_found
from steersman.apimachinery.field_errors import FieldError, aggregate
from steersman.apiserver.admission.chain import METADATA, Attributes
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Entry, ResourceCache

MOST_PODS = 3000
PATIENCE = 1.0
"""How many existing Pods are looked at when a namespace is to enforce something new, and for how many seconds."""

_PODS, _NAMESPACES = ("", "pods"), ("", "namespaces")
_TEMPLATES = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_CONCERNED = frozenset({_PODS, _NAMESPACES, *_TEMPLATES})
_OTHER_SUBRESOURCES = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"},
)
_MARK = PREFIX.encode()
_PRIVILEGED = Policy()


class PodSecurity:
    """Refuses Pods that violate what is enforced; warns, and tells the audit log, of Pods and of templates of Pods."""

    name = "PodSecurity"

    def __init__(self, look: Callable[[str], ResourceCache], patience: float = PATIENCE) -> None:
        """`look` gives the cache of a resource of the core group. See PATIENCE."""
        self._look = look
        self._patience = patience

    def concerns(self, scope: ResourceScope) -> bool:
        return (scope.group, scope.resource) in _CONCERNED

    async def validate(self, attributes: Attributes) -> None:
        """Raises Forbidden for Pods that violate what is enforced, Invalid for labels that say nothing known."""
        resource = (attributes.scope.group, attributes.scope.resource)
        if attributes.operation not in ("CREATE", "UPDATE") or attributes.obj is None:
            return
        if resource == _PODS:
            if attributes.subresource not in _OTHER_SUBRESOURCES:
                self._judge_pod(attributes, attributes.obj)
        elif attributes.subresource:
            return
        elif resource == _NAMESPACES:
            await self._judge_namespace(attributes, attributes.obj)
        else:
            self._judge_template(attributes, attributes.obj, _TEMPLATES[resource])

    def _judge_pod(self, attributes: Attributes, pod: Object) -> None:
        found = self._policy(attributes.namespace)
        if found is None:
            why = internal(f"failed to lookup namespace {quote(attributes.namespace)}")
            _tell(attributes, "error", f"{why}: {not_found('', 'namespaces', attributes.namespace)}")
            raise why
        policy, errors = found
        if policy.privileged and not errors:
            _tell(attributes, "enforce-policy", str(_PRIVILEGED.enforce))
            return
        if attributes.old is not None and not _changes(pod, attributes.old):
            return
        _tell_errors(attributes, errors)
        _tell(attributes, "enforce-policy", str(policy.enforce))
        findings = _Findings(pod["metadata"], pod.get("spec") or {})
        _audit(attributes, findings, policy)
        if violation := findings.of(policy.enforce):
            raise forbidden("", "pods", attributes.name_shown, f"violates {violation}")
        _warn(attributes, findings, policy)

    def _judge_template(self, attributes: Attributes, obj: Object, path: tuple[str, ...]) -> None:
        found = self._policy(attributes.namespace)
        if found is None:
            missing = not_found("", "namespaces", attributes.namespace)
            _tell(attributes, "error", f"failed to lookup namespace {quote(attributes.namespace)}: {missing}")
            return
        policy, errors = found
        if policy.warn.level == policy.audit.level == PRIVILEGED and not errors:
            return
        template = obj
        for key in path:
            template = template.get(key) or {}
        if not template:
            return
        _tell_errors(attributes, errors)
        findings = _Findings(template.get("metadata") or {}, template.get("spec") or {})
        _audit(attributes, findings, policy)
        _warn(attributes, findings, policy)

    def _policy(self, namespace: str) -> tuple[Policy, list[FieldError]] | None:
        """What a namespace chose, and what is wrong with that; None when there is no such namespace."""
        entry = self._look("namespaces").get(namespace)
        if entry is None:
            return None
        if _MARK not in entry.stored:
            return _PRIVILEGED, []
        return policy_of(entry.decode()["metadata"].get("labels") or {})

    async def _judge_namespace(self, attributes: Attributes, namespace: Object) -> None:
        new, errors = policy_of(namespace["metadata"].get("labels") or {})
        if attributes.old is None:
            if errors:
                raise invalid("", "Namespace", attributes.name_shown, errors)
            return
        old, old_errors = policy_of(attributes.old["metadata"].get("labels") or {})
        if errors and errors != old_errors:
            raise invalid("", "Namespace", attributes.name_shown, errors)
        if _tightens(new.enforce, old.enforce):
            attributes.warn(await self._existing(attributes.name_shown, new.enforce))

    async def _existing(self, namespace: str, standard: LevelVersion) -> list[str]:
        """Warnings of existing Pods that would not be let in any more, those with the same faults in one."""
        from steersman.api.pod_security.evaluation import evaluate, reasons

        cache, loop = self._look("pods"), asyncio.get_running_loop()
        entries = [cache.entries[key] for key in cache.select(namespace)]
        deadline = loop.time() + self._patience
        pods, checked = await _first(entries), 0
        names: dict[str, list[str]] = {}
        for pod in pods[:MOST_PODS]:
            if violations := evaluate(standard, pod["metadata"], pod.get("spec") or {}):
                names.setdefault(reasons(violations), []).append(pod["metadata"]["name"])
            checked += 1
            await asyncio.sleep(0)
            if loop.time() >= deadline:
                break
        warnings = []
        if checked < len(pods):
            seen = f"checked against the first {checked} of {len(pods)} existing pods"
            warnings.append(f"new PodSecurity enforce level only {seen}")
        if names:
            told = f"violate the new PodSecurity enforce level {quote(str(standard))}"
            warnings.append(f"existing pods in namespace {quote(namespace)} {told}")
        return warnings + sorted(f"{_grouped(names[why])}: {why}" for why in names)


class _Findings:
    """What one Pod, or template, violates of each standard that it is held to."""

    def __init__(self, metadata: Object, spec: Object) -> None:
        self._pod = metadata, spec
        self._known: dict[LevelVersion, str] = {}

    def of(self, standard: LevelVersion) -> str:
        """What it violates, in words; "" when there is nothing."""
        if standard not in self._known:
            # Loaded with the first Pod that is judged: most servers have none.
            from steersman.api.pod_security.evaluation import described, evaluate

            found = evaluate(standard, *self._pod)
            self._known[standard] = f"PodSecurity {quote(str(standard))}: {described(found)}" if found else ""
        return self._known[standard]


def _audit(attributes: Attributes, findings: _Findings, policy: Policy) -> None:
    if violation := findings.of(policy.audit):
        _tell(attributes, "audit-violations", f"would violate {violation}")


def _warn(attributes: Attributes, findings: _Findings, policy: Policy) -> None:
    if violation := findings.of(policy.warn):
        attributes.warn([f"would violate {violation}"])


def _tell(attributes: Attributes, key: str, text: str) -> None:
    attributes.annotate(f"{PREFIX}{key}", text, METADATA)


def _tell_errors(attributes: Attributes, errors: list[FieldError]) -> None:
    if errors:
        _tell(attributes, "error", f"Failed to parse policy: {aggregate(errors)}")


def _changes(pod: Object, old: Object) -> bool:
    """Whether an update of a Pod changes anything that standards look at: its containers, or their images."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for key in ("containers", "initContainers"):
        if [each.get("image") for each in new_spec.get(key) or ()] != [
            each.get("image") for each in old_spec.get(key) or ()
        ]:
            return True
    images = {each["name"]: each.get("image") for each in old_spec.get("ephemeralContainers") or ()}
    added = new_spec.get("ephemeralContainers") or ()
    return any(each["name"] not in images or images[each["name"]] != each.get("image") for each in added)


def _tightens(new: LevelVersion, old: LevelVersion) -> bool:
    """Whether Pods that were let in may not be any more."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.minor != old.minor or STRICTNESS[new.level] > STRICTNESS[old.level]


async def _first(entries: list[Entry]) -> list[Object]:
    """The Pods in the order in which to look at them: of each controller only the first, the others at the end."""
    seen: set[str] = set()
    first: list[Object] = []
    others: list[Object] = []
    for entry in entries:
        pod = entry.decode()
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner["uid"] for owner in owners if owner.get("controller")), "")
        (others if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
        await asyncio.sleep(0)
    return first + others


def _grouped(names: list[str]) -> str:
    """The first name, and how many more there are."""
    others = len(names) - 1
    more = f" (and {others} other pod{'s' if others > 1 else ''})" if others else ""
    return f"{min(names)}{more}"
