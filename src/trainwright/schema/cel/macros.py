"""CEL's macros: presence, loops over lists and maps, optionals.

A macro gets its arguments unevaluated. Loops behave like `||` and `&&`: if another item decides, an error in one item
does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from trainwright.schema.cel.expression import Env, Evaluate, Expr
from trainwright.schema.cel.lists import sort
from trainwright.schema.cel.syntax import Call, Ident, Node, Select
from trainwright.schema.cel.typed import convert, element, member
from trainwright.schema.cel.values import NO_OVERLOAD, CelError, Optional_
from trainwright.schema.errors import SchemaError

if TYPE_CHECKING:
    from trainwright.schema.cel.compile import Compiler
    from trainwright.schema.structural import StructuralSchema

Macro = Callable[["Compiler", Call], "Expr"]


def _has(compiler: Compiler, node: Call) -> Expr:
    selected = node.args[0]
    if not isinstance(selected, Select):
        raise SchemaError("invalid argument to has() macro")
    operand = compiler.compile(selected.operand)
    name, schema = member(operand.schema, selected.field)
    read, turn = operand.evaluate, convert(schema)

    def has(env: Env) -> bool:
        value = read(env)
        if isinstance(value, Optional_):
            value = value.value if value.present else {}
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        if name not in value:
            return False
        if turn is not None:
            turn(value[name])  # a value that cannot be converted is an error, not present
        return True

    return Expr(has)


class _Loop:
    """A range, one or two loop variables, and a body compiled with them in scope."""

    def __init__(self, compiler: Compiler, node: Call, *, variables: int, bodies: int) -> None:
        assert node.target is not None
        over = compiler.compile(node.target)
        self.over: Evaluate = over.evaluate
        self.names = [_variable(arg) for arg in node.args[:variables]]
        schema = over.schema
        is_list = schema is not None and schema.type == "array"
        value_schema = element(schema)
        schemas: list[StructuralSchema | None] = (
            [None, value_schema] if variables == 2 else [value_schema if is_list else None]
        )
        self.turn = convert(value_schema) if variables == 2 or is_list else None
        outer = dict(compiler.scope)
        compiler.scope.update(zip(self.names, schemas, strict=True))
        self.bodies = [compiler.compile(arg).evaluate for arg in node.args[variables : variables + bodies]]
        compiler.scope = outer
        compiler.used -= {name for name in self.names if name not in outer}

    def steps(self, env: Env) -> Iterator[Env]:
        """The scope of each round: one dictionary, changed between rounds."""
        value = self.over(env)
        inner = dict(env)
        if isinstance(value, list):
            pairs: Any = enumerate(value)
        elif isinstance(value, dict):
            pairs = value.items()
        else:
            raise CelError(NO_OVERLOAD)
        single = isinstance(value, dict)
        for key, item in pairs:
            if len(self.names) == 2:
                inner[self.names[0]] = key
                inner[self.names[1]] = self.turn(item) if self.turn is not None else item
            elif single:
                inner[self.names[0]] = key
            else:
                inner[self.names[0]] = self.turn(item) if self.turn is not None else item
            yield inner


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise SchemaError("argument must be a simple name")
    return node.name


def _boolean(value: Any) -> bool:
    if value is not True and value is not False:
        raise CelError(NO_OVERLOAD)
    return bool(value)


def _quantifier(variables: int, *, decisive: bool) -> Macro:
    """`exists` is decided by one true, `all` by one false."""

    def build(compiler: Compiler, node: Call) -> Expr:
        loop = _Loop(compiler, node, variables=variables, bodies=1)
        body = loop.bodies[0]

        def evaluate(env: Env) -> bool:
            failure: CelError | None = None
            for inner in loop.steps(env):
                try:
                    if _boolean(body(inner)) is decisive:
                        return decisive
                except CelError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not decisive

        return Expr(evaluate)

    return build


def _exists_one(variables: int) -> Macro:
    def build(compiler: Compiler, node: Call) -> Expr:
        loop = _Loop(compiler, node, variables=variables, bodies=1)
        body = loop.bodies[0]
        return Expr(lambda env: sum(_boolean(body(inner)) for inner in loop.steps(env)) == 1)

    return build


def _filter(compiler: Compiler, node: Call) -> Expr:
    loop = _Loop(compiler, node, variables=1, bodies=1)
    body, name = loop.bodies[0], loop.names[0]
    assert node.target is not None
    schema = compiler.compile(node.target).schema
    return Expr(lambda env: [inner[name] for inner in loop.steps(env) if _boolean(body(inner))], schema)


def _map(variables: int, *, filtered: bool) -> Macro:
    """`map` and `transformList`: the value of the body for each item that passes the test, if there is one."""

    def build(compiler: Compiler, node: Call) -> Expr:
        loop = _Loop(compiler, node, variables=variables, bodies=2 if filtered else 1)
        body = loop.bodies[-1]
        if not filtered:
            return Expr(lambda env: [body(inner) for inner in loop.steps(env)])
        test = loop.bodies[0]
        return Expr(lambda env: [body(inner) for inner in loop.steps(env) if _boolean(test(inner))])

    return build


def _transform_map(*, filtered: bool) -> Macro:
    def build(compiler: Compiler, node: Call) -> Expr:
        loop = _Loop(compiler, node, variables=2, bodies=2 if filtered else 1)
        body, key = loop.bodies[-1], loop.names[0]
        if not filtered:
            return Expr(lambda env: {inner[key]: body(inner) for inner in loop.steps(env)})
        test = loop.bodies[0]
        return Expr(lambda env: {inner[key]: body(inner) for inner in loop.steps(env) if _boolean(test(inner))})

    return build


def _transform_entries(*, filtered: bool) -> Macro:
    """`transformMapEntry`: the body yields maps, which are joined; a key that comes twice is an error."""

    def build(compiler: Compiler, node: Call) -> Expr:
        loop = _Loop(compiler, node, variables=2, bodies=2 if filtered else 1)
        body = loop.bodies[-1]
        test = loop.bodies[0] if filtered else None

        def evaluate(env: Env) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for inner in loop.steps(env):
                if test is not None and not _boolean(test(inner)):
                    continue
                for key, value in body(inner).items():
                    if key in result:
                        raise CelError(f"insert failed: key {key} already exists")
                    result[key] = value
            return result

        return Expr(evaluate)

    return build


def _sort_by(compiler: Compiler, node: Call) -> Expr:
    loop = _Loop(compiler, node, variables=1, bodies=1)
    body, name = loop.bodies[0], loop.names[0]

    def evaluate(env: Env) -> list[Any]:
        keyed = [(body(inner), inner[name]) for inner in loop.steps(env)]
        order = sort([key for key, _ in keyed])
        return [item for _, item in sorted(keyed, key=lambda pair: order.index(pair[0]))]

    return Expr(evaluate)


def _optional_map(*, flat: bool) -> Macro:
    def build(compiler: Compiler, node: Call) -> Expr:
        assert node.target is not None
        source = compiler.compile(node.target)
        name = _variable(node.args[0])
        outer = dict(compiler.scope)
        compiler.scope[name] = source.schema
        body = compiler.compile(node.args[1]).evaluate
        compiler.scope = outer

        def evaluate(env: Env) -> Any:
            value = source.evaluate(env)
            if not isinstance(value, Optional_):
                raise CelError(NO_OVERLOAD)
            if not value.present:
                return value
            result = body({**env, name: value.value})
            return result if flat else Optional_(result)

        return Expr(evaluate)

    return build


def _or_value(compiler: Compiler, node: Call) -> Expr:
    assert node.target is not None
    source, other = compiler.compile(node.target), compiler.compile(node.args[0])

    def evaluate(env: Env) -> Any:
        value = source.evaluate(env)
        if not isinstance(value, Optional_):
            raise CelError(NO_OVERLOAD)
        return value.value if value.present else other.evaluate(env)

    return Expr(evaluate, source.schema)


def _or_optional(compiler: Compiler, node: Call) -> Expr:
    assert node.target is not None
    source, other = compiler.compile(node.target), compiler.compile(node.args[0])

    def evaluate(env: Env) -> Any:
        value = source.evaluate(env)
        if not isinstance(value, Optional_):
            raise CelError(NO_OVERLOAD)
        return value if value.present else other.evaluate(env)

    return Expr(evaluate, source.schema)


MACROS: dict[tuple[str, int, bool], Macro] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier(1, decisive=False),
    ("all", 3, True): _quantifier(2, decisive=False),
    ("exists", 2, True): _quantifier(1, decisive=True),
    ("exists", 3, True): _quantifier(2, decisive=True),
    ("exists_one", 2, True): _exists_one(1),
    ("existsOne", 2, True): _exists_one(1),
    ("existsOne", 3, True): _exists_one(2),
    ("filter", 2, True): _filter,
    ("map", 2, True): _map(1, filtered=False),
    ("map", 3, True): _map(1, filtered=True),
    ("transformList", 3, True): _map(2, filtered=False),
    ("transformList", 4, True): _map(2, filtered=True),
    ("transformMap", 3, True): _transform_map(filtered=False),
    ("transformMap", 4, True): _transform_map(filtered=True),
    ("transformMapEntry", 3, True): _transform_entries(filtered=False),
    ("transformMapEntry", 4, True): _transform_entries(filtered=True),
    ("sortBy", 2, True): _sort_by,
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
    ("orValue", 1, True): _or_value,
    ("or", 1, True): _or_optional,
}
"""Which call is a macro: by its name, the number of its arguments, and whether it is called on a value."""
