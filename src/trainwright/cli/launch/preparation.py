"""From a choice and a program to objects that can be created: finds the runtime, chooses names, packs what travels.

In: what the user typed, and a client of the cluster. Out: a `Prepared` run. Without a client (`--dry-run` with no
cluster up) the shipped runtimes stand for the cluster's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trainwright.api.resources import TRAINING_RUNTIMES
from trainwright.api.runid import fresh_id
from trainwright.cli.failure import Failure
from trainwright.cli.launch.choice import Choice
from trainwright.cli.launch.frameworks import MPI_RUNTIME, PLAIN, TORCH_RUNTIME, default_runtime, script_of_module
from trainwright.cli.launch.interpreter import callers_environment, interpreter
from trainwright.cli.launch.names import fresh_name
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.program import Program
from trainwright.cli.launch.runtimes import Found, find_runtime, runtime_of_run, training_job
from trainwright.cli.launch.submission import Submission
from trainwright.cli.launch.trainjob import Runtime, local_trainjob, remote_trainjob
from trainwright.cli.launch.travel import Luggage
from trainwright.client.client import Client
from trainwright.schema.jsonobject import Json


class _Plan(msgspec.Struct, frozen=True):
    """What a run is made of, once its names and its runtime are known."""

    choice: Choice
    program: Program
    name: str
    run: str
    namespace: str
    found: Found
    runtime: Runtime
    belongings: list[Json]


async def prepare(
    choice: Choice,
    program: Program,
    *,
    local: bool,
    namespace: str,
    client: Client | None,
    seen: Sequence[Json] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Prepared:
    """The run of a program, on the local cluster or on another; `seen` are the runtimes of one that is away."""
    name = choice.name or fresh_name(program)
    run = fresh_id(name) if choice.name else name
    wanted = choice.runtime or _default_runtime(program, choice)
    if local and choice.runtime is None and not choice.retries:  # every local cluster has it as it is shipped
        found = Found(name=wanted, is_torch=wanted == TORCH_RUNTIME, is_mpi=wanted == MPI_RUNTIME)
    else:
        found = await find_runtime(client, wanted, namespace, bring=choice.runtime is None, seen=seen)
    belongings: list[Json] = []
    runtime = Runtime(found.name, found.kind, found.is_torch, found.is_mpi)
    if choice.retries or found.is_brought:
        belongings.append(runtime_of_run(found.content, name=run, retries=choice.retries))
        runtime = Runtime(run, TRAINING_RUNTIMES.kind, found.is_torch, found.is_mpi)
    plan = _Plan(choice, program, name, run, namespace, found, runtime, belongings)
    return _local(plan, environment) if local else _remote(plan)


def _default_runtime(program: Program, choice: Choice) -> str:
    if program.kind == "command":
        return TORCH_RUNTIME if program.launches_torch else MPI_RUNTIME if program.launches_mpi else PLAIN
    roots = [choice.workdir or Path.cwd()]
    if program.kind == "module":
        return default_runtime(script_of_module(program.what, roots), roots)
    return default_runtime(Path(program.what).expanduser().absolute(), roots)


def _local(plan: _Plan, environment: Mapping[str, str]) -> Prepared:
    choice, program = plan.choice, plan.program
    workdir = choice.workdir or Path.cwd()
    python = interpreter(choice.python, environment)
    job = local_trainjob(choice, program, plan.runtime, name=plan.name, run=plan.run, python=python, workdir=workdir)
    own = None if program.kind == "command" and choice.python is None else python
    return Prepared(
        Submission(job, [], plan.namespace, belongings=plan.belongings),
        callers_environment(environment, choice.env, own, workdir),
        str(workdir),
        str(python),
        ("--image is not used: pods of the local cluster are processes of this machine",) if choice.image else (),
    )


def _remote(plan: _Plan) -> Prepared:
    from trainwright.cli.launch.archive import pack

    choice, program, workdir = plan.choice, plan.program, plan.choice.workdir
    if workdir is not None:
        program = program.inside(workdir)
        if program.kind == "script" and Path(program.what).is_absolute():
            raise Failure(
                f"{program.what} lies outside of the working directory {workdir}: name another with --workdir", 2
            )
    archive = pack(workdir) if workdir is not None else None
    luggage = Luggage(
        run=plan.run,
        job=training_job(plan.found.content, ships=archive is not None),
        variables=choice.env,
        archive=archive,
        output_claim=choice.output_claim,
    )
    notes = [] if archive is None else [f"the working directory {workdir} goes along: {archive}"]
    if not choice.output_claim:
        notes.append("$TRAINWRIGHT_OUTPUT goes with the pods; to keep it, give --output-claim NAME, a volume claim")
    job = remote_trainjob(choice, program, plan.runtime, luggage, name=plan.name, run=plan.run)
    return Prepared(
        Submission(job, [], plan.namespace, belongings=[*luggage.objects(), *plan.belongings]),
        workdir=str(workdir or ""),
        python=choice.python or "",
        notes=tuple(notes),
    )
