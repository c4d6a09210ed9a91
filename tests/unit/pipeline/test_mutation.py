"""The mutating webhook dates patches and turns numbers written as text into numbers."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.pipeline.mutation import loses_patches, mutate

NOW, EARLIER, SENT = "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
ANNOTATION = "trainer.kubeflow.org/num-proc-per-node"


def job(*patches: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"runtimePatches": list(patches)}}


def patch(time: str | None = None, manager: str = "a.io/x", **content: Any) -> dict[str, Any]:
    return {"manager": manager, **({"time": time} if time else {}), "trainingRuntimeSpec": content}


def times(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [item["time"] for item in mutate(new, old, NOW)["spec"]["runtimePatches"]]


def test_a_new_patch_gets_the_time_unless_it_brings_one() -> None:
    assert times(job(patch(), patch(SENT, "a.io/y"))) == [NOW, SENT]


def test_an_unchanged_patch_keeps_its_time_whatever_is_sent() -> None:
    assert times(job(patch(SENT)), job(patch(EARLIER))) == [EARLIER]
    assert times(job(patch()), job(patch(EARLIER))) == [EARLIER]
    assert mutate(job(patch(SENT)), job(patch()), NOW) == job(patch())


def test_another_spelling_of_a_patch_is_no_change() -> None:
    def labelled(**job: Any) -> dict[str, Any]:
        jobs = [{"name": "node", **job}]
        return patch(EARLIER, template={"spec": {"replicatedJobs": jobs}})

    old = labelled(template={"metadata": {"labels": {"a": "b"}}})
    same = labelled(template={"metadata": {"labels": {"a": "b"}, "annotations": {}, "finalizers": []}})
    other = labelled(template={"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert times(job(same), job(old)) == [EARLIER]
    assert times(job(other), job(old)) == [NOW]


def test_a_changed_patch_gets_the_time_whatever_is_sent() -> None:
    assert times(job(patch(SENT, a=1)), job(patch(EARLIER, a=2))) == [NOW]


def overridden(*patches: dict[str, Any], overrides: list[Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"podTemplateOverrides": overrides} if overrides is not None else {}
    return {"metadata": {"name": "x"}, "spec": {**spec, **({"runtimePatches": list(patches)} if patches else {})}}


def test_a_client_that_knows_only_pod_template_overrides_does_not_erase_patches() -> None:
    stored, sent = overridden(patch(EARLIER, a=1)), overridden(overrides=[{"targetJobs": [{"name": "node"}]}])
    assert loses_patches(sent, stored)
    kept = mutate(sent, stored, NOW)["spec"]
    assert kept["runtimePatches"] == [patch(EARLIER, a=1)]
    assert kept["podTemplateOverrides"] == sent["spec"]["podTemplateOverrides"]


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        (overridden(patch(EARLIER)), overridden()),  # the user takes them back, and changes nothing else
        (overridden(patch(EARLIER)), overridden(patch(EARLIER, "a.io/y"), overrides=[{}])),  # he knows them
        (overridden(), overridden(overrides=[{}])),
        (None, overridden(overrides=[{}])),
    ],
)
def test_whoever_means_it_may_remove_patches(stored: dict[str, Any] | None, sent: dict[str, Any]) -> None:
    assert not loses_patches(sent, stored)


def test_the_object_sent_is_not_changed() -> None:
    sent = job(patch())
    mutate(sent, None, NOW)
    assert sent == job(patch())


def processes(value: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"trainer": {"numProcPerNode": value}}}


def test_a_number_written_as_text_becomes_a_number() -> None:
    assert mutate(processes("4"), None, NOW) == processes(4)


@pytest.mark.parametrize("word", ["auto", "cpu", "gpu"])
def test_a_word_moves_to_an_annotation(word: str) -> None:
    stored = mutate(processes(word), None, NOW)
    assert stored["spec"] == {"trainer": {}}
    assert stored["metadata"]["annotations"] == {ANNOTATION: word}


@pytest.mark.parametrize("value", [3, "many", None])
def test_anything_else_stays_for_validation_to_judge(value: Any) -> None:
    sent = processes(value)
    assert mutate(sent, None, NOW) is sent


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": {"runtimePatches": "x"}},
        {"spec": {"trainer": 1}},
        {"spec": {"runtimePatches": [{"manager": []}]}},
    ],
)
def test_what_cannot_be_read_is_left_alone(odd: dict[str, Any]) -> None:
    assert mutate(odd, None, NOW) is odd
