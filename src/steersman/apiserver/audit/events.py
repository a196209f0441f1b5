"""One request's audit record: what is found out about it on its way, and the events that are made of that.

Source: apiserver `pkg/audit/{request,context}.go`, `pkg/endpoints/filters/audit.go`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import orjson

from steersman._util import clock
from steersman._util.gojson import syntax_error
from steersman.api.kinds import protobuf_schema
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import protobuf, yaml
from steersman.apimachinery.codec.negotiate import JSON, PROTOBUF, YAML, content_type
from steersman.apiserver.audit.policy import API_VERSION, LEVELS, RECEIVED, REQUEST, REQUEST_RESPONSE, Verdict
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Decision
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.strategy import Object
from steersman.net.http import Response

_DECISION, _REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
_MAX_USER_AGENT = 1024
_MAX_STATUS = 4096  # bytes that the Status of a success has at most
_STATUS_FIELDS = ("status", "message", "reason", "details", "code")
# Strings (kept as they are), or blanks between tokens. Fixed, and linear on any text.
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')
_HTML = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Record:
    """What is known of a request that is recorded. Made when it is authenticated; endpoints and filters add to it."""

    __slots__ = (
        "_constraint",
        "_describes",
        "_head",
        "_request_object",
        "annotations",
        "audit_id",
        "impersonated",
        "object_ref",
        "received",
        "verdict",
    )

    def __init__(self, x: Exchange, user: UserInfo | None, verdict: Verdict) -> None:
        self.verdict = verdict
        self.audit_id = x.audit_id
        self.received = clock.now()
        self.annotations: dict[str, str] = {}
        self.impersonated: UserInfo | None = None
        self._constraint = ""
        self._request_object = b""
        info, request = x.info, x.request
        self._describes = info.path.startswith("/openapi")
        self._head = {
            "requestURI": f"{request.path}?{request.query}" if request.query else request.path,
            "verb": info.verb,
            "user": user.to_dict() if user is not None else {},
        }
        self.object_ref: dict[str, str] = {}
        if info.is_resource:
            self.object_ref = {
                "resource": info.resource,
                "namespace": info.namespace,
                "name": info.name,
                "uid": "",
                "apiGroup": info.group,
                "apiVersion": info.version,
                "resourceVersion": "",
                "subresource": info.subresource,
            }

    def impersonates(self, user: UserInfo, constraint: str) -> None:
        """The request is made as someone else; `constraint` names the mode that allowed it, "" for the plain one."""
        self.impersonated = user
        self._constraint = f"impersonate:{constraint}" if constraint else ""

    def decided(self, decision: Decision) -> None:
        """What the authorizer said."""
        self.annotate(_DECISION, "allow" if decision.allowed else "forbid")
        self.annotate(_REASON, decision.reason)

    def annotate(self, key: str, value: str, level: int = 1) -> None:
        """Add an annotation, unless the request is recorded at a lower level; the first value of a key stays."""
        if self.verdict.level >= level:
            self.annotations.setdefault(key, value)

    def request_object(self, obj: Object) -> None:
        """The decoded object of a write."""
        meta = obj.get("metadata")
        if isinstance(meta, dict):
            for key, field in (
                ("namespace", "namespace"),
                ("name", "name"),
                ("uid", "uid"),
                ("resourceVersion", "resourceVersion"),
            ):
                value = meta.get(field)
                if value and not self.object_ref.get(key):
                    self.object_ref[key] = str(value)
        if self.verdict.level >= REQUEST:
            self._request_object = _escaped(codec.encode(self._shown(obj)))

    def request_text(self, text: bytes) -> None:
        """A patch, as JSON."""
        if self.verdict.level >= REQUEST:
            self._request_object = compact(text)

    def delete_options(self, options: Mapping[str, Any]) -> None:
        """The options in a delete's body. Upstream encodes them in a version that has no name."""
        if self.verdict.level >= REQUEST:
            rest = {key: value for key, value in options.items() if key not in ("kind", "apiVersion")}
            named = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", **rest}
            self._request_object = _escaped(orjson.dumps(named))

    def event(self, x: Exchange, stage: str, answer: Answer | None = None) -> bytes:
        """An event, as one line of JSON without its end."""
        now = self.received if stage == RECEIVED else clock.now()
        parts: list[tuple[str, bytes]] = [
            ("kind", b'"Event"'),
            ("apiVersion", orjson.dumps(API_VERSION)),
            ("level", orjson.dumps(LEVELS[self.verdict.level])),
            ("auditID", _text(self.audit_id)),
            ("stage", orjson.dumps(stage)),
        ]
        parts += [(key, _text(value)) for key, value in self._head.items()]
        if self.impersonated is not None:
            parts.append(("impersonatedUser", _text(self.impersonated.to_dict())))
        if self._constraint:
            parts.append(("authenticationMetadata", _text({"impersonationConstraint": self._constraint})))
        if addresses := source_ips(x):
            parts.append(("sourceIPs", _text(addresses)))
        if agent := _user_agent(x.request.headers.get("user-agent", "")):
            parts.append(("userAgent", _text(agent)))
        if self.object_ref:
            parts.append(("objectRef", _text({key: value for key, value in self.object_ref.items() if value})))
        if answer is not None:
            parts += self._of_answer(answer)
        parts.append(("requestReceivedTimestamp", orjson.dumps(_micro_time(self.received))))
        parts.append(("stageTimestamp", orjson.dumps(_micro_time(now))))
        if self.annotations:
            parts.append(("annotations", _text(dict(sorted(self.annotations.items())))))
        return b"{" + b",".join(b'"%b":%b' % (key.encode(), value) for key, value in parts) + b"}"

    def _of_answer(self, answer: Answer) -> list[tuple[str, bytes]]:
        status: dict[str, Any] = {"metadata": {}}
        # A description of the API is no object, and what is said instead of one is.
        has_object = not self._describes or answer.status >= 400
        body = _json_body(answer) if isinstance(answer, Response) and has_object else b""
        told = _status_of(answer.status, body)
        if told is not None:
            status |= {key: told[key] for key in _STATUS_FIELDS if told.get(key) not in (None, "")}
        status["code"] = answer.status
        parts = [("responseStatus", _text(status))]
        if self._request_object:
            parts.append(("requestObject", self._request_object))
        if body and self.verdict.level >= REQUEST_RESPONSE:
            if self.verdict.without_managed_fields and b'"managedFields"' in body:
                body = codec.encode(self._shown(codec.decode_stored(body)))
            parts.append(("responseObject", _escaped(compact(body) if b"\n" in body else body)))
        return parts

    def _shown(self, obj: Any) -> Any:
        """An object, or a list of some, without managedFields if the policy wants none."""
        if not self.verdict.without_managed_fields:
            return obj
        shown = dict(obj)
        meta = shown.get("metadata")
        if isinstance(meta, dict) and "managedFields" in meta:
            shown["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
        if isinstance(shown.get("items"), list):
            shown["items"] = [self._shown(item) if isinstance(item, dict) else item for item in shown["items"]]
        return shown


def without_objects(event: bytes) -> bytes:
    """An event without its request and response, marked as cut (upstream's truncating backend)."""
    value = orjson.loads(event)
    for key in ("requestObject", "responseObject"):
        value.pop(key, None)
    value["annotations"] = {**(value.get("annotations") or {}), "audit.k8s.io/truncated": "true"}
    return _text(value)


def source_ips(x: Exchange) -> list[str]:
    """Where a request comes from: proxies' headers first, then the connection.

    Source: apimachinery `pkg/util/net/http.go` (SourceIPs).
    """
    forwarded = x.request.header_values("x-forwarded-for")
    texts = (forwarded[0] if forwarded else "").split(",")
    found = [address for text in texts if (address := _address(text.strip()))]
    real = _address(x.request.headers.get("x-real-ip", ""))
    if real and real not in found:
        found.append(real)
    peer = _address(x.request.peer.rpartition(":")[0].strip("[]"))
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return found


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        return ""


def _user_agent(text: str) -> str:
    return f"{text[:_MAX_USER_AGENT]}...TRUNCATED" if len(text) > _MAX_USER_AGENT else text


def _json_body(answer: Response) -> bytes:
    """The object that was answered, in JSON; empty for answers that are no objects."""
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    media = content_type(next((value for name, value in answer.headers if name == "Content-Type"), ""))
    if media == JSON:
        return body if body[:1] == b"{" and b'"kind"' in body else b""
    if media == YAML:
        return codec.encode(yaml.decode(body))
    if media == PROTOBUF:
        try:
            return codec.encode(protobuf.decode(protobuf.envelope(body), protobuf_schema()))
        except (protobuf.ProtobufError, protobuf.UnknownKindError):
            return b""
    return b""


def _status_of(code: int, body: bytes) -> Mapping[str, Any] | None:
    """The Status in an answer's body, None when it is something else."""
    if not body or (code < HTTPStatus.BAD_REQUEST and (len(body) > _MAX_STATUS or b'"Status"' not in body)):
        return None
    value: Mapping[str, Any] = orjson.loads(body)
    return value if value.get("kind") == "Status" and value.get("apiVersion") == "v1" else None


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _text(value: Any) -> bytes:
    try:
        return _escaped(orjson.dumps(value))
    except TypeError:  # halves of surrogate pairs
        return _escaped(orjson.dumps(orjson.loads(str(value).encode("utf-8", "replace"))))


def _escaped(text: bytes) -> bytes:
    """JSON as Go writes it: what HTML would read as markup is escaped."""
    if b"&" in text or b"<" in text or b">" in text or b"\xe2\x80" in text:
        return text.decode("utf-8", "replace").translate(_HTML).encode()
    return text


def compact(text: bytes) -> bytes:
    """A JSON text without blanks between its tokens; empty when it is no JSON."""
    if syntax_error(text):
        return b""
    return _escaped(_TOKENS.sub(lambda found: found[0] if found[0][:1] == b'"' else b"", text))
