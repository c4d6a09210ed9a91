"""What every command needs to know about an object: its name, its conditions, the name of a job's phase.

Apart from `sentences`, which explains phases with all of `pipeline.reasons`: `run` needs that only once its TrainJob is
created, and its user waits for every import before.
"""

from __future__ import annotations

from typing import NamedTuple

from trainwright.schema.jsonobject import Json


class Phase(NamedTuple):
    name: str
    """Pending, Running, Suspended, Complete or Failed: the words of `status.state`."""
    sentence: str

    @property
    def is_final(self) -> bool:
        return self.name in ("Complete", "Failed")


def name_of(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def condition(obj: Json, kind: str) -> Json | None:
    """The condition of this type, when it is True."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == kind and item["status"] == "True":
            return dict(item)
    return None
