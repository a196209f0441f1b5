"""The functions that rules may call, with the types of their arguments and results.

One line per overload: function, arguments (a leading dot: the first is the receiver), result, identifier.

Source: cel-go `common/stdlib/standard.go`, `ext/{strings,lists,sets,comprehensions}.go`, `cel/library.go`; apiserver
`pkg/cel/library` and `pkg/cel/environment/base.go` for what is enabled in Kubernetes 1.36, the version that new
expressions must be compatible with in 1.37.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import LIST_TYPE, MAP_TYPE, OPTIONAL_TYPE


class Overload(NamedTuple):
    """One signature of a function; `params` are its type variables, `member`: called on its first argument."""

    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    params: frozenset[str]


_COMPARABLE = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_SUMMABLE = ["int", "uint", "double", "duration"]

_TABLE = """
_?_:_ bool,A,A A conditional
_&&_ bool,bool bool logical_and
_||_ bool,bool bool logical_or
!_ bool bool logical_not
@not_strictly_false bool bool not_strictly_false
_==_ A,A bool equals
_!=_ A,A bool not_equals
_+_ bytes,bytes bytes add_bytes
_+_ double,double double add_double
_+_ duration,duration duration add_duration_duration
_+_ duration,timestamp timestamp add_duration_timestamp
_+_ timestamp,duration timestamp add_timestamp_duration
_+_ int,int int add_int64
_+_ list<A>,list<A> list<A> add_list
_+_ string,string string add_string
_+_ uint,uint uint add_uint64
_/_ double,double double divide_double
_/_ int,int int divide_int64
_/_ uint,uint uint divide_uint64
_%_ int,int int modulo_int64
_%_ uint,uint uint modulo_uint64
_*_ double,double double multiply_double
_*_ int,int int multiply_int64
_*_ uint,uint uint multiply_uint64
-_ double double negate_double
-_ int int negate_int64
_-_ double,double double subtract_double
_-_ duration,duration duration subtract_duration_duration
_-_ int,int int subtract_int64
_-_ timestamp,duration timestamp subtract_timestamp_duration
_-_ timestamp,timestamp duration subtract_timestamp_timestamp
_-_ uint,uint uint subtract_uint64
_[_] list<A>,int A index_list
_[_] map<A,B>,A B index_map
_[_] optional<list<V>>,int optional<V> optional_list_index_int
_[_] optional<map<K,V>>,K optional<V> optional_map_index_value
_[?_] list<V>,int optional<V> list_optindex_optional_int
_[?_] optional<list<V>>,int optional<V> optional_list_optindex_optional_int
_[?_] map<K,V>,K optional<V> map_optindex_optional_value
_[?_] optional<map<K,V>>,K optional<V> optional_map_optindex_optional_value
_?._ dyn,string optional<V> select_optional_field
@in A,list<A> bool in_list
@in A,map<A,B> bool in_map
size bytes int size_bytes
size .bytes int bytes_size
size list<A> int size_list
size .list<A> int list_size
size map<A,B> int size_map
size .map<A,B> int map_size
size string int size_string
size .string int string_size
type A type<A> type
bool bool bool bool_to_bool
bool string bool string_to_bool
bytes bytes bytes bytes_to_bytes
bytes string bytes string_to_bytes
double double double double_to_double
double int double int64_to_double
double string double string_to_double
double uint double uint64_to_double
duration duration duration duration_to_duration
duration string duration string_to_duration
dyn A dyn to_dyn
int int int int64_to_int64
int double int double_to_int64
int duration int duration_to_int64
int string int string_to_int64
int timestamp int timestamp_to_int64
int uint int uint64_to_int64
string string string string_to_string
string bool string bool_to_string
string bytes string bytes_to_string
string double string double_to_string
string duration string duration_to_string
string int string int64_to_string
string timestamp string timestamp_to_string
string uint string uint64_to_string
timestamp timestamp timestamp timestamp_to_timestamp
timestamp int timestamp int64_to_timestamp
timestamp string timestamp string_to_timestamp
uint uint uint uint64_to_uint64
uint double uint double_to_uint64
uint int uint int64_to_uint64
uint string uint string_to_uint64
contains .string,string bool contains_string
endsWith .string,string bool ends_with_string
startsWith .string,string bool starts_with_string
matches string,string bool matches
matches .string,string bool matches_string
optional.of V optional<V> optional_of
optional.ofNonZeroValue V optional<V> optional_ofNonZeroValue
optional.none - optional<V> optional_none
value .optional<V> V optional_value
hasValue .optional<V> bool optional_hasValue
or .optional<V>,optional<V> optional<V> optional_or_optional
orValue .optional<V>,V V optional_orValue_value
last .list<V> optional<V> list_last
first .list<V> optional<V> list_first
optional.unwrap list<optional<V>> list<V> optional_unwrap
unwrapOpt .list<optional<V>> list<V> optional_unwrapOpt
charAt .string,int string string_char_at_int
indexOf .string,string int string_index_of_string
indexOf .string,string,int int string_index_of_string_int
lastIndexOf .string,string int string_last_index_of_string
lastIndexOf .string,string,int int string_last_index_of_string_int
lowerAscii .string string string_lower_ascii
replace .string,string,string string string_replace_string_string
replace .string,string,string,int string string_replace_string_string_int
split .string,string list<string> string_split_string
split .string,string,int list<string> string_split_string_int
substring .string,int string string_substring_int
substring .string,int,int string string_substring_int_int
trim .string string string_trim
upperAscii .string string string_upper_ascii
format .string,list<dyn> string string_format
strings.quote string string strings_quote
join .list<string> string list_join
join .list<string>,string string list_join_string
sets.contains list<T>,list<T> bool list_sets_contains_list
sets.equivalent list<T>,list<T> bool list_sets_equivalent_list
sets.intersects list<T>,list<T> bool list_sets_intersects_list
slice .list<T>,int,int list<T> list_slice
flatten .list<list<T>> list<T> list_flatten
flatten .list<dyn>,int list<dyn> list_flatten_int
lists.range int list<int> lists_range
reverse .list<T> list<T> list_reverse
distinct .list<T> list<T> list_distinct
indexOf .list<A>,A int list_a_index_of_int
lastIndexOf .list<A>,A int list_a_last_index_of_int
cel.@mapInsert map<K,V>,K,V map<K,V> @mapInsert_map_key_value
cel.@mapInsert map<K,V>,map<K,V> map<K,V> @mapInsert_map_map
find .string,string string string_find_string
findAll .string,string list<string> string_find_all_string
findAll .string,string,int list<string> string_find_all_string_int
url string URL string_to_url
getScheme .URL string url_get_scheme
getHost .URL string url_get_host
getHostname .URL string url_get_hostname
getPort .URL string url_get_port
getEscapedPath .URL string url_get_escaped_path
getQuery .URL map<string,list<string>> url_get_query
isURL string bool is_url_string
quantity string Quantity string_to_quantity
isQuantity string bool is_quantity_string
sign Quantity int quantity_sign
isGreaterThan .Quantity,Quantity bool quantity_is_greater_than
isLessThan .Quantity,Quantity bool quantity_is_less_than
compareTo .Quantity,Quantity int quantity_compare_to
asApproximateFloat .Quantity double quantity_get_float
asInteger .Quantity int quantity_get_int
isInteger .Quantity bool quantity_is_integer
add .Quantity,Quantity Quantity quantity_add
add .Quantity,int Quantity quantity_add_int
sub .Quantity,Quantity Quantity quantity_sub
sub .Quantity,int Quantity quantity_sub_int
ip string IP string_to_ip
family .IP int ip_family
ip.isCanonical string bool ip_is_canonical
isUnspecified .IP bool ip_is_unspecified
isLoopback .IP bool ip_is_loopback
isLinkLocalMulticast .IP bool ip_is_link_local_multicast
isLinkLocalUnicast .IP bool ip_is_link_local_unicast
isGlobalUnicast .IP bool ip_is_global_unicast
isIP string bool is_ip
string IP string ip_to_string
cidr string CIDR string_to_cidr
containsIP .CIDR,string bool cidr_contains_ip_string
containsIP .CIDR,IP bool cidr_contains_ip_ip
containsCIDR .CIDR,string bool cidr_contains_cidr_string
containsCIDR .CIDR,CIDR bool cidr_contains_cidr
ip .CIDR IP cidr_ip
prefixLength .CIDR int cidr_prefix_length
masked .CIDR CIDR cidr_masked
isCIDR string bool is_cidr
string CIDR string cidr_to_string
validate .Format,string optional<list<string>> format-validate
format.named string optional<Format> format-named
semver string Semver string_to_semver
semver string,bool Semver string_bool_to_semver
isSemver string bool is_semver_string
isSemver string,bool bool is_semver_string_bool
isGreaterThan .Semver,Semver bool semver_is_greater_than
isLessThan .Semver,Semver bool semver_is_less_than
compareTo .Semver,Semver int semver_compare_to
major .Semver int semver_major
minor .Semver int semver_minor
patch .Semver int semver_patch
path .Authorizer,string PathCheck authorizer_path
group .Authorizer,string GroupCheck authorizer_group
serviceAccount .Authorizer,string,string Authorizer authorizer_serviceaccount
resource .GroupCheck,string ResourceCheck groupcheck_resource
subresource .ResourceCheck,string ResourceCheck resourcecheck_subresource
namespace .ResourceCheck,string ResourceCheck resourcecheck_namespace
name .ResourceCheck,string ResourceCheck resourcecheck_name
fieldSelector .ResourceCheck,string ResourceCheck authorizer_fieldselector
labelSelector .ResourceCheck,string ResourceCheck authorizer_labelselector
check .PathCheck,string Decision pathcheck_check
check .ResourceCheck,string Decision resourcecheck_check
errored .Decision bool decision_errored
error .Decision string decision_error
allowed .Decision bool decision_allowed
reason .Decision string decision_reason
jsonpatch.escapeKey string string string_jsonpatch_escapeKey_string
"""
OPTIONAL_FUNCTIONS: Final = frozenset({"jsonpatch.escapeKey"})
"""Functions that are there only where an environment says so."""

NAMED_FORMATS: Final = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
]

_NAMED = {
    each.kind: each for each in (t.BOOL, t.BYTES, t.DOUBLE, t.INT, t.STRING, t.UINT, t.DYN, t.DURATION, t.TIMESTAMP)
} | {
    "URL": t.URL,
    "Quantity": t.QUANTITY,
    "IP": t.IP,
    "CIDR": t.CIDR,
    "Format": t.NAMED_FORMAT,
    "Semver": t.SEMVER,
    "Authorizer": t.AUTHORIZER,
    "PathCheck": t.PATH_CHECK,
    "GroupCheck": t.GROUP_CHECK,
    "ResourceCheck": t.RESOURCE_CHECK,
    "Decision": t.DECISION,
}
_WORD = re.compile(r"[A-Za-z]+")

TYPE_NAMES: Final[dict[str, tuple[Type, Type]]] = {
    **{each.name: (each, each) for each in (t.BOOL, t.BYTES, t.DOUBLE, t.INT, t.STRING, t.UINT)},
    t.DURATION.name: (t.DURATION, t.DURATION),
    t.TIMESTAMP.name: (t.TIMESTAMP, t.TIMESTAMP),
    "null_type": (t.NULL, t.NULL),
    "type": (t.TYPE, t.TYPE),
    "list": (t.list_of(t.DYN), LIST_TYPE),
    "map": (t.map_of(t.DYN, t.DYN), MAP_TYPE),
    "optional_type": (t.optional_of(t.DYN), OPTIONAL_TYPE),
    "net.IP": (t.IP, t.IP),
    "net.CIDR": (t.CIDR, t.CIDR),
}
"""Types that expressions may name: the type for the checker, and the value that the name has."""


@cache
def functions() -> dict[str, tuple[Overload, ...]]:
    """The overloads of every function, in the order in which they are tried."""
    out: dict[str, list[Overload]] = {}
    for line in [*_TABLE.strip().splitlines(), *_comparisons(), *_times(), *_list_functions(), *_formats()]:
        name, args, result, identifier = line.split()
        out.setdefault(name, []).append(_overload(args, result, identifier))
    return {name: tuple(overloads) for name, overloads in out.items()}


def overload_args(identifier: str) -> tuple[Type, ...]:
    """The types of an overload's arguments."""
    return _by_id()[identifier].args


@cache
def _by_id() -> dict[str, Overload]:
    return {overload.id: overload for overloads in functions().values() for overload in overloads}


def _overload(args: str, result: str, identifier: str) -> Overload:
    member = args.startswith(".")
    types = () if args == "-" else _parse_list(args.removeprefix("."))
    params = {word for word in _WORD.findall(f"{args},{result}") if len(word) == 1}
    return Overload(identifier, member, types, _parse_list(result)[0], frozenset(params))


def _parse_list(text: str) -> tuple[Type, ...]:
    """`a,b<c,d>` as types."""
    parts, depth, start = [], 0, 0
    for at, ch in enumerate(text):
        depth += (ch == "<") - (ch == ">")
        if ch == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return tuple(map(_parse, [*parts, text[start:]]))


def _parse(text: str) -> Type:
    name, bracket, inner = text.partition("<")
    if not bracket:
        return t.type_param(name) if len(name) == 1 else _NAMED[name]
    params = _parse_list(inner[:-1])
    if name == "optional":
        return t.optional_of(*params)
    return t.Type(name, name, params)


def _comparisons() -> list[str]:
    short = {"int": "int64", "uint": "uint64"}
    lines = []
    for symbol, word in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals")):
        for left, right in _ORDERED_PAIRS:
            a, b = short.get(left, left), short.get(right, right)
            identifier = f"{word}_{a}" if left == right else f"{word}_{a}_{b}"
            lines.append(f"_{symbol}_ {left},{right} bool {identifier}")
    return lines


_ORDERED_PAIRS = [
    ("bool", "bool"),
    ("int", "int"),
    ("int", "double"),
    ("int", "uint"),
    ("uint", "uint"),
    ("uint", "double"),
    ("uint", "int"),
    ("double", "double"),
    ("double", "int"),
    ("double", "uint"),
    ("string", "string"),
    ("bytes", "bytes"),
    ("timestamp", "timestamp"),
    ("duration", "duration"),
]


def _times() -> list[str]:
    parts = {
        "FullYear": "year",
        "Month": "month",
        "DayOfYear": "day_of_year",
        "DayOfMonth": "day_of_month",
        "Date": "day_of_month_1_based",
        "DayOfWeek": "day_of_week",
        "Hours": "hours",
        "Minutes": "minutes",
        "Seconds": "seconds",
        "Milliseconds": "milliseconds",
    }
    lines = []
    for name, part in parts.items():
        lines.append(f"get{name} .timestamp int timestamp_to_{part}")
        lines.append(f"get{name} .timestamp,string int timestamp_to_{part}_with_tz")
    units = ("Hours", "Minutes", "Seconds", "Milliseconds")
    return lines + [f"get{unit} .duration int duration_to_{unit.lower()}" for unit in units]


def _list_functions() -> list[str]:
    lines = []
    for kind in _COMPARABLE:
        lines += [
            f"isSorted .list<{kind}> bool list_{kind}_is_sorted_bool",
            f"max .list<{kind}> {kind} list_{kind}_max_{kind}",
            f"min .list<{kind}> {kind} list_{kind}_min_{kind}",
            f"sort .list<{kind}> list<{kind}> list_{kind}_sort",
            f"@sortByAssociatedKeys .list<T>,list<{kind}> list<T> list_{kind}_sortByAssociatedKeys",
        ]
    return lines + [f"sum .list<{kind}> {kind} list_{kind}_sum_{kind}" for kind in _SUMMABLE]


def _formats() -> list[str]:
    return [f"format.{name} - Format format.{name}" for name in NAMED_FORMATS]
