"""CEL expressions compiled to closures.

In: the tree of an expression and the schemas of its variables. Out: a `Program`: call it with the variables' values.
Schemas are followed while compiling (`self.when` of a date-time field is a timestamp, lists with keys compare without
order), so that evaluation looks nothing up.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SchemaError
from . import library
from .macros import MACROS
from .syntax import Call, Ident, Index, ListOf, Literal, MapOf, Node, Select, UInt, parse
from .typed import convert, element, member, typed_equal
from .values import NO_OVERLOAD, NONE, CelError, Duration, Optional_, is_number, ordered

if TYPE_CHECKING:
    from ..structural import StructuralSchema

Env = dict[str, Any]
Evaluate = Callable[[Env], Any]


class Expr(NamedTuple):
    """A compiled part, and the schema of what it yields where that is known."""

    evaluate: Evaluate
    schema: StructuralSchema | None = None


class Program:
    """A compiled expression. Calling it evaluates; `CelError` says what went wrong."""

    __slots__ = ("_evaluate", "names", "text")

    def __init__(self, text: str, evaluate: Evaluate, names: frozenset[str]) -> None:
        self.text = text
        self._evaluate = evaluate
        self.names = names

    def __call__(self, variables: Env) -> Any:
        try:
            return self._evaluate(variables)
        except RecursionError:
            raise CelError("the value is nested too deeply") from None

    def uses(self, name: str) -> bool:
        return name in self.names


class Compiler:
    """Holds what is in scope while a tree is walked; macros.py calls back into it."""

    def __init__(self, variables: Mapping[str, StructuralSchema | None]) -> None:
        self.scope: dict[str, StructuralSchema | None] = dict(variables)
        self.used: set[str] = set()

    def compile(self, node: Node) -> Expr:
        match node:
            case Literal(value):
                return Expr(lambda env: value)
            case Ident(name):
                return self._ident(name)
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Call():
                return self._call(node)

    def _ident(self, name: str) -> Expr:
        if name in self.scope:
            self.used.add(name)
            return Expr(operator.itemgetter(name), self.scope[name])
        if name in library.TYPES:
            value = library.TYPES[name]
            return Expr(lambda env: value)
        raise SchemaError(f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Expr:
        operand = self.compile(node.operand)
        name, schema = member(operand.schema, node.field)
        read = operand.evaluate
        turn = convert(schema)
        optional = node.optional

        def select(env: Env) -> Any:
            value = read(env)
            if isinstance(value, dict):
                if name in value:
                    found = value[name]
                    if turn is not None:
                        found = turn(found)
                    return Optional_(found) if optional else found
                if optional:
                    return NONE
                raise CelError(f"no such key: {name}")
            if isinstance(value, Optional_):
                return _select_optional(value, name, turn)
            raise CelError(NO_OVERLOAD)

        return Expr(select, schema)

    def _index(self, node: Index) -> Expr:
        operand, key = self.compile(node.operand), self.compile(node.key)
        schema = element(operand.schema)
        turn = convert(schema)
        optional = node.optional

        def index(env: Env) -> Any:
            value, at = operand.evaluate(env), key.evaluate(env)
            if isinstance(value, Optional_):
                if not value.present:
                    return NONE
                value, wraps = value.value, True
            else:
                wraps = optional
            try:
                found = lookup(value, at)
            except CelError:
                if wraps:
                    return NONE
                raise
            if turn is not None:
                found = turn(found)
            return Optional_(found) if wraps else found

        return Expr(index, schema)

    def _list(self, node: ListOf) -> Expr:
        parts = [self.compile(item).evaluate for item in node.items]
        if not node.optional:
            return Expr(lambda env: [part(env) for part in parts])

        def build(env: Env) -> list[Any]:
            items: list[Any] = []
            for at, part in enumerate(parts):
                value = part(env)
                if at not in node.optional:
                    items.append(value)
                elif value.present:
                    items.append(value.value)
            return items

        return Expr(build)

    def _map(self, node: MapOf) -> Expr:
        entries = [(self.compile(k).evaluate, self.compile(v).evaluate, optional) for k, v, optional in node.entries]

        def build(env: Env) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value, optional in entries:
                name, found = key(env), value(env)
                if name in result:
                    raise CelError(f"insert failed: key {name} already exists")
                if not optional:
                    result[name] = found
                elif found.present:
                    result[name] = found.value
            return result

        return Expr(build)

    def _call(self, node: Call) -> Expr:
        special = _SPECIAL.get(node.function)
        if special is not None and node.target is None:
            return special(self, node)
        macro = MACROS.get((node.function, len(node.args), node.target is not None))
        if macro is not None:
            return macro(self, node)
        if node.target is None:
            return self._apply(node.function, library.GLOBAL.get(node.function), node.args)
        if isinstance(node.target, Ident) and node.target.name not in self.scope:
            full = f"{node.target.name}.{node.function}"
            if full in library.NAMESPACED:
                return self._apply(full, library.NAMESPACED[full], node.args)
        known = library.MEMBER.get(node.function)
        if known is not None:
            known = (known[0], known[1] + 1, known[2] + 1)
        return self._apply(node.function, known, (node.target, *node.args))

    def _apply(self, name: str, known: tuple[library.Function, int, int] | None, args: tuple[Node, ...]) -> Expr:
        if known is None:
            raise SchemaError(f"undeclared reference to '{name}' (in container '')")
        function, least, most = known
        if not least <= len(args) <= most:
            raise SchemaError(f"found no matching overload for '{name}' applied to {len(args)} arguments")
        parts = [self.compile(arg).evaluate for arg in args]
        if len(parts) == 1:
            only = parts[0]
            return Expr(lambda env: function(only(env)))
        if len(parts) == 2:
            first, second = parts
            return Expr(lambda env: function(first(env), second(env)))
        return Expr(lambda env: function(*[part(env) for part in parts]))


def _select_optional(value: Optional_, name: str, turn: Callable[[Any], Any] | None) -> Optional_:
    """Past a `.?`, every further step is optional too."""
    if not value.present or not isinstance(value.value, dict) or name not in value.value:
        return NONE
    found = value.value[name]
    return Optional_(turn(found) if turn is not None else found)


def lookup(value: Any, key: Any) -> Any:
    """`value[key]` of a list or a map."""
    if isinstance(value, dict):
        if not isinstance(key, list | dict) and key in value:
            return value[key]
        raise CelError(f"no such key: {key}")
    if isinstance(value, list):
        if isinstance(key, bool) or not is_number(key) or key != int(key):
            raise CelError(NO_OVERLOAD)
        if not 0 <= key < len(value):
            raise CelError(f"index out of bounds: {int(key)}")
        return value[int(key)]
    raise CelError(NO_OVERLOAD)


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _logic(decisive: bool) -> Callable[[Compiler, Call], Expr]:
    """`||` and `&&`: the decisive value wins over an error on the other side, in either order."""

    def build(compiler: Compiler, node: Call) -> Expr:
        parts = [compiler.compile(arg).evaluate for arg in node.args]

        def evaluate(env: Env) -> bool:
            failure: CelError | None = None
            for part in parts:
                try:
                    value: object = part(env)
                except CelError as error:
                    failure = failure or error
                    continue
                if value is decisive:
                    return decisive
                if not isinstance(value, bool):
                    failure = failure or CelError(NO_OVERLOAD)
            if failure is not None:
                raise failure
            return not decisive

        return Expr(evaluate)

    return build


def _conditional(compiler: Compiler, node: Call) -> Expr:
    test, then, other = (compiler.compile(arg) for arg in node.args)

    def evaluate(env: Env) -> Any:
        value = test.evaluate(env)
        if value is True:
            return then.evaluate(env)
        if value is False:
            return other.evaluate(env)
        raise CelError(NO_OVERLOAD)

    return Expr(evaluate, then.schema if then.schema is other.schema else None)


def _not(compiler: Compiler, node: Call) -> Expr:
    operand = compiler.compile(node.args[0]).evaluate

    def evaluate(env: Env) -> bool:
        value = operand(env)
        if value is True:
            return False
        if value is False:
            return True
        raise CelError(NO_OVERLOAD)

    return Expr(evaluate)


def _equality(*, negated: bool) -> Callable[[Compiler, Call], Expr]:
    def build(compiler: Compiler, node: Call) -> Expr:
        left, right = (compiler.compile(arg) for arg in node.args)
        schema = left.schema or right.schema

        def evaluate(env: Env) -> bool:
            return typed_equal(left.evaluate(env), right.evaluate(env), schema) is not negated

        return Expr(evaluate)

    return build


def _order(compare: Callable[[Any, Any], bool]) -> Callable[[Compiler, Call], Expr]:
    def build(compiler: Compiler, node: Call) -> Expr:
        left, right = (compiler.compile(arg).evaluate for arg in node.args)

        def evaluate(env: Env) -> bool:
            a, b = left(env), right(env)
            if not ordered(a, b):
                raise CelError(NO_OVERLOAD)
            return bool(compare(a, b))

        return Expr(evaluate)

    return build


def _in(compiler: Compiler, node: Call) -> Expr:
    item, items = (compiler.compile(arg) for arg in node.args)
    schema = element(items.schema)

    def evaluate(env: Env) -> bool:
        value, among = item.evaluate(env), items.evaluate(env)
        if isinstance(among, dict):
            return not isinstance(value, list | dict) and value in among
        if isinstance(among, list):
            return any(typed_equal(value, other, schema) for other in among)
        raise CelError(NO_OVERLOAD)

    return Expr(evaluate)


def _arithmetic(apply: Callable[[Any, Any], Any]) -> Callable[[Compiler, Call], Expr]:
    def build(compiler: Compiler, node: Call) -> Expr:
        left, right = (compiler.compile(arg) for arg in node.args)
        a, b = left.evaluate, right.evaluate
        schema = left.schema if left.schema is right.schema else None
        return Expr(lambda env: apply(a(env), b(env)), schema)

    return build


def _checked(value: int, *, unsigned: bool) -> int:
    if unsigned:
        if not 0 <= value < 2**64:
            raise CelError("unsigned integer overflow")
        return UInt(value)
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


def _numbers(a: Any, b: Any) -> str:
    """`int`, `uint` or `float` when both are that; arithmetic never mixes them."""
    if isinstance(a, bool) or isinstance(b, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(a, UInt) and isinstance(b, UInt):
        return "uint"
    if type(a) is int and type(b) is int:
        return "int"
    if isinstance(a, float) and isinstance(b, float):
        return "float"
    raise CelError(NO_OVERLOAD)


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, str) and isinstance(b, str):
        return a + b
    if isinstance(a, bytes) and isinstance(b, bytes):
        return a + b
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    if isinstance(a, Duration) and isinstance(b, Duration):
        return Duration(a.nanos + b.nanos)
    if isinstance(a, dt.datetime) and isinstance(b, Duration):
        return a + dt.timedelta(microseconds=b.nanos // 1000)
    if isinstance(a, Duration) and isinstance(b, dt.datetime):
        return _add(b, a)
    kind = _numbers(a, b)
    return a + b if kind == "float" else _checked(int(a) + int(b), unsigned=kind == "uint")


def _subtract(a: Any, b: Any) -> Any:
    if isinstance(a, Duration) and isinstance(b, Duration):
        return Duration(a.nanos - b.nanos)
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        return Duration(round((a - b).total_seconds() * 10**6) * 1000)
    if isinstance(a, dt.datetime) and isinstance(b, Duration):
        return a - dt.timedelta(microseconds=b.nanos // 1000)
    kind = _numbers(a, b)
    return a - b if kind == "float" else _checked(int(a) - int(b), unsigned=kind == "uint")


def _multiply(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    return a * b if kind == "float" else _checked(int(a) * int(b), unsigned=kind == "uint")


def _divide(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    if kind == "float":
        if b == 0:
            return float("nan") if a == 0 or a != a else float("inf") * (1 if a > 0 else -1)
        return a / b
    if b == 0:
        raise CelError("division by zero")
    quotient = abs(int(a)) // abs(int(b))  # truncated, as in Go
    return _checked(quotient if (a < 0) == (b < 0) else -quotient, unsigned=kind == "uint")


def _modulo(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    if kind == "float":
        raise CelError(NO_OVERLOAD)
    if b == 0:
        raise CelError("modulus by zero")
    rest = abs(int(a)) % abs(int(b))
    return _checked(-rest if a < 0 else rest, unsigned=kind == "uint")


def _negate(compiler: Compiler, node: Call) -> Expr:
    operand = compiler.compile(node.args[0]).evaluate

    def evaluate(env: Env) -> Any:
        value = operand(env)
        if isinstance(value, float):
            return -value
        if type(value) is int:
            return _checked(-value, unsigned=False)
        if isinstance(value, Duration):
            return Duration(-value.nanos)
        raise CelError(NO_OVERLOAD)

    return Expr(evaluate)


_SPECIAL: dict[str, Callable[[Compiler, Call], Expr]] = {
    "_||_": _logic(True),
    "_&&_": _logic(False),
    "_?_:_": _conditional,
    "!_": _not,
    "-_": _negate,
    "_==_": _equality(negated=False),
    "_!=_": _equality(negated=True),
    "_<_": _order(operator.lt),
    "_<=_": _order(operator.le),
    "_>_": _order(operator.gt),
    "_>=_": _order(operator.ge),
    "@in": _in,
    "_+_": _arithmetic(_add),
    "_-_": _arithmetic(_subtract),
    "_*_": _arithmetic(_multiply),
    "_/_": _arithmetic(_divide),
    "_%_": _arithmetic(_modulo),
}


def compile_expression(text: str, variables: Mapping[str, StructuralSchema | None]) -> Program:
    """Compile `text`; `variables` names what it may speak of, each with its schema or None. Raises `SchemaError`."""
    compiler = Compiler(variables)
    try:
        expr = compiler.compile(parse(text))
    except RecursionError:
        raise SchemaError("the expression is nested too deeply") from None
    return Program(text, expr.evaluate, frozenset(compiler.used))
