"""From the claims of a token to a user, as an issuer's settings say.

Source: apiserver `plugin/pkg/authenticator/token/oidc/oidc.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.api.authentication.claims import Expression, ExpressionError, claims_value, texts
from steersman.apimachinery.errors import Unauthorized
from steersman.apimachinery.go_values import json_kind
from steersman.apiserver.authn.jwt_settings import JwtSettings, Rule, Source
from steersman.apiserver.authn.user import CREDENTIAL_ID, UserInfo

Claims = Mapping[str, Any]


def user_of(claims: Claims, settings: JwtSettings) -> UserInfo:
    """The user. Raises Unauthorized for claims that make none, or that the rules refuse."""
    value = claims_value(dict(claims))
    name = _username(claims, value, settings.username)
    groups = _groups(claims, value, settings.groups)
    uid = _uid(claims, value, settings.uid)
    user = UserInfo(name, uid, tuple(groups), _extra(claims, value, settings.extra))
    _check_required(claims, settings.required_claims)
    _check_rules(settings.claim_rules, value, "claim validation expression")
    shown = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": _lists(user.extra)}
    _check_rules(settings.user_rules, shown, "user info validation rule")
    return user


def _lists(extra: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {key: list(values) for key, values in extra.items()}


def _username(claims: Claims, value: Any, source: Source) -> str:
    if source.expression is not None:
        name = _text(source.expression, value, "username")
        if not name:
            raise Unauthorized("oidc: empty username via CEL expression is not allowed")
        return name
    try:
        name = _claim(claims, source.claim, str)
    except ValueError as error:
        raise Unauthorized(f"oidc: parse username claims {quote(source.claim)}: {error}") from None
    if source.claim == "email" and "email_verified" in claims:
        try:
            verified = _claim(claims, "email_verified", bool)
        except ValueError as error:
            raise Unauthorized(f"oidc: parse 'email_verified' claim: {error}") from None
        if not verified:
            raise Unauthorized("oidc: email not verified")
    return f"{source.prefix}{name}"


def _groups(claims: Claims, value: Any, source: Source) -> list[str]:
    if source.claim and source.claim in claims:
        given = claims[source.claim]
        items = [given] if isinstance(given, str) else given
        if items is None:
            return []
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            why = f"json: cannot unmarshal {json_kind(given)} into Go value of type string"
            raise Unauthorized(f"oidc: parse groups claim {quote(source.claim)}: {why}")
        return [f"{source.prefix}{item}" for item in items]
    if source.expression is None:
        return []
    return _texts(source.expression, value, "oidc: error evaluating group claim expression")


def _uid(claims: Claims, value: Any, source: Source) -> str:
    if source.claim:
        try:
            uid: str = _claim(claims, source.claim, str)
            return uid
        except ValueError as error:
            raise Unauthorized(f"oidc: parse uid claim {quote(source.claim)}: {error}") from None
    return "" if source.expression is None else _text(source.expression, value, "uid")


def _extra(claims: Claims, value: Any, mappings: Sequence[tuple[str, Expression]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    jti = claims.get("jti")
    if isinstance(jti, str) and jti:
        found[CREDENTIAL_ID] = (f"JTI={jti}",)
    for key, expression in mappings:
        items = _texts(expression, value, f"oidc: error evaluating extra claim expression: {expression.source}")
        if items:
            found[key] = tuple(items)
    return found


def _texts(expression: Expression, value: Any, what: str) -> list[str]:
    try:
        return texts(expression.evaluate(value))
    except ExpressionError as error:
        raise Unauthorized(f"{what}: {error}") from None


def _text(expression: Expression, value: Any, part: str) -> str:
    what = f"oidc: error evaluating {part} claim expression"
    try:
        found = expression.evaluate(value)
    except ExpressionError as error:
        raise Unauthorized(f"{what}: {error}") from None
    if not isinstance(found, str):
        raise Unauthorized(f"{what}: {part} claim expression must return a string")
    return found


def _claim(claims: Claims, name: str, kind: type) -> Any:
    """A claim of a type; null is its zero value. Raises ValueError with Go's words."""
    if name not in claims:
        raise ValueError("claim not present")
    value = claims[name]
    if value is None:
        return kind()
    if not isinstance(value, kind):
        wanted = {str: "string", bool: "bool"}[kind]
        raise ValueError(f"json: cannot unmarshal {json_kind(value)} into Go value of type {wanted}")
    return value


def _check_required(claims: Claims, required: Mapping[str, str]) -> None:
    for name, wanted in required.items():
        if name not in claims:
            raise Unauthorized(f"oidc: required claim {name} not present in ID token")
        try:
            given = _claim(claims, name, str)
        except ValueError as error:
            raise Unauthorized(f"oidc: parse claim {name}: {error}") from None
        if given != wanted:
            values = f"Got = {given}, want = {wanted}"
            raise Unauthorized(f"oidc: required claim {name} value does not match. {values}")


def _check_rules(rules: Sequence[Rule], value: Any, what: str) -> None:
    for rule in rules:
        try:
            holds = rule.expression.evaluate(value)
        except ExpressionError as error:
            raise Unauthorized(f"oidc: error evaluating {what}: {error}") from None
        if holds is not True:
            failed = f"validation expression '{rule.expression.source}' failed: {rule.message}"
            raise Unauthorized(f"oidc: error evaluating {what}: {failed}")
