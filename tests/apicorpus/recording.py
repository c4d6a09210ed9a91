"""Turns the answers of a real server into expectations: values that change from run to run become placeholders."""

from __future__ import annotations

import copy
import re
from typing import Any

from apicorpus.paths import MISSING, assign, lookup
from apicorpus.placeholders import AGE, FORMS, MICROTIME, TIME, is_near_now

Json = dict[str, Any]
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
AGE_COLUMNS = ("Age", "Last Seen", "First Seen", "Duration")
FORGOTTEN = [
    (re.compile(r"(too old resource version: )\d+ \(\d+\)"), r"\1{{int}} ({{int}})"),
    (re.compile(r"(Too large resource version: )\d+, current: \d+"), r"\1{{int}}, current: {{int}}"),
    (re.compile(r"hash=[0-9A-Fa-f]{20,}"), "hash={{hash}}"),
]
"""Texts in which only the form counts."""


class Recorder:
    """The placeholders given to the values of one scenario."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._known: dict[str, dict[str, str]] = {"rv": {}, "uid": {}, "gen": {}, "ip": {}}
        self._generated: dict[str, tuple[str, str]] = {}
        self._columns: list[Json] = []

    def expectation(self, step: Json, got: Json) -> Json:
        """The `expect` of a step that was answered so."""
        parts = [name for name in ("extract", "body", "events") if name in got]
        for name in parts:
            self._note_generated(got[name])
        expected: Json = {"status": got["status"]}
        headers = dict(got.get("headers") or {})
        if got.get("contentType"):
            headers["Content-Type"] = got["contentType"]
        if got.get("warning"):
            headers["Warning"] = got["warning"]
        if headers:
            expected["headers"] = {name: self._document(value) for name, value in headers.items()}
        expected.update({name: self._document(got[name]) for name in parts})
        if "end" in got:
            expected["end"] = got["end"]
        root = expected.get("body", expected.get("extract"))
        for path in step.get("any") or []:
            if lookup(root, path) != MISSING:
                assign(root, path, "{{any}}")
        return expected

    def _symbol(self, kind: str, value: str) -> str:
        known = self._known[kind]
        return known.setdefault(value, f"{{{{{kind}:{len(known) + 1}}}}}")

    def _note_generated(self, document: Any) -> None:
        """Remember the names that the server made from a generateName."""
        if isinstance(document, list):
            for value in document:
                self._note_generated(value)
        if not isinstance(document, dict):
            return
        metadata = document.get("metadata")
        if isinstance(metadata, dict):
            prefix, name = metadata.get("generateName"), metadata.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and name.startswith(prefix):
                self._generated[name] = (prefix, name[len(prefix) :])
        for value in document.values():
            self._note_generated(value)

    def _text(self, text: str) -> str:
        for name, (prefix, suffix) in self._generated.items():
            if name in text:
                text = text.replace(name, prefix + self._symbol("gen", suffix))
        text = text.replace(self._run, "{{run}}")
        text = re.sub(UUID, lambda found: self._symbol("uid", found[0]), text)
        text = _hide_present(MICROTIME, "{{microtime}}", text)
        text = _hide_present(TIME, "{{time}}", text)

        def version(found: re.Match[str]) -> str:
            return found[1] + (self._symbol("rv", found[2]) if int(found[2]) > 1 else found[2])

        text = re.sub(r"(ResourceVersion in (?:object meta|precondition): )(\d+)", version, text)
        text = re.sub(
            r"(ResourceVersion in (?:the precondition|record) \()(\d+)",
            lambda found: found[1] + self._symbol("rv", found[2]),
            text,
        )
        for forgotten, replacement in FORGOTTEN:
            text = forgotten.sub(replacement, text)
        return text

    def _document(self, value: Any, key: str = "", parent: Json | None = None) -> Any:
        if isinstance(value, dict):
            if value.get("kind") == "Table" and isinstance(value.get("rows"), list):
                value = self._without_ages(value)
            return {self._text(name): self._document(item, name, value) for name, item in value.items()}
        if isinstance(value, list):
            return [self._document(item, key, parent) for item in value]
        return self._leaf(value, key, parent) if isinstance(value, str) else value

    def _leaf(self, text: str, key: str, parent: Json | None) -> str:
        if key == "resourceVersion" and re.fullmatch(r"\d+", text) and text != "0":
            if parent is None or not ("uid" in parent or "name" in parent):
                return "{{rv}}"  # of a list or a bookmark
            return self._symbol("rv", text) if "creationTimestamp" in parent or text in self._known["rv"] else text
        if key == "continue" and text:
            return "{{token}}"
        if key in ("clusterIP", "clusterIPs") and re.fullmatch(FORMS["ip"], text):
            return self._symbol("ip", text)
        return {"serverAddress": "{{addr}}", "storageVersionHash": "{{hash}}"}.get(key) or self._text(text)

    def _without_ages(self, table: Json) -> Json:
        table = copy.deepcopy(table)
        self._columns = table.get("columnDefinitions") or self._columns  # only the first event of a watch has them
        for row in table["rows"]:
            for column, cell in zip(self._columns, list(enumerate(row.get("cells", []))), strict=False):
                is_age = column["name"] in AGE_COLUMNS or column["type"] == "date"
                if is_age and isinstance(cell[1], str) and re.fullmatch(AGE, cell[1]):
                    row["cells"][cell[0]] = "{{age}}"
        return table


def _hide_present(pattern: str, placeholder: str, text: str) -> str:
    """Replace the times near now; times that a scenario set itself stay."""
    return re.sub(pattern, lambda found: placeholder if is_near_now(found[0]) else found[0], text)
