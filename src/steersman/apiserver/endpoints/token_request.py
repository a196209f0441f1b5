"""POST on serviceaccounts/NAME/token: a token for a service account.

Source: kubernetes `pkg/registry/core/serviceaccount/storage/token.go`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from steersman._util import clock
from steersman._util.base64url import decode
from steersman.api.authentication.token_request import (
    TokenRequestStrategy,
    binds_webhook,
    token_request_kind,
    validate,
)
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import times
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import BadRequest, conflict, invalid, not_found
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.options import write_options
from steersman.apiserver import rest
from steersman.apiserver.admission import Attributes
from steersman.apiserver.authn.service_accounts import Bound
from steersman.apiserver.builtins import BuiltinRules
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large, transform
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.writing import WriteContext

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_ISSUED = "authentication.kubernetes.io/issued-credential-id"
_PROJECTED_SECONDS = 3607
"""What kubelets ask for: such a token of a pod may live on, as its client may not reload it."""
_EXTENDED_SECONDS = 365 * 24 * 3600


@cache
def _rules() -> BuiltinRules:
    kind = token_request_kind()
    return BuiltinRules(kind, TokenRequestStrategy(kind))


async def request_token(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    """Answer the TokenRequest with its token, with 201; the token is stored nowhere."""
    rules = _rules()
    body_scope = replace(scope, gvr=rules.kind.gvr, kind=_KIND, strategy=rules, stored=False)
    answers.accepted(x, answers.ONE, body_scope)
    choice = answers.accepted(x, frozenset({"PartialObjectMetadata"}))
    options = write_options(x.info, "CreateOptions")
    asked = await large.read(x, bodies.decode, x, body_scope, rules, options.field_validation)
    meta, namespace, name = asked["metadata"], x.info.namespace, x.info.name
    rest.match_namespace(meta, namespace, namespaced=True)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource="token")
    if managed := rules.track(None, asked, ctx.writer, ctx.now):
        meta["managedFields"] = managed
    attributes = _attributes(scope, x, asked, ctx, rules)
    await core.registry.admission.admit(attributes)
    asked = attributes.obj or asked
    meta = asked["metadata"]
    if meta.get("name") and meta["name"] != name:
        why = "must match the service account name if specified"
        raise invalid(_GROUP, _KIND, name, [fe.invalid("metadata.name", meta["name"], why)])
    account = _account(core, namespace, name, meta.get("uid", ""))
    now = int(clock.now())
    meta |= {"name": name, "uid": account["metadata"]["uid"], "creationTimestamp": _text(now)}
    spec = {**asked["spec"], "audiences": asked["spec"].get("audiences") or list(core.identity.accounts.audiences)}
    if errors := validate({"spec": spec}):
        raise invalid(_GROUP, _KIND, "", errors)
    if core.registry.admission.judges:
        attributes.obj = {**asked, "spec": spec}
        await core.registry.admission.validate(attributes)
    answer, _ = rules.decode({**asked, **_answered(core, x, account, spec, now)})
    return answers.value(201, choice, transform.partial(answer) if choice.transform else answer)


def _attributes(scope: ResourceScope, x: Exchange, asked: Object, ctx: WriteContext, rules: BuiltinRules) -> Attributes:
    return Attributes(
        "CREATE",
        scope,
        x.info.namespace,
        x.info.name,
        asked,
        None,
        x.user,
        ctx.dry_run,
        "token",
        kind=rules.kind.gvk,
        form=rules,
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", **ctx.options},
        warn=ctx.warn,
        annotate=ctx.annotate,
    )


def _account(core: Core, namespace: str, name: str, uid: str) -> Object:
    account = _find(core, "serviceaccounts", namespace, name)
    if uid and uid != account["metadata"]["uid"]:
        why = f"the UID in the token request ({uid}) does not match the UID of the service account"
        raise conflict(_GROUP, _KIND, name, f"{why} ({account['metadata']['uid']})")
    return account


def _find(core: Core, resource: str, namespace: str, name: str) -> Object:
    if not name:
        raise BadRequest("Name parameter required.")
    found = core.identity.accounts.find(resource, namespace, name)
    if found is None:
        raise not_found("", resource, name)
    return dict(found)


def _answered(core: Core, x: Exchange, account: Object, spec: Object, now: int) -> Object:
    """Spec and status of the answer."""
    accounts = core.identity.accounts
    bound = _bound(core, account, spec.get("boundObjectRef"))
    seconds, longest = spec["expirationSeconds"], accounts.config.max_seconds
    if 0 < longest < seconds:
        x.warnings.append(f"requested expiration of {seconds} seconds shortened to {longest} seconds")
        seconds = spec["expirationSeconds"] = longest
    own = all(audience in accounts.audiences for audience in spec["audiences"])
    extends = accounts.config.extend and bound.pod is not None and seconds == _PROJECTED_SECONDS and own
    token = accounts.issue(
        account,
        spec["audiences"],
        bound,
        now=now,
        seconds=_EXTENDED_SECONDS if extends else seconds,
        warn_after=seconds if extends else 0,
    )
    if x.audit is not None:
        x.audit.annotate(_ISSUED, f"JTI={codec.decode(decode(token.split('.')[1]) or b'')['jti']}")
    return {"spec": spec, "status": {"token": token, "expirationTimestamp": _text(now + seconds)}}


def _bound(core: Core, account: Object, reference: Object | None) -> Bound:
    """What the token is to be bound to; raises BadRequest, NotFound, Conflict."""
    if reference is None:
        return Bound()
    namespace, name = account["metadata"]["namespace"], reference.get("name", "")
    group, version, kind = _group_kind(reference)
    if group or kind not in ("Pod", "Node", "Secret"):
        why = f"cannot bind token to object of type {group}/{version}, Kind={kind}"
        if binds_webhook(reference):
            why += " (feature gate APIServerWebhookAuthenticationToken is disabled)"
        raise BadRequest(why)
    found = _find(core, f"{kind.lower()}s", "" if kind == "Node" else namespace, name)
    bound = _bound_pod(core, account, found) if kind == "Pod" else Bound(**{kind.lower(): found})
    if reference.get("uid") and reference["uid"] != found["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record"
        raise conflict("", kind, name, f"{why}. The object might have been deleted and then recreated")
    return bound


def _group_kind(reference: Object) -> tuple[str, str, str]:
    try:
        group, version = split_api_version(reference.get("apiVersion", ""))
    except ValueError:
        group = version = ""
    return group, version, reference.get("kind", "")


def _bound_pod(core: Core, account: Object, pod: Object) -> Bound:
    spec = pod.get("spec") or {}
    name = account["metadata"]["name"]
    if spec.get("serviceAccountName") != name:
        why = f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        raise BadRequest(why)
    node_name = spec.get("nodeName")
    if not node_name:
        return Bound(pod)
    node = core.identity.accounts.find("nodes", "", node_name)
    return Bound(pod, node=node or {"metadata": {"name": node_name}})


def _text(second: int) -> str:
    return times.format_time(datetime.fromtimestamp(second, UTC))
