"""A JobSet's conditions, with the reasons and messages of JobSet itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.api.events import EventType
from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json

RESTARTING = "RestartingJobSet"

_EXCLUSIVE = frozenset({"StartupPolicyInProgress", "StartupPolicyCompleted"})


@dataclass(slots=True)
class Conditions:
    """The conditions to store, and an event for each change, to be written after the status."""

    now: float
    items: list[Json]
    events: list[tuple[EventType, str, str]] = field(default_factory=list)

    def is_true(self, type: str) -> bool:
        return any(item.get("type") == type and item.get("status") == "True" for item in self.items)

    def set(self, type: str, *, true: bool, reason: str, message: str, warning: bool = False) -> None:
        """Sets a condition. One that was never true is not written as false. An exclusive one turns the other false."""
        status = "True" if true else "False"
        wanted = {"type": type, "status": status, "reason": reason, "message": message}
        changed = False
        found = False
        for position, item in enumerate(self.items):
            if item.get("type") == type:
                found = True
                if {key: item.get(key) for key in wanted} != wanted:
                    turned = item.get("status") != status
                    at = rfc3339(self.now) if turned else item.get("lastTransitionTime", rfc3339(self.now))
                    self.items[position] = {**wanted, "lastTransitionTime": at}
                    changed = True
            elif true and {type, item.get("type")} == _EXCLUSIVE and item.get("status") == "True":
                self.items[position] = {**item, "status": "False"}
                changed = True
        if not found and true:
            self.items.append({**wanted, "lastTransitionTime": rfc3339(self.now)})
            changed = True
        if changed:
            self.events.append(("Warning" if warning else "Normal", reason, message))

    def complete(self) -> None:
        message = "jobset completed successfully"
        self.set("Completed", true=True, reason="AllJobsCompleted", message=message)
        self.set(RESTARTING, true=False, reason="JobSetCompleted", message=message)

    def fail(self, reason: str, message: str) -> None:
        self.set("Failed", true=True, reason=reason, message=message, warning=True)
        self.set(RESTARTING, true=False, reason="JobSetFailed", message="jobset failed")

    def suspend(self) -> None:
        self.set("Suspended", true=True, reason="SuspendedJobs", message="jobset is suspended")
        self.set(RESTARTING, true=False, reason="JobSetSuspended", message="jobset is suspended")

    def resume(self) -> None:
        self.set("Suspended", true=False, reason="ResumeJobs", message="jobset is resumed")

    def start_in_order(self) -> None:
        reason = "InOrderStartupPolicyInProgress"
        message = "in order startup policy is in progress"
        self.set("StartupPolicyInProgress", true=True, reason=reason, message=message)

    def started_in_order(self) -> None:
        reason = "InOrderStartupPolicyCompleted"
        message = "in order startup policy has completed"
        self.set("StartupPolicyCompleted", true=True, reason=reason, message=message)
