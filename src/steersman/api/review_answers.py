"""What the answers of webhooks have in common: a review of a known kind, in JSON or YAML.

Source: apimachinery `pkg/runtime/serializer/{json,versioning}`.
"""

from __future__ import annotations

from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.go_values import json_kind

Object = dict[str, Any]
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


class AnswerError(Exception):
    """The answer is not what was asked for."""


def decode(body: bytes, group: str, version: str, kind: str, known: tuple[str, ...]) -> Object:
    """The review in an answer's body, whose own kind and version may be left out.

    `version` is the one that was asked for, `known` are those that the server speaks. Raises AnswerError.
    """
    review = _decoded(body)
    given = text(review.get("apiVersion")), text(review.get("kind"))
    if any(given) and given != (f"{group}/{version}", kind):
        _check_known(given, group, version, kind, known)
    return review


def mismatch(value: Any, field: str, go_type: str) -> AnswerError:
    """A value of another JSON type than the field's."""
    return AnswerError(f"json: cannot unmarshal {json_kind(value)} into Go struct field {field} of type {go_type}")


def gvk(api_version: str, kind: str) -> str:
    """A kind as Go prints it."""
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def text(value: Any) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def _decoded(body: bytes) -> Object:
    try:
        review = codec.decode(body)
    except codec.JsonError as error:
        if body.lstrip().startswith(b"{"):
            raise AnswerError(f"couldn't get version/kind; json parse error: {error}") from None
        try:
            review = yaml.decode(body)
        except yaml.YamlError:
            raise AnswerError(f"couldn't get version/kind; json parse error: {error}") from None
    if review is None:
        return {}
    if not isinstance(review, dict):
        why = f"json: cannot unmarshal {json_kind(review)} into Go value of type {_TYPE_META}"
        raise AnswerError(f"couldn't get version/kind; json parse error: {why}")
    return review


def _check_known(given: tuple[str, str], group: str, version: str, kind: str, known: tuple[str, ...]) -> None:
    """Another kind than the expected one cannot become it."""
    api_version, other_kind = given
    other_group, _, other = api_version.rpartition("/")
    is_review = other_group == group and other in known and other_kind == kind
    if is_review or given == ("v1", "Status"):
        raise AnswerError(f"converting ({other}.{other_kind}) to ({version}.{kind}): unknown conversion")
    if api_version and other_kind:
        why = f"no kind {quote(other_kind)} is registered for version {quote(api_version)}"
        raise AnswerError(f'{why} in scheme "pkg/runtime/scheme.go:111"')
