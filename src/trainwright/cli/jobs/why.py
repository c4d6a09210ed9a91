"""`trainwright why`: the reason why a TrainJob failed or waits, what leads to it, and what to do.

The headline is the one that `run`, `get` and the job's status have. Below it are the chain of objects, the lines that
tell it, and the code under which the troubleshooting page has more.
"""

from __future__ import annotations

import json

import msgspec

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.dashboard.evidence import Gathered, Gathering
from trainwright.pipeline.reasons import Reason, reason_of
from trainwright.pipeline.reasons.ranks import without_marks
from trainwright.pipeline.reasons.reason import is_vague
from trainwright.pipeline.reasons.sentences import phase_of
from trainwright.runs import BrokenRecord, Record, RunsHome
from trainwright.schema.jsonobject import Json

PAGE = "docs/troubleshooting.md"


def why(name: str, output: str, target: Target, namespace: str) -> int:
    job = job_named(target, name, namespace)
    answer = carry_out(_answer(target, job, namespace))
    if output == "json":
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        _show(answer, Terminal())
    return 0


class _NotThere(Failure):
    """There is a cluster, and neither a TrainJob nor a record of that name."""


async def _answer(target: Target, name: str, namespace: str) -> Json:
    try:
        async with target.client() as client:
            gathering = Gathering(client, namespace, name)
            gathered = await gathering.gather()
            if gathered is not None:
                reason = reason_of(gathered.evidence)
                if reason is None or is_vague(reason.code):
                    lines = await gathering.lines(list(gathered.evidence.pods))
                    reason = reason_of(msgspec.structs.replace(gathered.evidence, logs=lines)) or reason
                return _told(name, namespace, gathered, reason)
            if (kept := _record(target, name, namespace)) is None:
                raise _NotThere((await no_such_job(client, name, namespace)).message)
            return _of_record(kept)
    except _NotThere:
        raise
    except Failure:
        if (kept := _record(target, name, namespace)) is None:
            raise  # there is no cluster, and no record either
        return _of_record(kept)


def _told(name: str, namespace: str, gathered: Gathered, reason: Reason | None) -> Json:
    evidence = gathered.evidence
    phase = phase_of(evidence.job, evidence.workload, list(evidence.pods), evidence.now)
    return {
        "name": name,
        "namespace": namespace,
        "state": phase.name,
        "code": reason.code if reason else "",
        "headline": reason.headline if reason else phase.sentence,
        "mend": reason.mend if reason else "",
        "rank": reason.rank if reason else None,
        "chain": msgspec.to_builtins(reason.chain) if reason else [],
        "details": list(reason.details) if reason else [],
        "forbidden": gathered.forbidden,
    }


def _record(target: Target, name: str, namespace: str) -> Record | None:
    try:
        return RunsHome(target.directory.path).find(name, namespace)
    except BrokenRecord:
        return None


def _of_record(record: Record) -> Json:
    return {
        "name": record.name,
        "namespace": record.namespace,
        "state": record.state,
        "code": "",
        "headline": record.message or f"its record says no more than {record.state}",
        "mend": f"Its lines are kept: trainwright logs {record.id}",
        "rank": None,
        "chain": [{"kind": "Run", "name": record.id, "says": "what is kept of a job that is no more on the cluster"}],
        "details": [],
        "forbidden": [],
    }


def _show(answer: Json, terminal: Terminal) -> None:
    terminal.phase(answer["name"], answer["state"], f"{answer['headline']}{'.' if answer['mend'] else ''}")
    if answer["mend"]:
        terminal.sentence(f"  {answer['mend']}.")
    elif not answer["code"] and answer["state"] not in ("Complete", "Failed"):
        terminal.say("  Nothing is wrong as far as can be seen.")
    if answer["chain"]:
        terminal.say()
        for depth, link in enumerate(answer["chain"]):
            says = f"  {link['says']}" if link["says"] else ""
            terminal.sentence(f"  {'   ' * depth}{'└─ ' if depth else ''}{link['kind']} {link['name']}{says}")
    if answer["details"]:
        terminal.say()
        for line in answer["details"]:
            terminal.say(f"  | {without_marks(line)}")
    if answer["code"]:
        terminal.say(f"\nCause {answer['code']}: {PAGE}#{answer['code'].lower()}")
    if answer["forbidden"]:
        terminal.say(f"Not looked at, because you may not read them: {', '.join(answer['forbidden'])}")
