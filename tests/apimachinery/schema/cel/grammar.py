"""Expressions at random: well typed ones by a grammar, and such with something wrong.

A line of the grammar is `type: template`. `<type>` stands for an expression of a type, `@type` for the name of a new
variable, which the rest of the template may use.
"""

from __future__ import annotations

import re
from random import Random

from steersman.apimachinery.schema.cel.lexer import EOF, tokenize

_LEAVES = """
int: 0
int: 1
int: -1
int: 3
int: 9223372036854775807
int: -9223372036854775808
int: self.n
int: self.zero
int: self.o.x
int: self.keyed[0].v
int: self.nums[0]
int: self.open.x
uint: 0u
uint: 7u
uint: 18446744073709551615u
double: 0.0
double: 1.5
double: -2.5
double: 1e308
double: self.d
string: ''
string: 'a'
string: 'Gear'
string: 'é😀'
string: 'a,b'
string: '10.0.0.0/8'
string: '1.2.3'
string: '12'
string: 'a text that is longer than ten characters'
string: self.s
string: self.gone
string: self.l[0]
string: self.m.k1
string: self.m['k9']
string: self.keyed[0].k
string: self.o.__in__
pattern: '^[a-z]+$'
pattern: 'a|b'
pattern: '.*'
zone: 'Europe/Paris'
zone: '+05:30'
bytes: b''
bytes: b'\\xff'
bytes: self.raw
bool: true
bool: false
bool: self.b
bool: has(self.gone)
bool: has(self.o.x)
duration: duration('1h')
duration: duration('-1ms')
duration: self.took
timestamp: timestamp('2024-02-29T23:59:59.999999999Z')
timestamp: timestamp('0001-01-01T00:00:00Z')
timestamp: timestamp('9999-12-31T23:59:59Z')
timestamp: self.at
timestamp: self.day
ints: self.nums
ints: [1, 2, 3]
strings: self.l
strings: self.set
strings: ['b', 'a']
map: self.m
map: {'a': 'b'}
dyn: self.port
dyn: dyn(self.o)
dyn: dyn(self.n)
dyn: dyn(self.l)
dyn: dyn(null)
dyn: dyn(1u)
maybe-int: self.?n
maybe-int: self.?o.?x
maybe-int: optional.none()
maybe-string: self.?gone
maybe-string: self.m[?'k1']
maybe-string: self.l[?9]
maybe-string: optional.none()
"""
_BRANCHES = """
int: (<int> + <int>)
int: (<int> - <int>)
int: (<int> * <int>)
int: (<int> / <int>)
int: (<int> % <int>)
int: -(<int>)
int: size(<string>)
int: size(<strings>)
int: size(<map>)
int: <ints>.size()
int: int(<string>)
int: int(<double>)
int: int(<duration>)
int: int(<dyn>)
int: <string>.indexOf(<string>)
int: <string>.lastIndexOf(<string>, <int>)
int: <ints>.sum()
int: <ints>.min()
int: <strings>.indexOf(<string>)
int: <timestamp>.getFullYear()
int: <timestamp>.getDayOfYear(<zone>)
int: <timestamp>.getHours(<zone>)
int: <timestamp>.getMilliseconds()
int: <duration>.getHours()
int: <duration>.getMilliseconds()
int: <ints>[<int>]
int: semver(<string>).major()
int: quantity(<string>).compareTo(quantity('1k'))
int: <maybe-int>.orValue(<int>)
int: (<bool> ? <int> : <int>)
uint: (<uint> + <uint>)
uint: (<uint> % <uint>)
uint: uint(<int>)
double: (<double> + <double>)
double: (<double> / <double>)
double: double(<int>)
double: double(<string>)
string: (<string> + <string>)
string: string(<int>)
string: string(<double>)
string: string(<timestamp>)
string: string(<dyn>)
string: <string>.lowerAscii()
string: <string>.trim()
string: <string>.replace(<string>, <string>, <int>)
string: <string>.substring(<int>, <int>)
string: <string>.charAt(<int>)
string: <string>.find(<pattern>)
string: <strings>.join(<string>)
string: <strings>[<int>]
string: <map>[<string>]
string: '%s'.format([<map>])
string: '%s and %d'.format([<strings>, <int>])
string: '%.2f'.format([<double>])
string: strings.quote(<string>)
string: <maybe-string>.orValue(<string>)
string: (<bool> ? <string> : <string>)
bytes: (<bytes> + <bytes>)
bytes: bytes(<string>)
bool: (<bool> && <bool>)
bool: (<bool> || <bool>)
bool: !(<bool>)
bool: (<bool> ? <bool> : <bool>)
bool: (<int> < <int>)
bool: (<int> <= <double>)
bool: (<uint> > <int>)
bool: (<string> >= <string>)
bool: (<timestamp> < <timestamp>)
bool: (<int> == <int>)
bool: (<string> != <string>)
bool: (<strings> == <strings>)
bool: (<map> == <map>)
bool: (<dyn> == <dyn>)
bool: (<dyn> < <int>)
bool: (<string> in <strings>)
bool: (<string> in <map>)
bool: (<int> in [<int>, <int>])
bool: <string>.startsWith(<string>)
bool: <string>.contains(<string>)
bool: <string>.matches(<pattern>)
bool: <string>.matches(<string>)
bool: <maybe-int>.hasValue()
bool: sets.contains(<strings>, <strings>)
bool: sets.intersects(<ints>, <ints>)
bool: <ints>.isSorted()
bool: type(<dyn>) == type(<string>)
bool: isURL(<string>)
bool: isQuantity(<string>)
bool: cidr(<string>).containsIP(<string>)
bool: format.dns1123Label().validate(<string>).hasValue()
bool: <strings>.all(@string, <bool>)
bool: <strings>.exists(@string, <bool>)
bool: <ints>.exists_one(@int, <bool>)
bool: <map>.all(@string, <bool>)
bool: <map>.exists(@string, @string, <bool>)
bool: <ints>.all(@int, @int, <bool>)
duration: (<duration> + <duration>)
duration: (<timestamp> - <timestamp>)
duration: duration(<string>)
timestamp: (<timestamp> + <duration>)
timestamp: timestamp(<string>)
timestamp: timestamp(<int>)
ints: (<ints> + <ints>)
ints: [<int>, <int>]
ints: [?<maybe-int>, <int>]
ints: <ints>.map(@int, <int>)
ints: <strings>.map(@string, <bool>, <int>)
ints: <ints>.filter(@int, <bool>)
ints: <ints>.transformList(@int, @int, <int>)
ints: <ints>.slice(<int>, <int>)
ints: <ints>.reverse()
ints: lists.range(3).map(@int, <int>)
ints: [<ints>, <ints>].flatten()
strings: (<strings> + <strings>)
strings: [<string>, <string>]
strings: <strings>.map(@string, <string>)
strings: <strings>.filter(@string, <bool>)
strings: <string>.split(<string>)
strings: <string>.findAll(<pattern>)
map: {<string>: <string>}
map: <map>.transformMap(@string, @string, <string>)
map: <strings>.transformMapEntry(@int, @string, {<string>: <string>})
dyn: dyn(<int>)
dyn: dyn(<string>)
dyn: dyn(<strings>)
dyn: (<dyn> + <dyn>)
dyn: (<dyn> * <dyn>)
dyn: <dyn>[<int>]
dyn: <dyn>.x
maybe-int: optional.of(<int>)
maybe-int: <ints>[?<int>]
maybe-int: <maybe-int>.or(<maybe-int>)
maybe-int: <maybe-int>.optMap(@int, <int>)
maybe-string: optional.ofNonZeroValue(<string>)
maybe-string: <map>[?<string>]
maybe-string: <strings>.first()
maybe-string: <map>.?a
"""
_HOLE = re.compile(r"<([a-z-]+)>|@([a-z]+)")
_KINDS = ("bool", "int", "string", "double", "ints", "strings", "map", "dyn", "duration", "timestamp", "uint", "bytes")
_SCRAPS = (
    "==", "!=", "in", "<", "<=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "%",
    "true", "null", "1", "1.5", "2u", "'s'", "b'x'", "x", "self", "has", "`a-b`", "self.n", "all", "@", "#", "'", '"',
    "\\", "\n", "é", "while", "map(x, x)", "$", "&", "=", "0x", "1e", "..", "?.", "[?", "//", "'''", "\ud800", "\x00",
)  # fmt: skip


def _rules(table: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for line in table.strip().splitlines():
        kind, _, template = line.partition(": ")
        out.setdefault(kind, []).append(template)
    return out


_LEAF, _BRANCH = _rules(_LEAVES), _rules(_BRANCHES)


class Grammar:
    """Expressions over an object with the fields of `rig.FIELDS`, by a random source."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._scope: list[tuple[str, str]] = []

    def expression(self, depth: int) -> str:
        """A well typed expression of any type."""
        return self._of(self.random.choice(_KINDS), depth)

    def broken(self, depth: int) -> str:
        """An expression with something inserted, left out, doubled or replaced."""
        text = self.expression(depth)
        for _ in range(self.random.randint(1, 3)):
            text = self._broken(text)
        return text

    def _broken(self, text: str) -> str:
        scrap = self.random.choice(_SCRAPS)
        tokens = [token for token in tokenize(text)[0] if token.kind != EOF]
        if not tokens:
            return text + scrap
        token = self.random.choice(tokens)
        end = token.pos + len(token.text)
        before, after = text[: token.pos], text[end:]
        return self.random.choice(
            [
                before + after,
                before + scrap + token.text + after,
                before + scrap + after,
                before + token.text + " " + token.text + after,
                before,
            ]
        )

    def _of(self, kind: str, depth: int) -> str:
        known = [name for name, its in self._scope if its == kind]
        if known and self.random.random() < 0.3:
            return self.random.choice(known)
        if depth <= 0 or kind not in _BRANCH or self.random.random() < 0.1:
            return self.random.choice(_LEAF[kind])
        outer = len(self._scope)
        template = self.random.choice(_BRANCH[kind])
        out = _HOLE.sub(lambda hole: self._fill(hole, depth), template)
        del self._scope[outer:]
        return out

    def _fill(self, hole: re.Match[str], depth: int) -> str:
        if hole[1]:
            return self._of(hole[1], depth - 1)
        name = f"{hole[2][0]}{len(self._scope)}"
        self._scope.append((name, hole[2]))
        return name
