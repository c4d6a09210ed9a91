"""Go's regular expressions (RE2) on Python's `re`.

In: a pattern of a schema or a CEL rule. Out: a compiled Python pattern that matches the same strings. What RE2 does
not know (look-around, back-references, possessive quantifiers) is refused, as the API server refuses it. `\\d`,
`\\w`, `\\s` and `\\b` mean ASCII there.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
# The general categories that patterns in the wild use, as far as `re` can say them.
_UNICODE = {
    "L": r"[^\W\d_]",
    "N": r"\d",
    "Nd": r"\d",
}


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> re.Pattern[str]:
    """The pattern compiled; raises `SchemaError` that says what RE2 would not accept. Use `.search`."""
    if _UNSUPPORTED.search(re.sub(r"\\.", "", pattern)):
        raise SchemaError(f"invalid or unsupported Perl syntax in pattern {pattern!r}")
    multiline = bool(re.match(r"\(\?[a-zU]*m", pattern))
    try:
        return re.compile(_translate(pattern, multiline=multiline), re.ASCII if not _is_unicode(pattern) else 0)
    except re.error as error:
        raise SchemaError(f"error parsing regexp {pattern!r}: {error}") from None


def _is_unicode(pattern: str) -> bool:
    return "\\p" in pattern or "\\P" in pattern


def _translate(pattern: str, *, multiline: bool) -> str:
    out: list[str] = []
    position, in_class = 0, False
    for match in _PART.finditer(pattern):
        out.append(pattern[position : match.start()])
        position = match.end()
        text = match[0]
        match match.lastgroup:
            case "quoted":
                out.append(re.escape(text[2:].removesuffix("\\E")))
            case "hex":
                out.append(re.escape(chr(int(text[3:-1], 16))))
            case "unicode":
                out.append(_unicode_class(text, in_class=in_class, pattern=pattern))
            case "escape":
                out.append(_escape(text, pattern))
            case "posix" if in_class:
                if text[2] == "^" or text[2:-2] not in _POSIX:
                    raise SchemaError(f"unsupported character class {text} in pattern {pattern!r}")
                out.append(_POSIX[text[2:-2]])
            case "named":
                out.append("(?P<")
            case "open" if not in_class:
                in_class = True
                # `[` alone inside a class is a literal for RE2 and a warning for Python.
                out.append(text.replace("]", "\\]"))
            case "open" | "posix":
                out.append("\\" + text)
            case "close":
                in_class = False
                out.append(text)
            case "end" if not in_class and not multiline:
                # Python's $ also matches before a final newline.
                out.append("\\Z")
            case "possessive" if not in_class:
                raise SchemaError(f"invalid nested repetition operator in pattern {pattern!r}")
            case _:
                out.append(text)
    out.append(pattern[position:])
    return "".join(out)


def _escape(text: str, pattern: str) -> str:
    if text == "\\z":
        return "\\Z"
    if text == "\\C" or text[1] in "123456789" or text[1] in "Zk":
        raise SchemaError(f"invalid escape sequence {text} in pattern {pattern!r}")
    return text


def _unicode_class(text: str, *, in_class: bool, pattern: str) -> str:
    name = text[2:].strip("{}")
    plain = _UNICODE.get(name)
    if plain is None or in_class or text[1] == "P":
        raise SchemaError(f"character class {text} in pattern {pattern!r} is not supported here")
    return plain
