"""Placeholders in recorded answers, and how an answer is matched against them.

`{{uid:1}}` binds a value for the whole scenario: equal numbers must be equal values, different numbers different ones.
`{{rv}}`, `{{time}}`, `{{age}}` and others without a number only ask for the right form.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
MICROTIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
AGE = r"(?:<unknown>|<invalid>|(?:\d+(?:y|d|h|m|s))+)"
PLACEHOLDER = re.compile(r"\{\{([a-z]+)(?::([^}]*))?\}\}")
FORMS = {
    "rv": r"[^\s\",)]+",
    "uid": r"[0-9A-Za-z-]+",
    "gen": r"[a-z0-9]{4,12}",
    "time": TIME,
    "microtime": MICROTIME,
    "age": AGE,
    "token": r"\S+",
    "hash": r"[0-9A-Za-z+/=_-]+",
    "int": r"\d+",
    "ip": r"\d+\.\d+\.\d+\.\d+",
    "addr": r"\S+",
    "any": r"(?s:.*)",
}
BINDING = ("rv", "uid", "gen", "ip")
HOURS_NEAR_NOW = 2


def is_near_now(text: str) -> bool:
    """Whether a timestamp lies within two hours of the present."""
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return abs(time - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(hours=HOURS_NEAR_NOW)


def brief(value: Any, length: int = 160) -> str:
    """A value as JSON, cut to a length."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else text[:length] + "…"


def contrast(expected: str, actual: str) -> str:
    """Two strings beside each other; long ones are cut around the first difference."""
    if len(expected) + len(actual) < 300:
        return f"expected {expected!r}, got {actual!r}"
    pairs = enumerate(zip(expected, actual, strict=False))
    first = next((index for index, (a, b) in pairs if a != b), min(len(expected), len(actual)))
    start = max(0, first - 40)

    def cut(text: str) -> str:
        return ("…" if start else "") + text[start : start + 160] + ("…" if len(text) > start + 160 else "")

    return f"expected {cut(expected)!r}, got {cut(actual)!r}"


class Matcher:
    """Holds answers against expectations, with the values bound so far in this scenario.

    The methods add a sentence to `out` for each difference.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._bound: dict[str, dict[str, str]] = {}

    def match(self, expected: Any, actual: Any, where: str, out: list[str]) -> None:
        """Compare two documents; JSON types count."""
        if expected == "{{any}}":
            return
        if isinstance(expected, str) and isinstance(actual, str):
            self._match_string(expected, actual, where, out)
        elif isinstance(expected, dict) and isinstance(actual, dict):
            self._match_object(expected, actual, where, out)
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                sizes = f"expected {len(expected)} elements, got {len(actual)}"
                out.append(f"{where}: {sizes}: expected {brief(expected)}, got {brief(actual)}")
            for index, (a, b) in enumerate(zip(expected, actual, strict=False)):
                self.match(a, b, f"{where}/{index}", out)
        elif type(expected) is not type(actual) or expected != actual:
            out.append(f"{where}: expected {brief(expected)}, got {brief(actual)}")

    def _match_object(self, expected: dict[str, Any], actual: dict[str, Any], where: str, out: list[str]) -> None:
        expected = {self._key(key): value for key, value in expected.items()}
        for key, value in expected.items():
            if key in actual:
                self.match(value, actual[key], f"{where}/{key}", out)
            else:
                out.append(f"{where}/{key}: missing, expected {brief(value)}")
        out += [f"{where}/{key}: unexpected, got {brief(actual[key])}" for key in actual if key not in expected]

    def _key(self, key: str) -> str:
        def value(found: re.Match[str]) -> str:
            name, number = found.groups()
            return self._run if name == "run" else self._bound.get(name, {}).get(number, found[0])

        return PLACEHOLDER.sub(value, key) if "{{" in key else key

    def _match_string(self, expected: str, actual: str, where: str, out: list[str]) -> None:
        if "{{" not in expected:
            if expected != actual:
                out.append(f"{where}: {contrast(expected, actual)}")
            return
        pattern, placeholders = self._pattern(expected)
        found = re.fullmatch(pattern, actual)
        if not found:
            out.append(f"{where}: {contrast(expected, actual)}")
            return
        for (name, number), value in zip(placeholders, found.groups(), strict=True):
            if name in ("time", "microtime") and not is_near_now(value):
                out.append(f"{where}: expected a timestamp near the present, got {value!r}")
            if number is not None and name in BINDING:
                self._bind(name, number, value, where, out)

    def _pattern(self, expected: str) -> tuple[str, list[tuple[str, str | None]]]:
        """A regular expression with a group for each placeholder, and these placeholders."""
        pattern, placeholders, position = "", [], 0
        for found in PLACEHOLDER.finditer(expected):
            name, number = found.groups()
            pattern += re.escape(expected[position : found.start()])
            position = found.end()
            if name in FORMS:
                pattern += f"({FORMS[name]})"
                placeholders.append((name, number))
            else:
                pattern += re.escape(self._run if name == "run" else found[0])
        return pattern + re.escape(expected[position:]), placeholders

    def _bind(self, name: str, number: str, value: str, where: str, out: list[str]) -> None:
        known = self._bound.setdefault(name, {})
        if number not in known and value in known.values():
            out.append(f"{where}: expected a {name} not seen before in this scenario, but {value} was already used")
        elif known.get(number, value) != value:
            out.append(f"{where}: expected the same {name} as seen before ({known[number]}), got {value}")
        known[number] = value
