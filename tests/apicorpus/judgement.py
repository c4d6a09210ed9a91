"""What counts how much: the answer to a step is judged in facets, each with a priority.

`core` is the status, the body and the events; the texts of a failure, managedFields, warnings and the content type are
facets of their own. A difference counts with the lower of the step's and the facet's priority.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from apicorpus.normalform import normal_form, split_managed_fields, split_message
from apicorpus.paths import lookup
from apicorpus.placeholders import Matcher, brief

Json = dict[str, Any]
PRIORITIES = ["must", "should", "could"]
FACETS = {"core": "must", "message": "must", "managedFields": "should", "warning": "should", "contentType": "must"}
"""A facet never weighs more than this, unless the scenario says otherwise with `facets: {managedFields: must}`."""


@dataclass
class Result:
    """One step: the differences by facet, or why it was skipped."""

    scenario: str
    step: int
    priority: str
    desc: str = ""
    request: str = ""
    id: str | None = None
    message_priority: str = "must"
    facets: dict[str, list[str]] = field(default_factory=dict)
    skip: str | None = None

    def verdict(self, facets: dict[str, str]) -> tuple[str | None, list[str]]:
        """The highest priority that was missed, if any, and all differences."""
        missed: list[int] = []
        differences: list[str] = []
        for facet, found in self.facets.items():
            if found:
                weight = self.message_priority if facet == "message" else facets.get(facet, "must")
                rank = max(PRIORITIES.index(self.priority), PRIORITIES.index(weight))
                missed.append(rank)
                differences += [f"[{facet}/{PRIORITIES[rank]}] {difference}" for difference in found]
        return (PRIORITIES[min(missed)] if missed else None), differences

    def as_json(self, **more: Any) -> Json:
        """For `--json`."""
        return {**{name: value for name, value in asdict(self).items() if value is not None}, **more}


def facets_of(scenario: Json) -> dict[str, str]:
    """The priorities of the facets in this scenario."""
    return {**FACETS, **(scenario.get("facets") or {})}


def priority_of(scenario: Json, step: Json) -> str:
    return str(step.get("priority") or scenario.get("priority") or "should")


def compare(expected: Json | None, got: Json, matcher: Matcher) -> dict[str, list[str]]:
    """The differences between an expectation and an answer, for each facet that was checked."""
    facets: dict[str, list[str]] = {"core": []}
    core = facets["core"]
    if expected is None:
        return facets
    if expected["status"] != got["status"]:
        failed = isinstance(got.get("body"), dict) and got["status"] >= 400
        words = f" ({brief(lookup(got['body'], 'message'), 300)})" if failed else ""
        core.append(f"status: expected {expected['status']}, got {got['status']}{words}")
    _compare_headers(expected.get("headers") or {}, got, matcher, facets)
    if "end" in expected and expected["end"] != got.get("end"):
        core.append(f"watch end: expected {expected['end']!r}, got {got.get('end')!r}")
    for name in ("extract", "body", "events"):
        if name in expected:
            _compare_part(name, expected, got, matcher, facets)
    return facets


def _compare_headers(expected: Json, got: Json, matcher: Matcher, facets: dict[str, list[str]]) -> None:
    if "Content-Type" in expected:
        wanted, found = expected["Content-Type"], got.get("contentType")
        same = _media_type(wanted) == _media_type(found or "")
        facets["contentType"] = [] if same else [f"Content-Type: expected {wanted!r}, got {found!r}"]
    if expected.get("Warning") or got.get("warning"):
        facets["warning"] = []
        matcher.match(expected.get("Warning") or [], got.get("warning") or [], "Warning", facets["warning"])
    for name, value in expected.items():
        if name not in ("Content-Type", "Warning"):
            matcher.match(value, (got.get("headers") or {}).get(name), f"header {name}", facets["core"])


def _media_type(value: str) -> list[str]:
    """A media type without its charset, its parameters sorted."""
    kind, *parameters = [part.strip() for part in value.split(";")]
    return [kind.lower(), *sorted(p for p in parameters if not p.lower().startswith("charset"))]


def _compare_part(name: str, expected: Json, got: Json, matcher: Matcher, facets: dict[str, list[str]]) -> None:
    if name not in got:
        instead = f" but body {brief(got['body'])}" if "body" in got else ""
        facets["core"].append(f"{name}: expected {brief(expected[name])}, got nothing{instead}")
        return
    wanted, wanted_fields = split_managed_fields(normal_form(expected[name]))
    found, found_fields = split_managed_fields(got[name])
    if name == "body":
        (wanted, wanted_text), (found, found_text) = split_message(wanted), split_message(found)
        if wanted_text is not None:
            facets["message"] = []
            matcher.match(wanted_text, found_text, "", facets["message"])
    matcher.match(wanted, found, "" if name == "body" else name, facets["core"])
    if wanted_fields or found_fields:
        matcher.match(wanted_fields, found_fields, "", facets.setdefault("managedFields", []))


class Invariants:
    """What holds for every answer of a scenario: creation times stay, and no list is older than its items."""

    def __init__(self) -> None:
        self._born: dict[str, str] = {}

    def check(self, document: Any, out: list[str]) -> None:
        """Add a sentence to `out` for each one that is broken in a document."""
        if isinstance(document, list):
            for value in document:
                self.check(value, out)
        if not isinstance(document, dict):
            return
        metadata = document.get("metadata")
        if isinstance(metadata, dict):
            # A TokenRequest carries the uid of its service account, but its own creation time.
            if document.get("kind") != "TokenRequest":
                self._check_creation(metadata, out)
            _check_versions(metadata.get("resourceVersion"), document.get("items"), out)
        for value in document.values():
            self.check(value, out)

    def _check_creation(self, metadata: Json, out: list[str]) -> None:
        uid, created = metadata.get("uid"), metadata.get("creationTimestamp")
        if isinstance(uid, str) and isinstance(created, str):
            before = self._born.setdefault(uid, created)
            if before != created:
                out.append(f"creationTimestamp of {metadata.get('name')} changed from {before} to {created}")


def _check_versions(version: Any, items: Any, out: list[str]) -> None:
    if not (isinstance(items, list) and isinstance(version, str) and version.isdigit()):
        return
    for item in items:
        newer = lookup(item, "metadata/resourceVersion")
        if isinstance(newer, str) and newer.isdigit() and int(newer) > int(version):
            out.append(f"list resourceVersion {version} is older than item resourceVersion {newer}")
