"""What admission changes in a TrainJob before it is judged.

Three things only. Each runtime patch carries the time it was last changed. `numProcPerNode` written as text, as older
generations do, becomes a number where it is one, and moves to an annotation where it is a word, since clients cannot
read text back. And an update by a client that knows only `podTemplateOverrides`, such as Kueue 0.15, keeps the
`runtimePatches` that this client erases without knowing them. In: the object as sent, the stored one, the time as text.
Out: a new object when there is something to change, else the same.
"""

from __future__ import annotations

from trainwright.pipeline.info import NUM_PROC_PER_NODE_ANNOTATION
from trainwright.pipeline.sparse import sparse
from trainwright.schema.jsonobject import Json

WORDS = ("auto", "cpu", "gpu")
PATCHES_KEPT = (
    "spec.runtimePatches: kept. The update changes podTemplateOverrides and has no runtimePatches, as of a client that "
    "does not know them; to remove them, send an update that changes nothing else"
)


def mutate(new: Json, old: Json | None, now: str) -> Json:
    """The TrainJob as it is to be stored; `new` itself is not changed."""
    return _with_processes(_with_times(_with_patches(new, old), old, now))


def loses_patches(new: Json, old: Json | None) -> bool:
    """Whether an update would erase all runtimePatches while it changes podTemplateOverrides."""
    before, after = _spec(old), _spec(new)
    if not before.get("runtimePatches") or after.get("runtimePatches"):
        return False
    return (before.get("podTemplateOverrides") or []) != (after.get("podTemplateOverrides") or [])


def _with_patches(new: Json, old: Json | None) -> Json:
    if not loses_patches(new, old):
        return new
    return {**new, "spec": {**_spec(new), "runtimePatches": _spec(old)["runtimePatches"]}}


def _spec(job: Json | None) -> Json:
    spec = (job or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _with_times(new: Json, old: Json | None, now: str) -> Json:
    spec = new.get("spec")
    patches = spec.get("runtimePatches") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(patches, list):
        return new
    if not all(isinstance(patch, dict) and isinstance(patch.get("manager"), str) for patch in patches):
        return new  # the schema says what is wrong with it
    before = {patch.get("manager"): patch for patch in ((old or {}).get("spec") or {}).get("runtimePatches") or ()}
    timed = [_with_time(patch, before.get(patch.get("manager")), now) for patch in patches]
    return new if timed == patches else {**new, "spec": {**spec, "runtimePatches": timed}}


def _with_time(patch: Json, before: Json | None, now: str) -> Json:
    if before is None:
        return patch if patch.get("time") else {**patch, "time": now}
    if _content(patch) != _content(before):
        return {**patch, "time": now}
    kept = {"time": before["time"]} if before.get("time") else {}
    return {**{key: value for key, value in patch.items() if key != "time"}, **kept}


def _content(patch: Json) -> Json:
    """A patch without its time, such that two spellings of one patch are equal."""
    return {key: value for key, value in sparse(patch, "trainer.RuntimePatch").items() if key != "time"}


def _with_processes(new: Json) -> Json:
    spec = new.get("spec")
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    value = trainer.get("numProcPerNode") if isinstance(trainer, dict) else None
    if not isinstance(spec, dict) or not isinstance(trainer, dict) or not isinstance(value, str):
        return new
    if value.isdecimal():
        return {**new, "spec": {**spec, "trainer": {**trainer, "numProcPerNode": int(value)}}}
    if value not in WORDS:
        return new  # validation says what is wrong with it
    without = {key: item for key, item in trainer.items() if key != "numProcPerNode"}
    metadata = new.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), NUM_PROC_PER_NODE_ANNOTATION: value}
    return {**new, "metadata": {**metadata, "annotations": annotations}, "spec": {**spec, "trainer": without}}
