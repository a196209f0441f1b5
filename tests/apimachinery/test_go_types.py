import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.go_types import TypeTable, go_name
from steersman.apimachinery.go_values import DecodeError, canonical_base64

TABLE = TypeTable(
    {
        "api/v1.Thing": [
            ["name", 1, "string"],
            ["always", 0, "string"],
            ["count", 1, "int32"],
            ["pointer", 1, "*int64"],
            ["ratio", 1, "float64"],
            ["on", 1, "*bool"],
            ["bytes", 1, "[]uint8"],
            ["blobs", 1, "map[string][]uint8"],
            ["words", 0, "[]string"],
            ["labels", 1, "map[string]string"],
            ["parts", 1, "[]api/v1.Part"],
            ["part", 0, "api/v1.Part"],
            ["phase", 1, "api/v1.Phase"],
            ["at", 3, "meta/v1.Time"],
            ["since", 1, "meta/v1.Time"],
            ["size", 1, "*resource.Quantity"],
            ["port", 0, "intstr.IntOrString"],
            ["raw", 1, "*runtime.RawExtension"],
            ["limits", 1, "api/v1.Limits"],
            ["source", 1, "*api/v1.Secret", "Source"],
        ],
        "api/v1.Part": [["key", 0, "string"], ["thing", 1, "*api/v1.Thing"]],
        "api/v1.Secret": [["optional", 1, "*bool"]],
        "api/v1.Phase": "string",
        "api/v1.Limits": "map[api/v1.Phase]resource.Quantity",
        "meta/v1.Time": "!Time",
        "resource.Quantity": "!Quantity",
        "intstr.IntOrString": "!IntOrString",
        "runtime.RawExtension": "!RawExtension",
    }
)
ZERO = {"always": "", "words": None, "part": {"key": ""}, "since": None, "port": 0}


def decode(value, **options):
    return TABLE.decode("api/v1.Thing", value, **options)


def test_zero_values_are_filled_in_or_left_out_as_their_tags_say():
    assert decode({}) == (ZERO, [])
    assert decode(None) == (ZERO, [])
    assert decode(dict.fromkeys(["name", "always", "count", "pointer", "parts", "part", "at", "port"]))[0] == ZERO


def test_pointers_to_zero_values_stay():
    decoded, _ = decode({"pointer": 0, "on": False, "count": 0, "name": ""})
    assert decoded == {**ZERO, "pointer": 0, "on": False}


def test_fields_come_in_the_types_order_and_maps_sorted():
    decoded, _ = decode({"labels": {"b": "1", "a": "2"}, "words": ["z", "a"], "name": "n"})
    assert list(decoded) == ["name", "always", "words", "labels", "part", "since", "port"]
    assert list(decoded["labels"]) == ["a", "b"]
    assert decoded["words"] == ["z", "a"]


def test_empty_containers_vanish_in_a_round_trip_through_the_store():
    value = {"words": [], "labels": {}, "blobs": {"k": None}}
    assert decode(value)[0] == {**ZERO, "words": [], "blobs": {"k": None}}
    assert decode(value, drop_empty=True)[0] == {**ZERO, "blobs": {"k": ""}}


def test_nulls_in_containers_become_zero_values():
    decoded, _ = decode({"parts": [None], "labels": {"a": None}, "words": [None]})
    assert decoded == {**ZERO, "parts": [{"key": ""}], "labels": {"a": ""}, "words": [""]}


def test_values_with_a_form_of_their_own():
    decoded, unknown = decode(
        {
            "at": "2024-01-01T02:00:00.5+02:00",
            "size": 1000,
            "limits": {"cpu": "0.1"},
            "port": "http",
            "raw": {"b": 1, "a": None},
            "bytes": "AB==",
            "ratio": 2.0,
        }
    )
    assert decoded == {
        **ZERO,
        "ratio": 2,
        "bytes": "AA==",
        "at": "2024-01-01T00:00:00Z",
        "size": "1k",
        "port": "http",
        "raw": {"b": 1, "a": None},
        "limits": {"cpu": "100m"},
    }
    assert unknown == []


def test_unknown_fields_are_named_by_their_path():
    value = {"x": 1, "parts": [{"key": "a"}, {"y": 1, "thing": {"z": 1}}], "Name": "n", "source": {"q": 1}}
    assert decode(value)[1] == ["x", "parts[1].y", "parts[1].thing.z", "Name", "source.q"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "array into Go value of type v1.Thing"),
        ("x", "string into Go value of type v1.Thing"),
        ({"name": 1}, "number into Go struct field Thing.name of type string"),
        ({"on": "yes"}, "string into Go struct field Thing.on of type bool"),
        ({"count": True}, "bool into Go struct field Thing.count of type int32"),
        ({"count": 1.5}, "number 1.5 into Go struct field Thing.count of type int32"),
        ({"count": 1 << 31}, "number 2147483648 into Go struct field Thing.count of type int32"),
        ({"labels": []}, "array into Go struct field Thing.labels of type map[string]string"),
        ({"labels": {"a": {}}}, "object into Go struct field Thing.labels of type string"),
        ({"words": {}}, "object into Go struct field Thing.words of type []string"),
        ({"parts": "x"}, "string into Go struct field Thing.parts of type []v1.Part"),
        ({"parts": [{"key": 1}]}, "number into Go struct field Part.parts.key of type string"),
        ({"part": {"thing": {"phase": 1}}}, "number into Go struct field Thing.part.thing.phase of type v1.Phase"),
        ({"source": {"optional": 1}}, "number into Go struct field Secret.Source.source.optional of type bool"),
        ({"at": 1}, "number into Go struct field Thing.at of type string"),
        ({"port": True}, "bool into Go struct field Thing.port of type int32"),
        ({"limits": "x"}, "string into Go struct field Thing.limits of type v1.Limits"),
    ],
)
def test_wrong_types_are_refused_in_gos_words(value, why):
    with pytest.raises(DecodeError) as caught:
        decode(value)
    assert str(caught.value) == f"json: cannot unmarshal {why}"


def test_the_first_wrong_type_counts_unless_a_value_cannot_be_parsed():
    with pytest.raises(DecodeError, match=r"Thing\.name"):
        decode({"name": 1, "count": "x"})
    with pytest.raises(DecodeError, match="unable to parse quantity's suffix"):
        decode({"name": 1, "size": "1i"})


@pytest.mark.parametrize(
    ("text", "expected"), [("", ""), ("AAEC/w==", "AAEC/w=="), ("AA\n==\r\n", "AA=="), ("A\nA==", "AA==")]
)
def test_base64_is_made_canonical(text, expected):
    assert canonical_base64(text) == expected


@pytest.mark.parametrize(
    ("text", "offset"),
    [("%", 0), ("A", 0), ("AAA", 0), ("AA=A", 2), ("=", 0), ("AAAA=", 4), ("AA==A", 4), ("AAA%", 3), ("AAAA\n%", 5)],
)
def test_bad_base64_is_refused_at_its_offset(text, offset):
    with pytest.raises(DecodeError) as caught:
        canonical_base64(text)
    assert str(caught.value) == f"illegal base64 data at input byte {offset}"


def test_go_names_keep_only_the_last_package():
    assert go_name("map[string][]api/core/v1.Pod") == "map[string][]v1.Pod"
    assert go_name("*a/b/v1.X") == "*v1.X"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "thing", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)
THINGS = st.dictionaries(st.sampled_from([entry[0] for entry in TABLE.types["api/v1.Thing"]]), JSON, max_size=6)


@given(THINGS)
def test_decoding_again_changes_nothing(value):
    try:
        decoded, _ = decode(value)
    except DecodeError as error:
        assert str(error)
        return
    assert decode(decoded) == (decoded, [])
    stored, _ = decode(decoded, drop_empty=True)
    assert decode(stored, drop_empty=True) == (stored, [])


def test_fields_are_read_as_sent_or_in_the_order_of_the_type() -> None:
    table = TypeTable({"p.T": [["b", 1, "string"], ["a", 1, "int32"], ["when", 1, "p.Time"]], "p.Time": "!Time"})
    for value, told in ({"a": "x", "b": 1}, "T.b"), ({"when": 1, "a": "x"}, "T.a"):
        with pytest.raises(DecodeError, match=told):
            table.decode("p.T", value, by_field=True)
    with pytest.raises(DecodeError, match=r"T\.a"):
        table.decode("p.T", {"a": "x", "b": 1})


def test_an_empty_map_may_be_kept() -> None:
    table = TypeTable({"p.T": [["kept", 4, "map[string]string"], ["lost", 1, "map[string]string"]]})
    assert table.decode("p.T", {"kept": {}, "lost": {}})[0] == {"kept": {}}
    assert table.decode("p.T", {"kept": None})[0] == {}
