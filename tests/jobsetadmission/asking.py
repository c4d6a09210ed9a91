"""Asks an API server about JobSets: each case in a namespace of its own, with the answers as they can be compared.

What carries no meaning is masked: the JSON of a value that a message quotes whole (Go writes fields in the order of its
structs, we by name), empty objects in a stored spec (JobSet's mutating webhook writes `metadata: {}` and the like where
the user wrote nothing), and the namespace.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from jobsetadmission.cases import Case
from trainwright.schema.jsonobject import Json

JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
_QUOTED = re.compile(
    r"Invalid value: [\[{].*?(?=: (?:field is immutable|replicatedJob containers|spec does not match))"
)


class Server(Protocol):
    def raw(self, method: str, path: str, body: Any = None) -> tuple[int, Any]: ...


def ask(server: Server, case: Case) -> Json:
    """The answers to the case: codes, messages, and the spec as it is stored."""
    namespace = f"case-{case.name}"[:63].rstrip("-")
    code, _ = server.raw("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert code == 201, (namespace, code)
    if case.claim is not None:
        code, answer = server.raw("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", case.claim)
        assert code == 201, answer
    path = JOB_SETS.format(namespace)
    code, answer = server.raw("POST", path, case.job_set)
    answers: Json = {"create": _compared(code, answer, namespace)}
    if case.patch is not None and code == 201:
        code, answer = server.raw("PATCH", f"{path}/{case.job_set['metadata']['name']}", case.patch)
        answers["patch"] = _compared(code, answer, namespace)
    return answers


def _compared(code: int, answer: Json, namespace: str) -> Json:
    if code in (200, 201):
        return {"code": code, "spec": _without_empty(answer["spec"])}
    message = _QUOTED.sub("Invalid value: …", answer.get("message", "")).replace(namespace, "<namespace>")
    return {"code": code, "message": message, "reason": answer.get("reason", "")}


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        members = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item != {}}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
