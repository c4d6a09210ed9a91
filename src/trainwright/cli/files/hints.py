"""Hints: what to do about a validation error, in one sentence.

The API server's message says what is wrong; a hint says what to do. In: a field error and its context. Out: a sentence,
or nothing if the message says enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from trainwright.schema.errors import ErrorType, FieldError
from trainwright.schema.structural import StructuralSchema

_HINTS: tuple[tuple[str, str], ...] = (
    ("field is immutable", "create a new TrainJob with the change: this field is fixed once the TrainJob exists"),
    ("some validation rules were not checked", "fix the errors above first; more may follow"),
    ("must match RFC 1035 DNS label format", "use lower-case letters, digits and '-', beginning with a letter"),
    ("must not have reserved envs", "remove these variables: the framework's plugin sets them from the TrainJob"),
    ("is reserved for the XGBoost runtime", "remove this variable: the XGBoost plugin sets it from the TrainJob"),
    ("must not have envs for the", "set the variables in spec.trainer.env or spec.initializer instead"),
    ("can only be modified when the TrainJob is suspended", "set spec.suspend: true in the same update, or before it"),
    ("is still active", "wait until the suspended JobSet's pods are gone"),
    ("must be a domain-prefixed path", "name the manager after a domain of yours, such as example.com/me"),
    ("Only one of the policy can be configured", "keep one of torch, mpi, jax, xgboost and flux"),
    ("must be a valid URI", "write it as scheme://path, such as hf://owner/name or s3://bucket/key"),
    ("always must be 1", "leave replicas out: nodes are counted by numNodes, not by replicas"),
    ("must have volumeMount with name - initializer", "mount a volume named initializer in that container"),
    ("job when trainJob is configured with input", "remove it from spec.initializer, or use a runtime with that job"),
    ("must have a supported pretrained model", "use one of the torchtune-… runtimes, named family and size"),
    ("is managed by the runtime", "remove this argument; the runtime knows where its volumes are"),
    ("doesn't exist in the runtime job", "name only jobs and containers that the runtime's template has"),
    ("not found in runtime template", "let envInjection name a container that the runtime's template has"),
    ("does not have either launcher and node", "add the missing replicatedJob to the runtime, or set numNodes: 1"),
    ("PriorityClass", "add the PriorityClass to the files, or name one that exists"),
)
_NOT_FOUND = re.compile(r'Runtime\.trainer\.kubeflow\.org "(.*)" not found')


def hint(error: FieldError, runtime_names: Callable[[], Iterable[str]]) -> str:
    """The hint for an error. `runtime_names` are the runtimes that a TrainJob could name."""
    if missing := _NOT_FOUND.search(error.detail):
        names = sorted(runtime_names())
        if missing[1] in names:
            return "fix the runtime first: it is refused too"
        near = get_close_matches(missing[1], names, 1)
        return f'did you mean "{near[0]}"?' if near else f"available runtimes: {', '.join(names)}"
    for phrase, advice in _HINTS:
        if phrase in error.detail:
            return advice
    if error.type is ErrorType.REQUIRED:
        return f"add {error.field}"
    if error.type is ErrorType.DUPLICATE:
        return "keep one of the entries"
    return ""


def near_field(schema: StructuralSchema, path: str) -> str:
    """The known field that is most similar to an unknown one."""
    node: StructuralSchema | None = schema
    *parents, last = re.findall(r"[^.\[\]]+|\[[^\]]*\]", path)
    for step in parents:
        if node is None:
            return ""
        node = node.items if step.startswith("[") else node.member(step)
    near = get_close_matches(last, list(node.field_names), 1) if node is not None else []
    return f'did you mean "{near[0]}"?' if near else "remove it, or check its place and its spelling"
