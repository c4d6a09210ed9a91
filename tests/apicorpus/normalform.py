"""Documents in one order, and taken apart into what is judged separately.

The server may order entries of managedFields, causes of an error and API resources as it likes, so both sides are
sorted before they are compared. managedFields and the texts of a failure are facets of their own.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

WHOLE_OBJECT = re.compile(r'(?s)(Invalid value: )"\{\\".*\}"(: )')
"""Some messages quote the whole patched object, which is not worth comparing."""


def normal_form(document: Any) -> Any:
    """A copy of the document with every list sorted whose order means nothing."""
    if isinstance(document, list):
        return [normal_form(value) for value in document]
    if not isinstance(document, dict):
        return document
    out = {key: normal_form(value) for key, value in document.items()}
    kind = out.get("kind")
    if kind == "Table" and isinstance(out.get("columnDefinitions"), list):
        out["columnDefinitions"] = [_without_description(column) for column in out["columnDefinitions"]]
    if kind == "APIResourceList" and isinstance(out.get("resources"), list):
        out["resources"].sort(key=lambda item: str(item.get("name")) if isinstance(item, dict) else "")
    if isinstance(out.get("managedFields"), list):
        out["managedFields"] = sorted(out["managedFields"], key=_manager)
    details = out.get("details")
    if kind == "Status" and isinstance(details, dict) and isinstance(details.get("causes"), list):
        _sort_causes(out, details["causes"])
    return out


def _without_description(column: Any) -> Any:
    return {k: v for k, v in column.items() if k != "description"} if isinstance(column, dict) else column


def _manager(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    names = ("operation", "manager", "apiVersion", "subresource", "fieldsV1")
    return json.dumps([entry.get(name) for name in names], sort_keys=True)


def _sort_causes(status: dict[str, Any], causes: list[Any]) -> None:
    """Sort the causes, and the same list where the message repeats it: `… is invalid: [cause, cause]`."""
    causes.sort(
        key=lambda cause: (
            json.dumps([cause.get(name) for name in ("field", "message", "reason")]) if isinstance(cause, dict) else ""
        )
    )
    for text in (*causes, status):
        if isinstance(text, dict) and isinstance(text.get("message"), str):
            text["message"] = WHOLE_OBJECT.sub(r'\1"<object>"\2', text["message"])
    message = status.get("message")
    if not isinstance(message, str) or len(causes) < 2 or not all(isinstance(cause, dict) for cause in causes):
        return
    parts = sorted(
        {f"{c.get('field')}: {c.get('message')}" if c.get("field") else str(c.get("message")) for c in causes}
    )
    rest = message
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "\0", 1)
    listed = re.fullmatch(r"(?s)(.*)\[\0(, \0)*\]", rest)
    if listed and rest.count("\0") == len(parts):
        status["message"] = f"{listed[1]}[{', '.join(parts)}]"


def split_managed_fields(document: Any, path: str = "") -> tuple[Any, dict[str, Any]]:
    """The document without managedFields, and every managedFields by its path."""
    found: dict[str, Any] = {}

    def part(value: Any, where: str) -> Any:
        rest, below = split_managed_fields(value, where)
        found.update(below)
        return rest

    if isinstance(document, dict):
        out = {}
        for key, value in document.items():
            if key == "managedFields" and isinstance(value, list):
                found[f"{path}/managedFields"] = value
            else:
                out[key] = part(value, f"{path}/{key}")
        return out, found
    if isinstance(document, list):
        return [part(value, f"{path}/{index}") for index, value in enumerate(document)], found
    return document, found


def split_message(document: Any) -> tuple[Any, dict[str, Any] | None]:
    """A failure Status without the texts for people, and these texts; None for any other document."""
    if not (isinstance(document, dict) and document.get("kind") == "Status" and document.get("status") == "Failure"):
        return document, None
    document = copy.deepcopy(document)
    texts: dict[str, Any] = {"message": document.pop("message", None)}
    details = document.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list):
        texts["causes"] = [cause.pop("message", None) if isinstance(cause, dict) else None for cause in causes]
    return document, texts
