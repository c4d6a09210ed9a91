"""Label and field selectors, parsed from a query or from a LabelSelector object.

In: text such as `a in (x,y),!b` or `status.phase!=Running`. Out: a frozen selector with `matches`. Bad text raises
`SelectorError` in Kubernetes' words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from trainwright.schema.errors import FieldError, aggregate, forbidden, invalid, required
from trainwright.schema.names import label_key_faults, label_value_faults


class SelectorError(ValueError):
    """A selector that cannot be parsed, in the API server's words."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector. The operator is in, notin, exists, !, gt or lt; `=` is `in` with one value."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                number, bound = _integer(value), _integer(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator == "gt" else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Selects labels that meet all requirements: everything if there are none, unless `nothing` is set."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.nothing:
            return False
        found: Mapping[str, str] = labels or {}
        return all(requirement.matches(found) for requirement in self.requirements)

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements


@dataclass(frozen=True, slots=True)
class FieldTerm:
    field: str
    equal: bool
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms over dotted fields, compared as strings; an absent field is the empty string."""

    terms: tuple[FieldTerm, ...] = field(default=())

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(term.field, "") == term.value) is term.equal for term in self.terms)


def _integer(text: str | None) -> int | None:
    # strconv.ParseInt: an optional sign and ASCII digits within 64 bits, no spaces or underscores.
    if text is None or len(text) > 63 or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+))")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt", "in": "in", "notin": "notin"}
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})


class _Parser:
    """A recursive-descent parser. Tokens are strings, and the last one is empty; `in` and `notin` are words like any
    other, so they may also be values."""

    def __init__(self, text: str) -> None:
        text = text.partition("\0")[0]
        self.tokens: list[str] = []
        position = 0
        while match := _TOKEN.match(text, position):
            self.tokens.append(match[1] or match[2])
            position = match.end()
        self.tokens.append("")
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        word = self.tokens[self.position]
        self.position += 1
        return word

    @staticmethod
    def is_word(word: str) -> bool:
        return bool(word) and word not in _SYMBOLS

    def selector(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            word = self.peek()
            if word == "":
                return requirements
            if not self.is_word(word) and word != "!":
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            word = self.take()
            if word == "":
                return requirements
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if not self.is_word(self.peek()) and self.peek() != "!":
                raise SelectorError(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        word, absent = self.take(), False
        if word == "!":
            word, absent = self.take(), True
        if not self.is_word(word):
            raise SelectorError(f"found '{word}', expected: identifier")
        key = word
        if faults := label_key_faults(key):
            raise SelectorError(str(invalid("", key, "; ".join(faults))))
        if absent:
            return Requirement(key, "!")
        if self.peek() in ("", ","):
            return Requirement(key, "exists")
        word = self.take()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise SelectorError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        values = self.value_list() if word in ("in", "notin") else self.exact_value()
        return _checked(key, operator, values)

    def exact_value(self) -> set[str]:
        if self.peek() in ("", ","):
            return {""}
        word = self.take()
        if not self.is_word(word):
            raise SelectorError(f"found '{word}', expected: identifier")
        return {word}

    def value_list(self) -> set[str]:
        word = self.take()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if self.peek() == ")":
            self.take()
            return {""}
        if not self.is_word(self.peek()) and self.peek() != ",":
            raise SelectorError(f"found '{self.peek()}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            self.list_item(values)
            if self.peek() == ")":
                self.take()
                return values

    def list_item(self, values: set[str]) -> None:
        """One word or one comma. A comma with nothing on one of its sides stands for an empty value."""
        word = self.take()
        if self.is_word(word):
            values.add(word)
            if self.peek() not in (")", ","):
                raise SelectorError(f"found '{self.peek()}', expected: ',' or ')'")
        elif word == ",":
            if not values or self.peek() in (")", ","):
                values.add("")
        else:
            raise SelectorError(f"found '{word}', expected: ',', or identifier")


def _checked(key: str, operator: str, values: set[str]) -> Requirement:
    ordered = sorted(values)
    errors: list[FieldError] = []
    if operator in ("gt", "lt"):
        for index, value in enumerate(ordered):
            if _integer(value) is None:
                errors.append(
                    invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
                )
    for index, value in enumerate(ordered):
        if faults := label_value_faults(value):
            errors.append(invalid(f"values[{index}][{key}]", value, "; ".join(faults)))
    if errors:
        raise SelectorError(aggregate(errors))
    return Requirement(key, operator, tuple(ordered))


@lru_cache(maxsize=512)
def parse_label_selector(text: str) -> LabelSelector:
    """Parse the `labelSelector` of a query, e.g. `app=web,tier in (a,b),!old`."""
    return LabelSelector(tuple(sorted(_Parser(text).selector(), key=lambda r: r.key)))


_OBJECT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(value: Mapping[str, Any] | None) -> LabelSelector:
    """The selector of a LabelSelector object. None selects nothing, an empty object everything."""
    if value is None:
        return LabelSelector(nothing=True)
    requirements = [Requirement(key, "in", (text,)) for key, text in sorted((value.get("matchLabels") or {}).items())]
    for expression in value.get("matchExpressions") or ():
        operator = _OBJECT_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
        requirements.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(tuple(requirements))


def label_selector_faults(value: Mapping[str, Any], path: str) -> list[FieldError]:
    """The faults of a LabelSelector object at `path`, in the API server's words."""
    errors: list[FieldError] = []
    for key, text in sorted((value.get("matchLabels") or {}).items()):
        if faults := label_key_faults(key):
            errors.append(invalid(f"{path}.matchLabels", key, "; ".join(faults)))
        if faults := label_value_faults(text):
            errors.append(invalid(f"{path}.matchLabels", text, "; ".join(faults)))
    for index, expression in enumerate(value.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        errors += _expression_faults(expression, at)
    return errors


def _expression_faults(expression: Mapping[str, Any], at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    else:
        errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
    if faults := label_key_faults(expression.get("key", "")):
        errors.append(invalid(f"{at}.key", expression.get("key", ""), "; ".join(faults)))
    for index, text in enumerate(values):
        if faults := label_value_faults(text):
            errors.append(invalid(f"{at}.values[{index}]", text, "; ".join(faults)))
    return errors


_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


def _unescape(text: str) -> str:
    def literal(match: re.Match[str]) -> str:
        if match[2]:
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(match[2])}")
        if match[1] not in ("\\", ",", "="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: \\{match[1]}")
        return match[1]

    return _ESCAPED.sub(literal, text)


@lru_cache(maxsize=512)
def parse_field_selector(text: str) -> FieldSelector:
    """Parse the `fieldSelector` of a query, e.g. `metadata.name=a,status.phase!=Failed`; commas may be escaped."""
    terms: list[FieldTerm] = []
    for part in sorted(_split_terms(text)):
        match = re.search(r"!=|==|=", part)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        term = FieldTerm(part[: match.start()], match[0] != "!=", _unescape(part[match.end() :]))
        if term.field or term.value:
            terms.append(term)
    return FieldSelector(tuple(terms))


def _split_terms(text: str) -> Sequence[str]:
    return [part for part in re.findall(r"(?:[^,\\]|\\.?)+", text, re.DOTALL) if part]


__all__ = [
    "FieldSelector",
    "FieldTerm",
    "LabelSelector",
    "Requirement",
    "SelectorError",
    "label_selector_faults",
    "parse_field_selector",
    "parse_label_selector",
    "selector_of",
]
