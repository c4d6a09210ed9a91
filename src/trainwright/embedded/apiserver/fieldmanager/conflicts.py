"""Conflicts of a server-side apply, and the 409 that reports them as kubectl expects it."""

from __future__ import annotations

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.entries import Identity
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet


class Conflicts(Exception):
    """Other managers own fields that this apply would change."""

    def __init__(self, by_manager: dict[Identity, FieldSet]) -> None:
        super().__init__("apply conflicts")
        self.by_manager = by_manager

    def without(self, allowed: FieldSet) -> dict[Identity, FieldSet]:
        """The conflicts that remain when some fields may be taken."""
        left = {who: fieldset.difference(subset, allowed) for who, subset in self.by_manager.items()}
        return {who: subset for who, subset in left.items() if subset}


def conflict_status(by_manager: dict[Identity, FieldSet]) -> StatusError:
    found = {who: [fieldset.text(path) for path in fieldset.paths(by_manager[who])] for who in sorted(by_manager)}
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_shown(who)}", "field": path}
        for who, paths in found.items()
        for path in paths
    ]
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for who, paths in found.items():
            lines.append(f"conflicts with {_shown(who)}:")
            lines += [f"- {path}" for path in paths]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return StatusError(409, text, details={"causes": causes})


def _shown(who: Identity) -> str:
    text = f'"{who.manager}"'
    if who.subresource:
        text += f' with subresource "{who.subresource}"'
    return text + (f" using {who.version}" if who.operation == "Update" else "")
