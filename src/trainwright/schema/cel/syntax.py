"""CEL's parser.

In: an expression. Out: a tree of `Node`s, in which macros are still calls. Bad text raises `SchemaError` with the
place.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from trainwright.schema.errors import SchemaError

# A limit that is reached before Python's own stack ends: a level takes a dozen frames.
_MAX_DEPTH = 50


class Literal(NamedTuple):
    value: Any


class UInt(int):
    """An unsigned literal such as `3u`."""


class Ident(NamedTuple):
    name: str


class Select(NamedTuple):
    operand: Node
    field: str
    optional: bool = False


class Index(NamedTuple):
    operand: Node
    key: Node
    optional: bool = False


class Call(NamedTuple):
    """`function(args)` or `target.function(args)`; operators are calls of names such as `_+_`."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None


class ListOf(NamedTuple):
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapOf(NamedTuple):
    entries: tuple[tuple[Node, Node, bool], ...]


Node = Literal | Ident | Select | Index | Call | ListOf | MapOf

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<int>(?:0x[0-9a-fA-F]+|\d+)[uU]?)
  | (?P<string>[rRbB]{0,2}(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
  | (?P<raw>[rR](?:'[^'\n]*'|"[^"\n]*"))
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`)
  | (?P<op>&&|\|\||[=!<>]=|\[\?|\.\?|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "?": "?",
    '"': '"',
    "'": "'",
    "`": "`",
}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))|\\"
)
_RELATIONS = ("==", "!=", "<=", ">=", "<", ">")


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.items: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                where = f"ERROR: <input>:1:{position + 1}"
                raise SchemaError(f"{where}: Syntax error: token recognition error at: {text[position]!r}")
            kind = match.lastgroup or ""
            if kind != "space":
                self.items.append((kind, match[0], position))
            position = match.end()
        self.items.append(("end", "<EOF>", len(text)))
        self.at = 0
        self.depth = 0

    @property
    def kind(self) -> str:
        return self.items[self.at][0]

    @property
    def value(self) -> str:
        return self.items[self.at][1]

    def take(self) -> str:
        value = self.items[self.at][1]
        self.at += 1
        return value

    def is_op(self, *operators: str) -> bool:
        kind, value, _ = self.items[self.at]
        return kind == "op" and value in operators

    def skip(self, operator: str) -> bool:
        if self.is_op(operator):
            self.at += 1
            return True
        return False

    def expect(self, operator: str) -> None:
        if not self.skip(operator):
            self.fail(f"expecting {operator!r}")

    def fail(self, why: str) -> None:
        _, value, position = self.items[self.at]
        raise SchemaError(f"ERROR: <input>:1:{position + 1}: Syntax error: mismatched input {value!r} {why}")


def parse(text: str) -> Node:
    """The tree of an expression."""
    tokens = _Tokens(text)
    node = _expression(tokens)
    if tokens.kind != "end":
        tokens.fail("expecting <EOF>")
    return node


def _expression(tokens: _Tokens) -> Node:
    tokens.depth += 1
    if tokens.depth > _MAX_DEPTH:
        raise SchemaError(f"expression is nested more than {_MAX_DEPTH} levels deep")
    condition = _or(tokens)
    if tokens.skip("?"):
        then = _or(tokens)
        tokens.expect(":")
        condition = Call("_?_:_", (condition, then, _expression(tokens)))
    tokens.depth -= 1
    return condition


def _or(tokens: _Tokens) -> Node:
    parts = [_and(tokens)]
    while tokens.skip("||"):
        parts.append(_and(tokens))
    return parts[0] if len(parts) == 1 else Call("_||_", tuple(parts))


def _and(tokens: _Tokens) -> Node:
    parts = [_relation(tokens)]
    while tokens.skip("&&"):
        parts.append(_relation(tokens))
    return parts[0] if len(parts) == 1 else Call("_&&_", tuple(parts))


def _relation(tokens: _Tokens) -> Node:
    left = _sum(tokens)
    while tokens.is_op(*_RELATIONS) or (tokens.kind == "ident" and tokens.value == "in"):
        operator = tokens.take()
        left = Call("@in" if operator == "in" else f"_{operator}_", (left, _sum(tokens)))
    return left


def _sum(tokens: _Tokens) -> Node:
    left = _product(tokens)
    while tokens.is_op("+", "-"):
        operator = tokens.take()
        left = Call(f"_{operator}_", (left, _product(tokens)))
    return left


def _product(tokens: _Tokens) -> Node:
    left = _unary(tokens)
    while tokens.is_op("*", "/", "%"):
        operator = tokens.take()
        left = Call(f"_{operator}_", (left, _unary(tokens)))
    return left


def _unary(tokens: _Tokens) -> Node:
    if tokens.is_op("!", "-"):
        operator = tokens.take()
        count = 1
        while tokens.is_op(operator):
            tokens.take()
            count += 1
        if operator == "-" and tokens.kind in ("int", "float") and count == 1:
            return _postfix(tokens, _number(tokens, negative=True))
        operand = _postfix(tokens, _primary(tokens))
        name = "!_" if operator == "!" else "-_"
        return Call(name, (operand,)) if count % 2 else operand
    return _postfix(tokens, _primary(tokens))


def _postfix(tokens: _Tokens, node: Node) -> Node:
    steps = 0
    while True:
        steps += 1
        if steps > _MAX_DEPTH:
            raise SchemaError(f"expression is nested more than {_MAX_DEPTH} levels deep")
        if tokens.skip(".?"):
            node = Select(node, _field(tokens), optional=True)
        elif tokens.skip("."):
            name = _field(tokens)
            node = Call(name, _arguments(tokens), node) if tokens.skip("(") else Select(node, name)
        elif tokens.is_op("[", "[?"):
            optional = tokens.take() == "[?"
            key = _expression(tokens)
            tokens.expect("]")
            node = Index(node, key, optional)
        else:
            return node


def _field(tokens: _Tokens) -> str:
    if tokens.kind != "ident":
        tokens.fail("expecting IDENTIFIER")
    return tokens.take().strip("`")


def _arguments(tokens: _Tokens) -> tuple[Node, ...]:
    args: list[Node] = []
    while not tokens.is_op(")"):
        args.append(_expression(tokens))
        if not tokens.skip(","):
            break
    tokens.expect(")")
    return tuple(args)


def _primary(tokens: _Tokens) -> Node:
    kind = tokens.kind
    if kind in ("int", "float"):
        return _number(tokens, negative=False)
    if kind in ("string", "raw"):
        return Literal(_string(tokens.take()))
    if kind == "ident":
        return _identifier(tokens)
    if tokens.skip("("):
        inner = _expression(tokens)
        tokens.expect(")")
        return inner
    if tokens.skip("["):
        return _list(tokens)
    if tokens.skip("{"):
        return _map(tokens)
    if tokens.skip("."):
        return _identifier(tokens)
    tokens.fail("expecting an expression")
    raise AssertionError  # fail always raises


def _identifier(tokens: _Tokens) -> Node:
    if tokens.kind != "ident":
        tokens.fail("expecting IDENTIFIER")
    name = tokens.take()
    if name in ("true", "false"):
        return Literal(name == "true")
    if name == "null":
        return Literal(None)
    if name in _RESERVED:
        raise SchemaError(f"ERROR: <input>:1:1: reserved identifier: {name}")
    if tokens.skip("("):
        return Call(name, _arguments(tokens))
    return Ident(name)


def _list(tokens: _Tokens) -> Node:
    items: list[Node] = []
    optional: set[int] = set()
    while not tokens.is_op("]"):
        if tokens.skip("?"):
            optional.add(len(items))
        items.append(_expression(tokens))
        if not tokens.skip(","):
            break
    tokens.expect("]")
    return ListOf(tuple(items), frozenset(optional))


def _map(tokens: _Tokens) -> Node:
    entries: list[tuple[Node, Node, bool]] = []
    while not tokens.is_op("}"):
        optional = tokens.skip("?")
        key = _expression(tokens)
        tokens.expect(":")
        entries.append((key, _expression(tokens), optional))
        if not tokens.skip(","):
            break
    tokens.expect("}")
    return MapOf(tuple(entries))


_MAX_NUMBER = 100  # characters of an integer literal; 64 bits need 20, leading zeros aside


def _number(tokens: _Tokens, *, negative: bool) -> Node:
    kind, text = tokens.kind, tokens.take()
    sign = -1 if negative else 1
    if kind == "float":
        return Literal(sign * float(text))
    unsigned = text[-1] in "uU"
    base = 16 if text.startswith("0x") else 10
    value = sign * int(text.rstrip("uU"), base) if len(text) <= _MAX_NUMBER else 2**64
    if unsigned:
        if not 0 <= value < 2**64:
            raise SchemaError(f"invalid uint literal {text}")
        return Literal(UInt(value))
    if not -(2**63) <= value < 2**63:
        raise SchemaError(f"invalid int literal {text}")
    return Literal(value)


def _string(text: str) -> str | bytes:
    quote_at = min(at for at in (text.find("'"), text.find('"')) if at >= 0)
    prefix, body = text[:quote_at].lower(), text[quote_at:]
    width = 3 if body[:3] in ("'''", '"""') and len(body) >= 6 else 1
    body = body[width:-width]
    is_bytes = "b" in prefix
    if "r" not in prefix:
        body = _ESCAPE.sub(_unescape_bytes if is_bytes else _unescape, body)
    if not is_bytes:
        return body
    # Escapes give single bytes, other characters their UTF-8 form.
    return b"".join(bytes([ord(c) - 0xF700]) if 0xF700 <= ord(c) < 0xF800 else c.encode() for c in body)


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return _ESCAPES[match[1]]
    number = match[2] or match[3] or match[4]
    if number:
        if int(number, 16) > 0x10FFFF:
            raise SchemaError(f"unable to unescape string: invalid escape at {match.start()}")
        return chr(int(number, 16))
    if match[5]:
        return chr(int(match[5], 8))
    raise SchemaError(f"unable to unescape string: invalid escape at {match.start()}")


def _unescape_bytes(match: re.Match[str]) -> str:
    text = _unescape(match)
    # A private-use character stands for one byte until the literal is complete.
    return chr(0xF700 + ord(text)) if match[2] or match[5] else text
