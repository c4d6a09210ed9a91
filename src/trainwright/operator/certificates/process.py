"""Judges and makes certificates in a process of its own, which ends at once.

The library for certificates costs an operator 8 MB for as long as it lives, and it is needed for half a second at the
start and once in a few months. The question goes to the process as JSON on its standard input, the answer comes back
on its standard output: keys are neither written to disk nor shown in a list of processes.

    python -m trainwright.operator.certificates.process < question > answer
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime

import msgspec

from trainwright.operator.certificates.material import Material, Policy, next_material, seconds_until_next

SECONDS = 60.0


class Question(msgspec.Struct, frozen=True):
    """What is stored, and whether every caller trusts all of its authorities."""

    stored: Material | None
    policy: Policy
    now: float
    injected: bool


class Judgement(msgspec.Struct, frozen=True):
    wanted: Material | None
    """What should be stored instead; None when all is well."""
    again: float
    """In how many seconds to ask again, when all is well."""


class CertificatesNotMade(Exception):
    """The process failed; the message has its last line."""


def judge(question: Question) -> Judgement:
    """The judgement, in this process."""
    now = datetime.fromtimestamp(question.now, UTC)
    wanted = next_material(question.stored, question.policy, now, injected=question.injected)
    again = 0.0
    if wanted is None and question.stored is not None:
        again = seconds_until_next(question.stored, question.policy, now)
    return Judgement(wanted, again)


async def judge_apart(question: Question) -> Judgement:
    """The judgement, in a process of its own; raises `CertificatesNotMade`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __spec__.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        async with asyncio.timeout(SECONDS):
            answer, said = await process.communicate(msgspec.json.encode(question))
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        raise CertificatesNotMade(f"certificates could not be made: {lines[-1] if lines else process.returncode}")
    return msgspec.json.decode(answer, type=Judgement)


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.json.encode(judge(question)))


if __name__ == "__main__":
    main()
