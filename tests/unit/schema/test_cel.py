"""The CEL engine: operators, macros, libraries, errors, and what a schema adds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.cel import CelError, compile_expression
from trainwright.schema.errors import SchemaError
from trainwright.schema.structural import StructuralSchema

SELF: dict[str, Any] = {
    "n": 3,
    "name": "abc",
    "list": [1, 2, 3],
    "items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
    "m": {"k": "v", "x-y": 1},
    "flag": True,
}


def run(text: str, **variables: Any) -> Any:
    variables = {"self": SELF, **variables}
    return compile_expression(text, dict.fromkeys(variables))(variables)


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "1u + 2u == 3u",
        "0x10 == 16",
        "1.5e1 == 15.0",
        "dyn(1) == dyn(1.0) && 1 < 1.5",
        "'a' + \"b\" == 'ab'",
        r"'\n\x41\u00e9' == '\n\x41é'",
        r"r'\d' == '\\d'",
        "b'abc' == b'\\x61bc'",
        "'''a'b''' == 'a\\'b'",
        "!false || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "self.n > 2 ? true : 1 / 0 == 0",
        "self.name in ['abc', 'd']",
        "'k' in self.m && !('z' in self.m)",
        "self.m['x-y'] == 1",
        "has(self.m.k) && !has(self.m.z)",
        "self.list.all(x, x > 0)",
        "self.list.exists(x, x == 2)",
        "self.list.exists(x, x / (x - 1) == 2)",
        "self.list.exists_one(x, x > 2)",
        "self.list.map(x, x * 2) == [2, 4, 6]",
        "self.list.map(x, x > 1, x * 2) == [4, 6]",
        "self.list.filter(x, x > 1).size() == 2",
        "self.items.all(i, i.name.matches('^[a-z]$'))",
        "self.m.all(k, k.size() > 0)",
        "self.list.all(i, v, i < v)",
        "self.list.transformList(i, v, i + v) == [1, 3, 5]",
        "self.m.transformMap(k, v, k) == {'k': 'k', 'x-y': 'x-y'}",
        "[1, 2] + [3] == self.list",
        "dyn({'a': 1}) == dyn({'a': 1.0})",
        "{'a': [1]} != {'a': [2]}",
        "type(self.n) == int && type('') == string && type([]) == list && type(null) == null_type",
        "int('3') == 3 && string(3) == '3' && double('1.5') == 1.5 && bool('true')",
        "size('äö') == 2",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "'hello'.substring(1, 3) == 'el' && 'hello'.indexOf('l') == 2 && 'hello'.charAt(0) == 'h'",
        "'Hello'.lowerAscii() == 'hello' && ' a '.trim() == 'a' && 'aa'.replace('a', 'b', 1) == 'ba'",
        "'x1y22'.find('[0-9]+') == '1' && 'x1y22'.findAll('[0-9]+') == ['1', '22']",
        "'%s-%d'.format(['a', 3]) == 'a-3'",
        "[1, 2, 2].isSorted() && [1, 2].sum() == 3 && [3, 1].min() == 1 && [3, 1].max() == 3",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "quantity('1Gi').compareTo(quantity('1024Mi')) == 0 && isQuantity('5m') && !isQuantity('x')",
        "quantity('2').add(quantity('500m')).isGreaterThan(quantity('2'))",
        "quantity('1500m').asApproximateFloat() == 1.5 && quantity('3').asInteger() == 3",
        "url('https://u@h.example:80/p?q=1').getHost() == 'h.example:80'",
        "url('https://h/p').getScheme() == 'https' && isURL('/p') && !isURL('x y')",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && ip('::1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').prefixLength() == 8",
        "duration('1h30m') == duration('90m') && duration('90s').getMinutes() == 1",
        "timestamp('2026-01-02T03:04:05Z') < timestamp('2026-01-02T03:04:06Z')",
        "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026",
        "timestamp('2026-01-02T00:00:00Z') + duration('24h') == timestamp('2026-01-03T00:00:00Z')",
        "self.m.?k.orValue('z') == 'v'",
        "self.?z.?k.orValue('z') == 'z'",
        "self.?z.hasValue() == false",
        "self.list[?5].orValue(9) == 9",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        "optional.none().or(optional.of(2)).value() == 2",
        "[1, ?optional.none(), ?optional.of(3)] == [1, 3]",
        "true // a comment",
        "'abcabc'.lastIndexOf('c') == 5",
        "'abcabc'.lastIndexOf('abc', 2) == 0",
        "'a-b-c'.split('-', 2) == ['a', 'b-c']",
        "'abc'.split('') == ['a','b','c']",
        "string(1.5) == '1.5' && string(1e21) == '1e+21'",
        "string(duration('90s')) == '90s'",
        "string(timestamp('2026-01-02T03:04:05Z')) == '2026-01-02T03:04:05Z'",
        "int(1.9) == 1 && int(-1.9) == -1",
        "duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2026-01-02T03:04:05.678Z').getMilliseconds() == 678",
        "timestamp('2026-01-02T03:04:05Z').getHours('+02:00') == 5",
        "timestamp('2026-01-04T03:04:05Z').getDayOfWeek() == 0",
        "ip('10.0.0.1').isGlobalUnicast()",
        "ip('169.254.1.1').isLinkLocalUnicast()",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "string(cidr('10.1.2.3/8')) == '10.1.2.3/8'",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "ip.isCanonical('::1')",
        "url('https://[::1]:80/a%20b?x=1&x=2').getHostname() == '::1'",
        "url('https://[::1]:80/a%20b?x=1&x=2').getQuery() == {'x': ['1','2']}",
        "url('https://[::1]:80/a%20b').getEscapedPath() == '/a%20b'",
        "quantity('50k').sub(20) == quantity('49980')",
        "[quantity('1')].size() == 1",
        "[[1,2],[3]].map(x, x.size()).sum() == 3",
        "[1.0, 2.0].sum() == 3.0",
        "['b','a'].isSorted() == false",
        "[duration('1s'), duration('2s')].sum() == duration('3s')",
        "self.list.indexOf(2) == 1",
        "[1,2,3].reverse() == [3,2,1]",
        "'x'.matches('^[[:alpha:]]$')",
        "'TacoCat'.upperAscii() == 'TACOCAT'",
        "strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'%s'.format([null]) == 'null'",
        "'%d%%'.format([5]) == '5%'",
        "{1: 'a'}[1] == 'a'",
        "'a' < 'b' && true > false",
        "b'a' + b'b' == b'ab'",
        "size(b'é') == 2",
        "has(self.items[0].name)",
        "self.items.map(i, i.name).join(',') == 'a,b'",
        "self.items.exists(i, i.v > 1 && i.name == 'b')",
        "[1,2,3,4].slice(1,3) == [2,3]",
        "[3,1,2].sort() == [1,2,3]",
        "[1,1,2].distinct() == [1,2]",
        "[[1],[2]].flatten() == [1,2]",
        "lists.range(3) == [0,1,2]",
        "semver('1.2.3').major() == 1",
        "isSemver('1.2.3')",
        "format.dns1123Label().validate('a') == optional.none()",
        "'a'.charAt(1) == ''",
        "type(quantity('1')) == type(quantity('2'))",
        "optional.of(1) == optional.of(1)",
        "optional.ofNonZeroValue(0).hasValue() == false",
        "int('9223372036854775807') == 9223372036854775807",
        "uint(3) == 3u",
        "double(3) == 3.0",
        "bool('false') == false",
        "bytes('a') == b'a'",
        "'\\u00e9'.size() == 1",
        "'''x''' == \"x\"",
        "1 in {1: 2}",
        "self.m.exists(k, k == 'k')",
        "self.m.transformMapEntry(k, v, {v: k}).size() == 2",
        "[1,2].transformMap(i, v, v * 2) == {0: 2, 1: 4}",
        "self.list.existsOne(i, v, v == 2)",
        "!self.list.exists(x, x > 5)",
        "3 % 2 == 1 ? 'odd' == 'odd' : false",
        "(true || false) && !(false)",
        "self.n == 3 || self.zzz == 1",
        "!quantity('1.5Gi').isInteger() && !quantity('1000m').isInteger() && quantity('2k').isInteger()",
        "sign(quantity('-3')) == -1",
        "'%s'.format([[1, 'a', true, 1.5, null]]) == '[1, \"a\", true, 1.500000, null]'",
        "'%s'.format([{'a': 1, 'b': 'x'}]) == '{\"a\":1, \"b\":\"x\"}'",
        "'%.3e'.format([1234.5]) == '1.234500×10⁰³'",
        "semver('v1.2', true) == semver('1.2.0') && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "[{'a': 2}, {'a': 1}].sortBy(x, x.a)[0].a == 1",
        "format.named('uuid').value().validate('x').value()[0] == 'does not match the UUID format'",
    ],
)
def test_an_expression_is_true(text: str) -> None:
    assert run(text) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.z == 1", "no such key: z"),
        ("self.list[7] == 1", "index out of bounds: 7"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("self.name > 1", "no such overload"),
        ("self.n && true", "no such overload"),
        ("self.n + 1.0 == 4.0", "no such overload"),
        ("self.list.all(x, x / 0 == 1)", "division by zero"),
        ("self.name.matches('(')", "error parsing regexp"),
        ("quantity('x') == quantity('x')", "quantities must match the regular expression"),
        ("optional.none().value() == 1", "optional.none() dereference"),
    ],
)
def test_an_evaluation_fails_with_its_message(text: str, message: str) -> None:
    with pytest.raises(CelError) as error:
        run(text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.", "Syntax error"),
        ("1 +", "Syntax error"),
        ("'abc", "Syntax error"),
        ("nobody == 1", "undeclared reference to 'nobody'"),
        ("self.name.fly()", "undeclared reference to 'fly'"),
        ("size(1, 2)", "no matching overload"),
        ("has(1)", "invalid argument to has"),
        ("self.list.all(1, true)", "simple name"),
        ("(" * 300 + "1" + ")" * 300, "nested more than"),
        ("if", "reserved identifier"),
    ],
)
def test_an_expression_that_does_not_compile_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message.replace("(", r"\(")):
        run(text)


SCHEMA = StructuralSchema.compile(
    {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "wait": {"type": "string", "format": "duration"},
            "ratio": {"type": "number"},
            "count": {"type": "integer"},
            "a-b": {"type": "string"},
            "namespace": {"type": "string"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "at": {"type": "string", "format": "date-time"}},
                },
            },
            "plain": {"type": "array", "items": {"type": "string"}},
        },
    }
)


def typed(text: str, value: dict[str, Any], old: Any = None) -> Any:
    return compile_expression(text, {"self": SCHEMA, "oldSelf": SCHEMA})({"self": value, "oldSelf": old})


def test_a_schema_gives_fields_their_types() -> None:
    assert typed("self.when > timestamp('2025-01-01T00:00:00Z')", {"when": "2026-01-01T00:00:00Z"})
    assert typed("self.wait == duration('60s')", {"wait": "1m"})
    assert typed("self.ratio + 0.5 == 1.5", {"ratio": 1})
    assert typed("self.a__dash__b == 'x' && self.__namespace__ == 'y'", {"a-b": "x", "namespace": "y"})
    assert typed("self.map.all(i, i.at.getFullYear() == 2026)", {"map": [{"name": "a", "at": "2026-01-01T00:00:00Z"}]})
    with pytest.raises(CelError, match="invalid data, expected int, got float64"):
        typed("self.count >= 1", {"count": 2.0})
    with pytest.raises(SchemaError, match="undefined field 'cuont'"):
        typed("self.cuont == 1", {})


def test_keyed_lists_and_sets_compare_without_order() -> None:
    assert typed("self == oldSelf", {"set": ["a", "b"]}, {"set": ["b", "a"]})
    assert typed("self == oldSelf", {"map": [{"name": "a"}, {"name": "b"}]}, {"map": [{"name": "b"}, {"name": "a"}]})
    assert not typed("self == oldSelf", {"plain": ["a", "b"]}, {"plain": ["b", "a"]})
    assert not typed("self == oldSelf", {"map": [{"name": "a"}]}, {"map": [{"name": "b"}]})


_numbers = st.integers(-50, 50)


@given(_numbers, _numbers, _numbers)
def test_arithmetic_agrees_with_python(a: int, b: int, c: int) -> None:
    text = "a + b * c - (a - c) == r"
    assert run(text, a=a, b=b, c=c, r=a + b * c - (a - c))
    if b:
        assert run("a / b * b + a % b == a", a=a, b=b)


@given(st.lists(_numbers, max_size=6), _numbers)
def test_macros_agree_with_python(items: list[int], bound: int) -> None:
    assert run("items.all(x, x > bound)", items=items, bound=bound) is all(x > bound for x in items)
    assert run("items.exists(x, x > bound)", items=items, bound=bound) is any(x > bound for x in items)
    assert run("items.filter(x, x > bound)", items=items, bound=bound) == [x for x in items if x > bound]


@given(st.text(alphabet="()[]{}.,?:!&|=<>+-*/%'\"abs1 self", max_size=25))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        program = compile_expression(text, {"self": None})
    except SchemaError:
        return
    try:
        program({"self": SELF})
    except CelError:
        pass
