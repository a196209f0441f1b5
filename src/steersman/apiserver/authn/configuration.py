"""AuthenticationConfiguration: issuers of tokens, and who may come without any, from a file.

Source: apiserver `pkg/apis/apiserver/{v1/types.go,validation/validation.go}`; kubernetes
`pkg/kubeapiserver/options/authentication.go`; KEP-3331, KEP-4633.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steersman.api.authentication.claims import Expression, ExpressionError, compile_claims, compile_user
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, Struct
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.meta import domain_prefixed_path
from steersman.apimachinery.schema.urls import UrlError, parse_url
from steersman.apiserver.authn.jwt_settings import JwtSettings, Rule, Source
from steersman.apiserver.config_files import ConfigFileError, decode_config

_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_KIND = "AuthenticationConfiguration"
_MAX_ISSUERS = 64
_TYPES: dict[str, Any] = {
    _KIND: [
        ["kind", 1, "string"],
        ["apiVersion", 1, "string"],
        ["jwt", 1, "[]JWTAuthenticator"],
        ["anonymous", 1, "*AnonymousAuthConfig"],
    ],
    "AnonymousAuthConfig": [["enabled", 0, "bool"], ["conditions", 1, "[]AnonymousAuthCondition"]],
    "AnonymousAuthCondition": [["path", 0, "string"]],
    "JWTAuthenticator": [
        ["issuer", 0, "Issuer"],
        ["claimValidationRules", 1, "[]ClaimValidationRule"],
        ["claimMappings", 0, "ClaimMappings"],
        ["userValidationRules", 1, "[]UserValidationRule"],
    ],
    "Issuer": [
        ["url", 0, "string"],
        ["discoveryURL", 1, "*string"],
        ["certificateAuthority", 1, "string"],
        ["audiences", 1, "[]string"],
        ["audienceMatchPolicy", 1, "string"],
        ["egressSelectorType", 1, "string"],
    ],
    "ClaimValidationRule": [
        ["claim", 1, "string"],
        ["requiredValue", 1, "string"],
        ["expression", 1, "string"],
        ["message", 1, "string"],
    ],
    "ClaimMappings": [
        ["username", 0, "PrefixedClaimOrExpression"],
        ["groups", 0, "PrefixedClaimOrExpression"],
        ["uid", 0, "ClaimOrExpression"],
        ["extra", 1, "[]ExtraMapping"],
    ],
    "PrefixedClaimOrExpression": [["claim", 1, "string"], ["prefix", 1, "*string"], ["expression", 1, "string"]],
    "ClaimOrExpression": [["claim", 1, "string"], ["expression", 1, "string"]],
    "ExtraMapping": [["key", 1, "string"], ["valueExpression", 1, "string"]],
    "UserValidationRule": [["expression", 1, "string"], ["message", 1, "string"]],
}
_TABLE = TypeTable(_TYPES)
_BOTH = "claim and expression can't both be set"
_EITHER = "claim or expression is required"
_VERIFIED = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Authentication:
    """What a file says. `anonymous` is as `Authenticator` takes it, None when the file does not speak of it."""

    issuers: tuple[JwtSettings, ...] = ()
    anonymous: bool | tuple[str, ...] | None = None


def read_configuration(raw: bytes, own_issuers: Collection[str] = ()) -> Authentication:
    """The configuration in a file's bytes. Raises ConfigFileError.

    `own_issuers` sign the server's own tokens: nobody else may be given their name.
    """
    config = decode_config(raw, _KIND, _VERSIONS, _TABLE)
    entries = config.get("jwt") or ()
    reading = _Reading(sorted(set(own_issuers)))
    issuers = reading.issuers(entries)
    anonymous = config.get("anonymous")
    if anonymous is not None and not anonymous["enabled"] and anonymous.get("conditions"):
        why = "enabled should be set to true when conditions are defined"
        conditions = [Struct(Path=each["path"]) for each in anonymous["conditions"]]
        reading.errors.append(fe.invalid("anonymous.conditions", conditions, why))
    if reading.errors:
        raise ConfigFileError(fe.aggregate(reading.errors))
    return Authentication(tuple(issuers), None if anonymous is None else _anonymous(anonymous))


def _anonymous(config: Object) -> bool | tuple[str, ...]:
    paths = tuple(each["path"] for each in config.get("conditions") or ())
    return paths or bool(config["enabled"])


@dataclass(slots=True)
class _Reading:
    """Makes settings of a file's entries, and collects what is wrong with them, in upstream's order."""

    disallowed: Sequence[str]
    errors: list[FieldError] = field(default_factory=list)

    def issuers(self, entries: Sequence[Object]) -> list[JwtSettings]:
        if len(entries) > _MAX_ISSUERS:
            self.errors.append(fe.too_many("jwt", len(entries), _MAX_ISSUERS))
            return []
        found = []
        urls: set[str] = set()
        discoveries: set[str] = set()
        for index, entry in enumerate(entries):
            path = f"jwt[{index}]"
            found.append(self._issuer(entry, path))
            url, discovery = entry["issuer"]["url"], entry["issuer"].get("discoveryURL") or ""
            for value, seen, name in ((url, urls, "url"), (discovery, discoveries, "discoveryURL")):
                if value in seen:
                    self.errors.append(fe.duplicate(f"{path}.issuer.{name}", value))
                if value or name == "url":
                    seen.add(value)
        return found

    def _issuer(self, entry: Object, path: str) -> JwtSettings:
        issuer, mappings = entry["issuer"], entry["claimMappings"]
        self.errors += _issuer_errors(issuer, f"{path}.issuer", self.disallowed)
        required, claim_rules = self._claim_rules(
            entry.get("claimValidationRules") or (), f"{path}.claimValidationRules"
        )
        where = f"{path}.claimMappings"
        username = self._source(mappings["username"], f"{where}.username", required=True)
        groups = self._source(mappings["groups"], f"{where}.groups")
        uid = self._uid(mappings["uid"], f"{where}.uid")
        extra = self._extra(mappings.get("extra") or (), f"{where}.extra")
        self._check_email(username, [*(rule.expression for rule in claim_rules), *(each for _, each in extra)], where)
        user_rules = self._user_rules(entry.get("userValidationRules") or (), f"{path}.userValidationRules")
        authority = issuer.get("certificateAuthority")
        return JwtSettings(
            issuer["url"],
            tuple(issuer.get("audiences") or ()),
            username,
            groups,
            uid,
            tuple(extra),
            required,
            tuple(claim_rules),
            tuple(user_rules),
            issuer.get("discoveryURL") or "",
            authority.encode() if authority else None,
        )

    def _claim_rules(self, rules: Sequence[Object], path: str) -> tuple[dict[str, str], list[Rule]]:
        required: dict[str, str] = {}
        compiled: list[Rule] = []
        seen: set[str] = set()
        for index, rule in enumerate(rules):
            where = f"{path}[{index}]"
            claim, source, message = (rule.get(key) or "" for key in ("claim", "expression", "message"))
            if claim and source:
                self.errors.append(fe.invalid(where, claim, _BOTH))
            elif not claim and not source:
                self.errors.append(fe.required(where, _EITHER))
            elif claim:
                if message:
                    why = "may not be specified when claim is set"
                    self.errors.append(fe.invalid(f"{where}.message", message, why))
                if claim in required:
                    self.errors.append(fe.duplicate(f"{where}.claim", claim))
                required[claim] = rule.get("requiredValue") or ""
            else:
                if value := rule.get("requiredValue"):
                    why = "may not be specified when expression is set"
                    self.errors.append(fe.invalid(f"{where}.requiredValue", value, why))
                expression = self._once(source, seen, f"{where}.expression")
                if expression is not None:
                    compiled.append(Rule(expression, message))
        return required, compiled

    def _once(self, source: str, seen: set[str], path: str, *, user: bool = False) -> Expression | None:
        """A rule's expression, which may stand there once only."""
        if source in seen:
            self.errors.append(fe.duplicate(path, source))
            return None
        seen.add(source)
        return self._compiled(source, path, rule=True, user=user)

    def _user_rules(self, rules: Sequence[Object], path: str) -> list[Rule]:
        compiled: list[Rule] = []
        seen: set[str] = set()
        for index, rule in enumerate(rules):
            where, source = f"{path}[{index}].expression", rule.get("expression") or ""
            if not source:
                self.errors.append(fe.required(where))
                continue
            expression = self._once(source, seen, where, user=True)
            if expression is not None:
                compiled.append(Rule(expression, rule.get("message") or ""))
        return compiled

    def _source(self, mapping: Object, path: str, *, required: bool = False) -> Source:
        claim, source, prefix = mapping.get("claim") or "", mapping.get("expression") or "", mapping.get("prefix")
        if claim and source:
            self.errors.append(fe.invalid(path, "", _BOTH))
        elif source:
            if prefix is not None:
                why = "may not be specified when expression is set"
                self.errors.append(fe.invalid(f"{path}.prefix", prefix, why))
            return Source(expression=self._compiled(source, f"{path}.expression"))
        elif claim:
            if prefix is None:
                why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                self.errors.append(fe.required(f"{path}.prefix", why))
        elif required:
            self.errors.append(fe.required(path, _EITHER))
        return Source(claim, prefix or "")

    def _uid(self, mapping: Object, path: str) -> Source:
        claim, source = mapping.get("claim") or "", mapping.get("expression") or ""
        if claim and source:
            self.errors.append(fe.invalid(path, "", _BOTH))
        elif source:
            return Source(expression=self._compiled(source, f"{path}.expression"))
        return Source(claim)

    def _extra(self, mappings: Sequence[Object], path: str) -> list[tuple[str, Expression]]:
        found: list[tuple[str, Expression]] = []
        seen: set[str] = set()
        for index, mapping in enumerate(mappings):
            key, source = mapping.get("key") or "", mapping.get("valueExpression") or ""
            where = f"{path}[{index}]"
            self.errors += _key_errors(key, f"{where}.key")
            if key in seen:
                self.errors.append(fe.duplicate(f"{where}.key", key))
                continue
            seen.add(key)
            if not source:
                self.errors.append(fe.required(f"{where}.valueExpression"))
            elif (expression := self._compiled(source, f"{where}.valueExpression")) is not None:
                found.append((key, expression))
        return found

    def _check_email(self, username: Source, others: Iterable[Expression], path: str) -> None:
        """Whoever goes by an e-mail address must see to it that it is verified."""
        own = username.expression
        if own is not None and own.email and not any(each.email_verified for each in (own, *others)):
            self.errors.append(fe.invalid(f"{path}.username.expression", own.source, _VERIFIED))

    def _compiled(self, source: str, path: str, *, rule: bool = False, user: bool = False) -> Expression | None:
        try:
            return compile_user(source) if user else compile_claims(source, rule=rule)
        except ExpressionError as error:
            wrong = fe.internal(path, str(error)) if error.internal else fe.invalid(path, source, str(error))
            self.errors.append(wrong)
            return None


def _issuer_errors(issuer: Object, path: str, disallowed: Sequence[str]) -> list[FieldError]:
    url, discovery = issuer["url"], issuer.get("discoveryURL") or ""
    errors = _url_errors(url, f"{path}.url", disallowed) if url else [fe.required(f"{path}.url")]
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            errors.append(fe.invalid(f"{path}.discoveryURL", discovery, "discoveryURL must be different from URL"))
        errors += _url_errors(discovery, f"{path}.discoveryURL", ())
    errors += _audience_errors(issuer.get("audiences") or (), issuer.get("audienceMatchPolicy") or "", path)
    if why := _authority_problem(issuer.get("certificateAuthority") or ""):
        errors.append(fe.invalid(f"{path}.certificateAuthority", "<omitted>", why))
    selector = issuer.get("egressSelectorType")
    if selector:
        known = selector in ("controlplane", "cluster")
        why = (
            "this server has no egress selectors" if known else "egress selector must be either controlplane or cluster"
        )
        errors.append(fe.invalid(f"{path}.egressSelectorType", selector, why))
    return errors


def _url_errors(url: str, path: str, disallowed: Sequence[str]) -> list[FieldError]:
    problems = []
    if url in disallowed:
        problems.append(f"URL must not overlap with disallowed issuers: [{' '.join(disallowed)}]")
    try:
        parts = parse_url(url)
    except UrlError as error:
        return [fe.invalid(path, url, why) for why in (*problems, str(error))]
    if parts.scheme != "https":
        problems.append("URL scheme must be https")
    if parts.user is not None:
        problems.append("URL must not contain a username or password")
    if parts.query:
        problems.append("URL must not contain a query")
    if parts.fragment:
        problems.append("URL must not contain a fragment")
    return [fe.invalid(path, url, why) for why in problems]


def _audience_errors(audiences: Sequence[str], policy: str, path: str) -> list[FieldError]:
    where, policy_path = f"{path}.audiences", f"{path}.audienceMatchPolicy"
    if not audiences:
        return [fe.required(where, f"at least one {where} is required")]
    errors: list[FieldError] = []
    for index, audience in enumerate(audiences):
        if not audience:
            errors.append(fe.required(f"{where}[{index}]"))
        if audience in audiences[:index]:
            errors.append(fe.duplicate(f"{where}[{index}]", audience))
    if policy != "MatchAny":
        if len(audiences) > 1:
            errors.append(
                fe.invalid(policy_path, policy, "audienceMatchPolicy must be MatchAny for multiple audiences")
            )
        elif policy:
            why = "audienceMatchPolicy must be empty or MatchAny for single audience"
            errors.append(fe.invalid(policy_path, policy, why))
    return errors


def _authority_problem(pem: str) -> str:
    if not pem:
        return ""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return "data does not contain any valid RSA or ECDSA certificates"
    return ""


def _key_errors(key: str, path: str) -> list[FieldError]:
    errors = domain_prefixed_path(key, path)
    if key != key.lower():
        errors.append(fe.invalid(path, key, "must be lowercase"))
    host = key.partition("/")[0] if "/" in key else ""
    if any(host == domain or host.endswith(f".{domain}") for domain in ("kubernetes.io", "k8s.io")):
        why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        errors.append(fe.invalid(path, key, why))
    return errors


def issuer_errors(url: str, audience: str, authority: str, own_issuers: Collection[str]) -> str:
    """What is wrong with an issuer that flags name, in one line; "" for nothing."""
    issuer = {"url": url, "audiences": [audience], "certificateAuthority": authority}
    errors = _issuer_errors(issuer, "issuer", sorted(set(own_issuers)))
    return fe.aggregate(errors) if errors else ""
