"""Go's regular expressions (RE2) on Python's `re`.

In: a pattern of a schema or a CEL rule. Out: a compiled Python pattern that matches the same strings. Like the API
server, it refuses what RE2 does not know: look-around, back-references, possessive quantifiers. `\\d`, `\\w`, `\\s` and
`\\b` are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from trainwright.schema.errors import SchemaError

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_UNSUPPORTED = re.compile(r"\(\?(?:[=!>(#]|<[=!]|P=|P>)")
_PART = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|\Z))"
    r"|(?P<hex>\\x\{[0-9A-Fa-f]+\})"
    r"|(?P<unicode>\\[pP](?:\{\^?[A-Za-z_]+\}|[A-Za-z]))"
    r"|(?P<escape>\\.)"
    r"|(?P<posix>\[:\^?[a-z]+:\])"
    r"|(?P<named>\(\?<(?=[A-Za-z_]))"
    r"|(?P<open>\[\^?\]?)"
    r"|(?P<close>\])"
    r"|(?P<end>\$)"
    r"|(?P<possessive>[*+?}]\+)",
    re.DOTALL,
)
# The general categories that `re` can express.
_UNICODE = {
    "L": r"[^\W\d_]",
    "N": r"\d",
    "Nd": r"\d",
}


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> re.Pattern[str]:
    """The compiled pattern, to be used with `.search`. Raises `SchemaError` for a pattern that RE2 does not accept."""
    if _UNSUPPORTED.search(re.sub(r"\\.", "", pattern)):
        raise SchemaError(f"invalid or unsupported Perl syntax in pattern {pattern!r}")
    multiline = bool(re.match(r"\(\?[a-zU]*m", pattern))
    translated = _translate(pattern, multiline=multiline)
    try:
        return re.compile(translated, re.ASCII if not _is_unicode(pattern) else 0)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise SchemaError(f"error parsing regexp {pattern!r}: {error}") from None


def _is_unicode(pattern: str) -> bool:
    return "\\p" in pattern or "\\P" in pattern


def _translate(pattern: str, *, multiline: bool) -> str:
    out: list[str] = []
    position, in_class = 0, False
    for match in _PART.finditer(pattern):
        out.append(pattern[position : match.start()])
        position = match.end()
        kind = match.lastgroup or ""
        translate = (_INSIDE_CLASS if in_class else _OUTSIDE_CLASS).get(kind, _as_it_is)
        out.append(translate(_Part(match[0], pattern, multiline)))
        in_class = (in_class or kind == "open") and kind != "close"
    out.append(pattern[position:])
    return "".join(out)


class _Part(NamedTuple):
    """A piece of a pattern that RE2 and Python may read differently."""

    text: str
    pattern: str
    multiline: bool


def _as_it_is(part: _Part) -> str:
    return part.text


def _quoted(part: _Part) -> str:
    return re.escape(part.text[2:].removesuffix("\\E"))


def _hexadecimal(part: _Part) -> str:
    digits = part.text[3:-1].lstrip("0") or "0"
    if len(digits) > 6 or int(digits, 16) > 0x10FFFF:
        raise SchemaError(f"invalid escape sequence {part.text} in pattern {part.pattern!r}")
    return re.escape(chr(int(digits, 16)))


def _escape(part: _Part) -> str:
    text = part.text
    if text == "\\z":
        return "\\Z"
    if text == "\\C" or text[1] in "123456789" or text[1] in "Zk":
        raise SchemaError(f"invalid escape sequence {text} in pattern {part.pattern!r}")
    return text


def _unicode_class(part: _Part) -> str:
    plain = _UNICODE.get(part.text[2:].strip("{}"))
    if plain is None or part.text[1] == "P":
        raise _unsupported_class(part)
    return plain


def _unsupported_class(part: _Part) -> SchemaError:
    return SchemaError(f"character class {part.text} in pattern {part.pattern!r} is not supported here")


def _refused_class(part: _Part) -> str:
    raise _unsupported_class(part)


def _posix_class(part: _Part) -> str:
    text = part.text
    if text[2] == "^" or text[2:-2] not in _POSIX:
        raise SchemaError(f"unsupported character class {text} in pattern {part.pattern!r}")
    return _POSIX[text[2:-2]]


def _named_group(part: _Part) -> str:
    return "(?P<"


def _open_class(part: _Part) -> str:
    return part.text.replace("]", "\\]")


def _literal_bracket(part: _Part) -> str:
    """A bracket that RE2 takes literally, where Python would warn."""
    return "\\" + part.text


def _end_of_text(part: _Part) -> str:
    """Python's `$` also matches before a final newline."""
    return "$" if part.multiline else "\\Z"


def _possessive(part: _Part) -> str:
    raise SchemaError(f"invalid nested repetition operator in pattern {part.pattern!r}")


_EVERYWHERE: dict[str, Callable[[_Part], str]] = {
    "quoted": _quoted,
    "hex": _hexadecimal,
    "escape": _escape,
    "named": _named_group,
}
_OUTSIDE_CLASS = {
    **_EVERYWHERE,
    "unicode": _unicode_class,
    "posix": _literal_bracket,
    "open": _open_class,
    "end": _end_of_text,
    "possessive": _possessive,
}
_INSIDE_CLASS = {**_EVERYWHERE, "unicode": _refused_class, "posix": _posix_class, "open": _literal_bracket}
