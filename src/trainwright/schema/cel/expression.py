"""A compiled part of an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

Env = dict[str, Any]
Evaluate = Callable[[Env], Any]


class Expr(NamedTuple):
    """A compiled part, and the schema of its value if that is known."""

    evaluate: Evaluate
    schema: StructuralSchema | None = None
