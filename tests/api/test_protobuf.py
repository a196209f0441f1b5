"""Bodies in protobuf say what the same bodies in JSON say."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import builtin_kinds, protobuf_schema
from steersman.apimachinery.codec.protobuf import MAGIC, ProtobufError, UnknownKindError, decode, envelope

SCHEMA = protobuf_schema()
META = "apimachinery/pkg/apis/meta/v1.ObjectMeta"


def varint(value: int) -> bytes:
    value %= 1 << 64
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def record(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode_value(kind: str, value: Any) -> int | bytes | float:
    if kind in ("int32", "int64", "bool"):
        return int(value)
    if kind == "double":
        return float(value)
    if kind == "string":
        return value.encode()
    return base64.b64decode(value) if kind == "bytes" else encode(kind, value)


def encode(message: str, obj: dict[str, Any]) -> bytes:
    result = b""
    for number, (name, kind) in SCHEMA.fields(message).items():
        if not name:
            result += record(number, encode(kind, obj))
        elif name not in obj:
            continue
        elif kind.startswith("repeated "):
            result += b"".join(record(number, encode_value(kind[9:], each)) for each in obj[name])
        elif kind.startswith("map "):
            for key, each in obj[name].items():
                result += record(number, record(1, key.encode()) + record(2, encode_value(kind[4:], each)))
        else:
            result += record(number, encode_value(kind, obj[name]))
    return result


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = record(1, api_version.encode()) + record(2, kind.encode())
    return MAGIC + record(1, type_meta) + record(2, raw)


def decoded(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    return decode(envelope(body(api_version, kind, raw)), SCHEMA)


TEXTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=1, max_size=3)
BYTES = st.binary(max_size=6).map(lambda each: base64.b64encode(each).decode())


@given(data=TEXTS, binary=st.dictionaries(st.text(max_size=5), BYTES, min_size=1), immutable=st.booleans(), meta=TEXTS)
def test_a_config_map_is_as_in_json(data: Any, binary: Any, immutable: bool, meta: Any) -> None:
    config_map = {"metadata": {"name": "a", "labels": meta, "generation": -5}, "data": data, "binaryData": binary}
    config_map["immutable"] = immutable
    raw = encode("api/core/v1.ConfigMap", config_map)
    assert decoded("v1", "ConfigMap", raw) == {"apiVersion": "v1", "kind": "ConfigMap", **config_map}


def test_embedded_messages_stand_in_their_parents_place() -> None:
    volume = {"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}}
    container = {"name": "x", "env": [{"name": "e", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    pod = {"metadata": {"name": "p"}, "spec": {"volumes": [volume], "containers": [container]}}
    assert decoded("v1", "Pod", encode("api/core/v1.Pod", pod)) == {"apiVersion": "v1", "kind": "Pod", **pod}


def test_values_with_a_form_of_their_own() -> None:
    time = record(1, 1_600_000_000) + record(2, 123_456_789)
    meta = record(1, b"x") + record(8, time) + record(9, b"")
    assert decoded("v1", "Namespace", record(1, meta))["metadata"] == {
        "name": "x",
        "creationTimestamp": "2020-09-13T12:26:40Z",
        "deletionTimestamp": None,
    }
    lease = decoded("coordination.k8s.io/v1", "Lease", record(2, record(4, time)))
    assert lease["spec"] == {"renewTime": "2020-09-13T12:26:40.123456Z"}
    for raw, port in ((record(1, 0) + record(2, 80), 80), (record(1, 1) + record(3, b"http"), "http")):
        service = decoded("v1", "Service", record(2, record(1, record(4, raw))))
        assert service["spec"] == {"ports": [{"targetPort": port}]}
    limits = record(1, b"cpu") + record(2, record(1, b"500m"))
    quota = decoded("v1", "ResourceQuota", record(2, record(1, limits)))
    assert quota["spec"] == {"hard": {"cpu": "500m"}}
    assert decoded("apps/v1", "ControllerRevision", record(2, record(1, b'{"a": [1]}')))["data"] == {"a": [1]}


def test_a_crds_schema() -> None:
    props = "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"
    numbers = {name: number for number, (name, _) in SCHEMA.fields(props).items()}
    number = record(numbers["type"], b"number") + record(numbers["maximum"], 1.5) + record(numbers["minimum"], 2.0)
    number += record(numbers["default"], record(1, b"[null]")) + record(numbers["x-kubernetes-int-or-string"], 1)
    items = record(numbers["items"], record(1, number))
    allows = record(numbers["additionalProperties"], record(1, 1))
    schema = record(numbers["properties"], record(1, b"a") + record(2, items)) + allows
    spec = record(7, record(4, record(1, schema)))
    crd = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", record(2, spec))
    expected = {"type": "number", "maximum": 1.5, "minimum": 2, "default": [None], "x-kubernetes-int-or-string": True}
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "properties": {"a": {"items": expected}},
        "additionalProperties": True,
    }


def test_every_kind_has_its_message_and_every_field_a_known_type() -> None:
    for kind in builtin_kinds():
        assert f"{kind.group}/{kind.version}/{kind.kind}" in SCHEMA.kinds
    scalars = {"string", "bytes", "bool", "int32", "int64", "double"}
    for message in SCHEMA.messages:
        for _, kind in SCHEMA.fields(message).values():
            bare = kind.removeprefix("repeated ").removeprefix("map ")
            assert bare in scalars or bare in SCHEMA.messages


def test_unknown_fields_are_skipped() -> None:
    raw = record(99, b"xyz") + record(98, 1) + record(97, 1.0) + varint(96 << 3 | 5) + b"abcd"
    assert decoded("v1", "ConfigMap", raw) == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_no_such_kind() -> None:
    with pytest.raises(UnknownKindError):
        decoded("v1", "Nope", b"")


@given(st.binary(max_size=60))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    for raw in (data, record(1, data), record(2, data)):
        try:
            found = decoded("v1", "Pod", raw)
        except ProtobufError:
            continue
        assert found["kind"] == "Pod"


@pytest.mark.parametrize("data", [b"", b"{}", b"k8s", MAGIC, MAGIC + b"\xff", MAGIC + b"\x0b"])
def test_what_is_no_envelope(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        envelope(data)


def test_nesting_is_limited() -> None:
    props = "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"
    number = next(number for number, (name, _) in SCHEMA.fields(props).items() if name == "not")
    data = b""
    for _ in range(200):
        data = record(number, data)
    with pytest.raises(ProtobufError, match="depth"):
        decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", record(2, record(7, record(4, record(1, data)))))
