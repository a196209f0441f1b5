"""What operators, macros and library functions give: every line holds."""

import pytest

from .rig import outcome

OPERATORS = r"""
1 + 2 * 3 - 4 / 3 % 2 == 6
-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1
7.5 / 2.0 == 3.75 && 1.0 / 0.0 > 1e300 && -1.0 / 0.0 < -1e300
3u - 1u == 2u && 7u / 2u == 3u && 7u % 4u == 3u && 2u * 3u == 6u
'ab' + 'cd' == 'abcd' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]
1 < 2 && 2u <= 2u && 'a' < 'b' && b'a' < b'b' && false < true
1 < 2u && 1 < 1.5 && 2u > 1.5 && -1 < 0u && 9223372036854775807 < 18446744073709551615u
dyn(1) == 1.0 && dyn(1) == 1u && dyn(1u) == 1.0
dyn(1) != 'a' && dyn([1]) != 1 && dyn('a') != b'a'
[1, 2] == [1, 2] && [1] != [1, 2] && {'a': 1} == {'a': 1} && {'a': 1} != {'a': 2}
dyn([1]) == [1.0] && dyn({1: 2}) == {1u: 2.0}
1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1} && !('b' in {'a': 1})
true ? 1 == 1 : 1 / 0 == 0
true || 1 / 0 == 0
1 / 0 == 0 || true
!(false && 1 / 0 == 0) && !(1 / 0 == 0 && false)
!!true && - -1 == 1
{'a': {'b': 1}}.a.b == 1 && {'a': 1}['a'] == 1
'\x41\u00e9\n\'' == "A" + '\u00e9' + '''
''' + "'" && r'\n' == '\\n'
'''a
b''' == 'a\nb' && b'\x00\377' == b'\000\xff'
0x1F == 31 && -0x1F == -31 && 0xFFu == 255u && 1e3 == 1000.0 && .5 == 0.5
type(1) == int && type(1u) == uint && type('') == string && type(null) == null_type && type(type(1)) == type
type([]) == list && type({}) == map && type(1.0) == double && type(b'') == bytes && type(true) == bool
int('12') == 12 && int(3.99) == 3 && int(-3.99) == -3 && int(4u) == 4 && int(timestamp('1970-01-01T00:00:10Z')) == 10
uint('7') == 7u && uint(7.9) == 7u && double('1.5') == 1.5 && double(2) == 2.0 && string(1.0) == '1'
string(1e21) == '1e+21' && string(0.1) == '0.1' && string(b'hi') == 'hi' && bytes('é') == b'\xc3\xa9'
bool('true') && bool('1') && !bool('False') && string(true) == 'true' && string(12u) == '12'
"""

DATA = r"""
self.n == 7 && self.d == 2.5 && self.s == 'Gear' && self.b
self.port == '25%' && type(self.port) == string
self.at == timestamp('2024-02-29T13:14:15.678Z') && self.took == duration('90m')
self.raw == b'hi'
self.l[0] == 'a' && self.l == ['a', 'b', 'a'] && self.l + ['c'] == ['a', 'b', 'a', 'c']
self.m['k1'] == 'v1' && self.m.k2 == 'v2' && 'k1' in self.m && self.m == {'k2': 'v2', 'k1': 'v1'}
has(self.n) && !has(self.gone) && has(self.m.k1) && !has(self.m.k3) && !has(self.o.y)
self.o.__in__ == 'reserved' && self.o.a__dash__b == 'dash'
!has(self.none) && !self.?none.hasValue()
self.keyed[0].v == 1 && !has(self.keyed[1].v)
self.set == ['q', 'p'] && self.l != ['a', 'a', 'b']
self.set + ['q', 'r'] == ['p', 'q', 'r']
self.open.x == 1
self == self && self.o == oldSelf.o
self.keyed.exists(e, e.k == 'two') && self.keyed.map(e, e.k) == ['one', 'two']
self.m.all(k, k.startsWith('k')) && self.m.exists(k, self.m[k] == 'v2')
"""

MACROS = r"""
[1, 2].all(x, x > 0) && ![1, 2].all(x, x > 1) && [].all(x, false)
[1, 2].exists(x, x == 2) && ![1, 2].exists(x, x == 3)
[1, 2].exists_one(x, x == 2) && ![2, 2].exists_one(x, x == 2)
[1, 2].map(x, x * 2) == [2, 4] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1, 2].filter(x, x > 1) == [2]
{'a': 1}.map(k, k + 'x') == ['ax'] && {'a': 1, 'b': 2}.filter(k, k == 'a') == ['a']
[[1, 2], [3]].all(x, x.all(y, y > 0)) && [[1], [2]].map(x, x.map(y, y + x[0])) == [[2], [4]]
[1, 2].all(i, v, v == i + 1) && {'a': 'b'}.exists(k, v, k + v == 'ab') && [3, 4].existsOne(i, v, i == 1 && v == 4)
[1, 2].transformList(i, v, i * v) == [0, 2] && [1, 2, 3].transformList(i, v, v > 1, v) == [2, 3]
{'a': 1, 'b': 2}.transformMap(k, v, v * 10) == {'a': 10, 'b': 20}
['a', 'b'].transformMap(i, v, i > 0, v) == {1: 'b'} && ['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}
[0, 1].exists(x, 1 / x == 1) && ![0, 2].all(x, 4 / x == 1)
self.l.all(self, self == 'a' || self == 'b')
"""

OPTIONALS = r"""
optional.of(1).hasValue() && optional.of(1).value() == 1 && !optional.none().hasValue()
optional.none().orValue(2) == 2 && optional.of(1).orValue(2) == 1
optional.none().or(optional.of(3)).value() == 3
!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()
self.?n.value() == 7 && !self.?gone.hasValue() && self.?gone.orValue('x') == 'x'
self.o.?y.orValue('none') == 'none' && self.?o.y.orValue('deep') == 'deep'
[1, 2][?1].value() == 2 && ![1, 2][?5].hasValue() && {'a': 1}[?'a'].value() == 1
[1, ?optional.none(), ?optional.of(2)] == [1, 2] && {?'a': optional.none(), 'b': 1} == {'b': 1}
optional.of(2).optMap(x, x * 2).value() == 4 && !optional.none().optMap(x, x).hasValue()
optional.of(2).optFlatMap(x, x > 5 ? optional.of(x) : optional.none()) == optional.none()
optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]
[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !self.l.filter(x, false).first().hasValue()
"""

STRINGS = r"""
size('héé') == 3 && 'abc'.size() == 3 && size(b'\xc3\xa9') == 2
'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'x'.contains('')
'tacocat'.charAt(3) == 'o' && 'tacocat'.charAt(7) == ''
'tacocat'.indexOf('c') == 2 && 'tacocat'.indexOf('c', 3) == 4 && 'tacocat'.indexOf('z') == -1 && 'a'.indexOf('') == 0
'tacocat'.lastIndexOf('a') == 5 && 'tacocat'.lastIndexOf('a', 4) == 1 && 'tacocat'.lastIndexOf('') == 7
'TacoÉ'.lowerAscii() == 'tacoÉ' && 'tacoé'.upperAscii() == 'TACOé'
'hello hello'.replace('he', 'we') == 'wello wello' && 'hello hello'.replace('he', 'we', 1) == 'wello hello'
'ab'.replace('', '_') == '_a_b_' && 'ab'.replace('', '_', 2) == '_a_b' && 'ab'.replace('a', 'x', 0) == 'ab'
'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']
'a,b'.split(',', 0) == [] && ''.split(',') == ['']
'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'abc'.substring(3) == ''
' \ttrim\n '.trim() == 'trim'
['x', 'y'].join() == 'xy' && ['x', 'y'].join('-') == 'x-y' && [].join('-') == ''
strings.quote('a\n"b"') == '"a\\n\\"b\\""'
'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''
'1a2b3'.findAll('[0-9]') == ['1', '2', '3'] && '1a2b3'.findAll('[0-9]', 2) == ['1', '2']
'foo123'.matches('^[a-z]+[0-9]+$') && matches('foobar', 'o+b') && !'foo'.matches('^o')
'%s %d %.1f'.format(['a', 5, 2.55]) == 'a 5 2.5' && '%%'.format([]) == '%'
'%s'.format([['a', 1, true, null]]) == '["a", 1, true, null]' && '%s'.format([{'b': 1, 'a': 2}]) == '{"a":2, "b":1}'
'%s %s'.format([duration('90m'), timestamp('2024-01-01T00:00:00Z')]) == '5400s 2024-01-01T00:00:00Z'
'%x %X %o %b'.format([255, 255, 8, 5]) == 'ff FF 10 101' && '%x'.format(['hi']) == '6869' && '%b'.format([true]) == '1'
'%d'.format([1234567]) == '1234567' && '%.2f'.format([1234.5]) == '1,234.50' && '%e'.format([1234.5]) == '1.234500×10⁰³'
'%s'.format([int]) == 'int' && '%s'.format([b'abc']) == 'abc' && '%s'.format([1.5]) == '1.5'
"""

LISTS = r"""
[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].isSorted() && [1, 1, 2].isSorted()
![2, 1].isSorted()
self.nums.max() == 3 && self.nums.min() == 1 && self.nums.sum() == 6 && [1.5, 2.5].sum() == 4.0 && [1u].sum() == 1u
[duration('1m'), duration('1s')].sum() == duration('61s') && self.nums.filter(x, false).sum() == 0
[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1
[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1, 2].slice(0, 0) == []
[[1, 2], [3]].flatten() == [1, 2, 3] && [dyn([1])].flatten(1) == [1] && [dyn([dyn([1])])].flatten(2) == [1]
lists.range(3) == [0, 1, 2] && lists.range(0) == [] && [1, 2, 3].reverse() == [3, 2, 1]
[1, 2, 1, 2].distinct() == [1, 2] && ['a', 'a'].distinct() == ['a']
['bb', 'a', 'ccc'].sortBy(x, size(x)) == ['a', 'bb', 'ccc'] && self.keyed.sortBy(e, e.k)[0].k == 'one'
sets.contains([1, 2], [2]) && sets.contains([1], []) && !sets.contains([1], [2])
sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2]) && sets.intersects([1, 2], [2, 3])
!sets.intersects([], [])
"""

TIMES = r"""
duration('1h2m3.5s') == duration('3723500ms') && string(duration('90m')) == '5400s' && duration('-1s') < duration('0')
duration('100s').getMinutes() == 1 && duration('100s').getSeconds() == 100 && duration('2h').getHours() == 2
duration('1.5s').getMilliseconds() == 500 || duration('1.5s').getMilliseconds() == 1500
self.at.getFullYear() == 2024 && self.at.getMonth() == 1 && self.at.getDate() == 29 && self.at.getDayOfMonth() == 28
self.at.getDayOfWeek() == 4 && self.at.getDayOfYear() == 59 && self.at.getHours() == 13 && self.at.getMinutes() == 14
self.at.getSeconds() == 15 && self.at.getMilliseconds() == 678
self.at.getHours('America/New_York') == 8 && self.at.getHours('+02:30') == 15 && self.at.getDate('UTC') == 29
self.at + duration('1s') > self.at && self.at - self.at == duration('0s') && duration('1s') + self.at > self.at
timestamp(0) == timestamp('1970-01-01T00:00:00Z') && string(timestamp(0)) == '1970-01-01T00:00:00Z'
timestamp('2024-01-01T02:00:00+02:00') == timestamp('2024-01-01T00:00:00Z')
"""

KUBERNETES = r"""
isURL('https://a.example:80/p?q=1') && !isURL('a b') && url('https://[::1]:80/').getHostname() == '::1'
url('https://user@a.example:80/a%20b?x=1&x=2&y').getHost() == 'a.example:80'
url('https://a.example:80/a%20b').getEscapedPath() == '/a%20b' && url('https://a.example:80').getPort() == '80'
url('https://a/?x=1&x=2&y').getQuery() == {'x': ['1', '2'], 'y': ['']} && url('/p').getScheme() == ''
isQuantity('1.5Gi') && !isQuantity('1.5GiB') && quantity('1Ki').isGreaterThan(quantity('1k'))
quantity('50M').add(quantity('1M')).compareTo(quantity('51M')) == 0 && quantity('5').sub(2).asInteger() == 3
quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger() && sign(quantity('-1')) == -1
quantity('200M') == quantity('0.2G') && quantity('1').isLessThan(quantity('2'))
quantity('1').add(20) == quantity('21')
isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256') && !isIP('1.2.3') && ip('::1').family() == 6
ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('8.8.8.8').isGlobalUnicast()
ip('fe80::1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast() && string(ip('::ABCD')) == '::abcd'
ip.isCanonical('::1') && !ip.isCanonical('::0001') && ip('1.2.3.4') == ip('1.2.3.4') && type(ip('::1')) == net.IP
isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && cidr('10.1.0.0/16').prefixLength() == 16
type(cidr('::/0')) == net.CIDR
cidr('10.0.0.0/8').containsIP('10.2.3.4') && cidr('10.0.0.0/8').containsIP(ip('10.2.3.4'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('10.1.2.3/8').ip()) == '10.1.2.3'
!format.dns1123Label().validate('good-name').hasValue() && format.dns1123Label().validate('Bad!').hasValue()
format.named('uuid').hasValue() && !format.named('nothing').hasValue()
!format.date().validate('2024-02-29').hasValue()
isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true) && semver('1.2.3').minor() == 2
semver('1.2.3-alpha').isLessThan(semver('1.2.3')) && semver('v1.10', true).isGreaterThan(semver('1.9.0'))
semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0 && semver('4.5.6').major() == 4 && semver('4.5.6').patch() == 6
"""


def lines(text: str) -> list[str]:
    """Expressions, one a line; one goes on where it stands in open triple quotes."""
    out: list[str] = []
    for line in text.strip().split("\n"):
        if out and out[-1].count("'''") % 2:
            out[-1] += "\n" + line
        else:
            out.append(line)
    return out


@pytest.mark.parametrize("table", [OPERATORS, DATA, MACROS, OPTIONALS, STRINGS, LISTS, TIMES, KUBERNETES])
def test_holds(table: str) -> None:
    wrong = {source: found for source in lines(table) if (found := outcome(source)) is not True}
    assert wrong == {}


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("self.l[3] == ''", "index out of bounds: 3"),
        ("self.l[-1] == ''", "index out of bounds: -1"),
        ("self.m['zz'] == ''", "no such key: zz"),
        ("self.gone == ''", "no such key: gone"),
        ("self.keyed[1].v == 1", "no such key: v"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("dyn('a') < 1", "no such overload"),
        ("dyn(0).orValue(1) == 1", "no such overload"),
        ("dyn(0) ? true : false", "no such overload"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(5) == ''", "index out of range: 5"),
        ("[1].slice(1, 5) == []", "cannot slice(1, 5), list is length 1"),
        ("self.nums.filter(x, false).min() == 0", "min called on empty list"),
        ("'%d'.format([dyn('a')]) == ''", "decimal clause can only be used on integers, was given string"),
        ("url('::').getHost() == ''", "URL parse error during conversion from string"),
        ("self.s.matches(self.s + '(') || 1 / 0 == 1", "error parsing regexp: missing closing ): `Gear(`"),
    ],
)
def test_errors(source: str, error: str) -> None:
    assert error in str(outcome(source))


def test_errors_of_map_keys_and_macros_are_absorbed_only_by_a_decisive_value() -> None:
    assert outcome("[1, 0].exists(x, 1 / x == 1)") is True
    assert str(outcome("[2, 0].exists(x, 1 / x == 1)")) == "error: division by zero"
    assert str(outcome("[1, 0].all(x, 1 / x == 1)")) == "error: division by zero"
    assert str(outcome("[1, 0].exists_one(x, 1 / x == 1)")) == "error: division by zero"
