"""Run the steps in order, keep the output of each, and compare the outputs of two servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from kubectl.kubectl import Kubectl, Result
from kubectl.steps import Step

Transcript = dict[str, Result]

# What two servers, or two runs on one, rightly answer differently.
_MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"https://127\.0\.0\.1:\d+", "<server>"),
    (r'resourceVersion: "\d+"', 'resourceVersion: "<version>"'),
    (r'"resourceVersion": "\d+"', '"resourceVersion": "<version>"'),
    (r"(Resource Version:\s+)\d+", r"\1<version>"),
    (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\b\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d \+0000", "<time>"),
    (r"\S*/(LIVE|MERGED)-\S+", "<file>"),
    (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "<time>"),
    (r"\b(\d+[dhms])+( ago)?\b|<invalid>", "<age>"),
    (r"[ \t]+", " "),
)


def run(kubectl: Kubectl, steps: Iterable[Step]) -> Transcript:
    said: Transcript = {}
    for step in steps:
        if step.until:
            said[step.id] = kubectl.until(step.argv, step.until, step.during, seconds=2 if step.code else 20)
        else:
            said[step.id] = kubectl(*step.argv, stdin=step.stdin)
    return said


def masked(text: str) -> str:
    try:
        text = json.dumps(json.loads(text), indent=1, sort_keys=True)  # the order of keys is no answer
    except ValueError:
        pass
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text


def wrong(step: Step, result: Result) -> str:
    """What is wrong with the result of a step, or an empty string."""
    told = f"$ kubectl {' '.join(step.argv)}\n{result.text}"
    if result.code != step.code:
        return f"exit code {result.code}, not {step.code}:\n{told}"
    missing = [pattern for pattern in step.shows if not re.search(pattern, result.text, re.MULTILINE | re.DOTALL)]
    return f"does not show {missing}:\n{told}" if missing else ""


def difference(step: Step, ours: Result, real: Result) -> str:
    """Empty, or how our server's answer differs from the real one's."""
    if ours.code != real.code:
        return f"exit code {ours.code}, the real server's is {real.code}:\n{ours.text}---- real\n{real.text}"
    if step.apart:
        return ""
    for name, mine, theirs in (("stdout", ours.out, real.out), ("stderr", ours.err, real.err)):
        a, b = masked(mine).splitlines(), masked(theirs).splitlines()
        if step.rows:
            a = [line for line in a if line not in b]
            b = []
        if a != b:
            only_ours = "\n".join(f"- {line}" for line in a if line not in b)
            only_real = "\n".join(f"+ {line}" for line in b if line not in a)
            if not only_ours and not only_real:  # the order, or how often a line stands there
                only_ours, only_real = "\n".join(f"- {line}" for line in a), "\n".join(f"+ {line}" for line in b)
            return f"{name} differs (- ours, + real):\n{only_ours}\n{only_real}".rstrip()
    return ""
