"""CEL's operators as closures."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwright.schema.cel import arithmetic
from trainwright.schema.cel.expression import Env, Expr
from trainwright.schema.cel.syntax import Call
from trainwright.schema.cel.typed import element, typed_equal
from trainwright.schema.cel.values import NO_OVERLOAD, CelError, ordered

if TYPE_CHECKING:
    from trainwright.schema.cel.compile import Compiler


def _logic(decisive: bool) -> Callable[[Compiler, Call], Expr]:
    """`||` and `&&`: if one side decides, an error on the other does not matter, in either order."""

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


def _negate(compiler: Compiler, node: Call) -> Expr:
    operand = compiler.compile(node.args[0]).evaluate
    return Expr(lambda env: arithmetic.negate(operand(env)))


OPERATORS: dict[str, Callable[[Compiler, Call], Expr]] = {
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
    "_+_": _arithmetic(arithmetic.add),
    "_-_": _arithmetic(arithmetic.subtract),
    "_*_": _arithmetic(arithmetic.multiply),
    "_/_": _arithmetic(arithmetic.divide),
    "_%_": _arithmetic(arithmetic.modulo),
}
