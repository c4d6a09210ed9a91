"""The requests of a scenario, with earlier answers filled in.

`{{ns}}`, `{{run}}`, `{{rv.ID}}`, `{{uid.ID}}`, `{{name.ID}}`, `{{val.ID/path}}`, `{{header.ID/Name}}` and
`{{repeat N text}}` stand for values that only this run knows.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import re
import urllib.parse
from typing import Any

from apicorpus.connection import Headers
from apicorpus.paths import MISSING, assign, lookup, remove

Json = dict[str, Any]
OF_AN_ANSWER = {"rv": "metadata/resourceVersion", "uid": "metadata/uid", "name": "metadata/name"}


class Conversation:
    """What one run of a scenario has been answered so far."""

    def __init__(self) -> None:
        self.run = "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=8))
        self._answers: dict[str, Any] = {}
        self._headers: dict[str, str] = {}

    def remember(self, step: str, headers: Headers, body: Any) -> None:
        """Keep an answer under the step's id, for later requests."""
        self._headers.update({f"{step}/{name}": value for name, value in headers.items()})
        if isinstance(body, dict):
            self._answers[step] = body

    def filled(self, value: Any) -> Any:
        """A value with its placeholders replaced."""
        if isinstance(value, str):
            return re.sub(r"\{\{([^}]+)\}\}", lambda found: self._value(found[1].strip()), value)
        if isinstance(value, dict):
            return {self.filled(key): self.filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        return value

    def _value(self, name: str) -> str:
        if name == "run":
            return self.run
        if re.fullmatch(r"ns\d?", name):
            return f"{name}-{self.run}"
        if name.startswith("repeat "):
            _, times, text = name.split(" ", 2)
            return text * int(times)
        kind, _, reference = name.partition(".")
        if kind == "header":
            return self._headers.get(reference, f"missing-{reference}")
        step, _, path = reference.partition("/")
        answer = self._answers.get(step)
        value = MISSING if answer is None else lookup(answer, OF_AN_ANSWER.get(kind, path))
        return f"missing-{step}" if value == MISSING else str(value)

    def path(self, step: Json) -> str:
        """The path of a step's request, with its query."""
        path: str = self.filled(step["path"])
        pairs = [
            (name, self.filled(str(value).lower() if isinstance(value, bool) else str(value)))
            for name, values in (step.get("query") or {}).items()
            for value in (values if isinstance(values, list) else [values])
        ]
        return f"{path}?{urllib.parse.urlencode(pairs)}" if pairs else path

    def payload(self, step: Json) -> bytes | None:
        """The body of a step's request, if it has one."""
        if "raw" in step:
            raw: str = self.filled(step["raw"])
            return raw.encode()
        if "raw_b64" in step:
            return base64.b64decode(step["raw_b64"])
        if "body_from" in step:
            source = step["body_from"]
            document = copy.deepcopy(self._answers.get(source["step"]) or {})
            for path in source.get("unset", []):
                remove(document, path)
            for path, value in source.get("set", {}).items():
                assign(document, path, self.filled(value))
            return json.dumps(document).encode()
        return json.dumps(self.filled(step["body"])).encode() if "body" in step else None

    def headers(self, step: Json) -> dict[str, str]:
        """The headers that the step asks for by itself."""
        headers: dict[str, str] = self.filled(step.get("headers") or {})
        return headers
