"""A restart is announced once, with what failed before it."""

from __future__ import annotations

from trainwright.cli.run.attempts import Attempts
from trainwright.schema.jsonobject import Json


def jobset(restarts: int | None, most: int | None = 2) -> Json:
    spec: Json = {} if most is None else {"failurePolicy": {"maxRestarts": most}}
    return {"spec": spec, "status": {} if restarts is None else {"restarts": restarts}}


def pod(code: int | None) -> Json:
    state: Json = {"running": {}} if code is None else {"terminated": {"exitCode": code, "reason": "Error"}}
    labels = {
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": "1",
    }
    return {
        "metadata": {"name": "x-node-0-1-abcde", "labels": labels},
        "status": {"containerStatuses": [{"name": "node", "state": state}]},
    }


def test_a_restart_says_what_failed_and_which_attempt_begins() -> None:
    attempts = Attempts()
    assert attempts.restarted(None, []) is None
    assert attempts.restarted(jobset(None), [pod(None)]) is None
    assert attempts.restarted(jobset(0), [pod(3)]) is None
    assert attempts.restarted(jobset(1), []) == "rank 1 ended with exit code 3; starting again: attempt 2 of 3"
    assert attempts.restarted(jobset(1), [pod(None)]) is None
    assert attempts.restarted(jobset(2), [pod(None)]) == "starting again: attempt 3 of 3", "nobody saw what failed"


def test_without_a_limit_there_is_no_of() -> None:
    assert Attempts().restarted(jobset(1, None), []) == "starting again: attempt 2"
