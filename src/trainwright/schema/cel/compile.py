"""CEL expressions compiled to closures.

In: the tree of an expression and the schemas of its variables. Out: a `Program`, to be called with the variables'
values. The compiler follows the schemas (`self.when` of a date-time field is a timestamp, keyed lists compare without
order), so that evaluation looks nothing up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainwright.schema.cel import library
from trainwright.schema.cel.expression import Env, Evaluate, Expr
from trainwright.schema.cel.macros import MACROS
from trainwright.schema.cel.operators import OPERATORS
from trainwright.schema.cel.signatures import Signature
from trainwright.schema.cel.syntax import (
    Call,
    Ident,
    Index,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    parse,
)
from trainwright.schema.cel.typed import convert, element, member
from trainwright.schema.cel.values import NO_OVERLOAD, NONE, CelError, Optional_, is_number
from trainwright.schema.errors import SchemaError

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema


class Program:
    """A compiled expression. Calling it evaluates it, or raises `CelError`."""

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
    """Walks a tree with the variables in scope; macros.py calls back into it."""

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
        special = OPERATORS.get(node.function)
        if special is not None and node.target is None:
            return special(self, node)
        macro = MACROS.get((node.function, len(node.args), node.target is not None))
        if macro is not None:
            return macro(self, node)
        if node.target is None:
            return self._apply(node.function, library.find("GLOBAL", node.function), node.args)
        if isinstance(node.target, Ident) and node.target.name not in self.scope:
            full = f"{node.target.name}.{node.function}"
            if (known := library.find("NAMESPACED", full)) is not None:
                return self._apply(full, known, node.args)
        known = library.find("MEMBER", node.function)
        if known is not None:
            known = (known[0], known[1] + 1, known[2] + 1)
        return self._apply(node.function, known, (node.target, *node.args))

    def _apply(self, name: str, known: Signature | None, args: tuple[Node, ...]) -> Expr:
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
    """Select a member of an optional: after a `.?`, every further step is optional too."""
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


def compile_expression(text: str, variables: Mapping[str, StructuralSchema | None]) -> Program:
    """Compile an expression over the given variables, each with its schema or None. Raises `SchemaError`."""
    compiler = Compiler(variables)
    try:
        expr = compiler.compile(parse(text))
    except RecursionError:
        raise SchemaError("the expression is nested too deeply") from None
    return Program(text, expr.evaluate, frozenset(compiler.used))
