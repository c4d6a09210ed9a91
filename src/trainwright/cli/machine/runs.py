"""`trainwright runs`: lists, describes and deletes the runs that are recorded here, with or without a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.console.durations import duration
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.runs import BrokenRecord, Record, RunDirectory, RunsHome
from trainwright.runs.logs import log_files
from trainwright.runs.outbox import Outbox
from trainwright.runs.record import seconds_in
from trainwright.schema.jsonobject import Json

TOLD_TO = "trainwright runs delete"
METRICS_SHOWN = 3
EVENTS_SHOWN = 20
RECENT_SECONDS = 7 * 86400.0
"""For so long the list mentions the runs that a limit deleted."""


def runs(action: str, ids: Sequence[str], finished: bool, force: bool, output: str, directory: Path) -> int:
    try:
        return _carry_out(ClusterDirectory(directory), action, ids, finished=finished, force=force, output=output)
    except BrokenPipeError:
        raise  # the reader of our output has left
    except OSError as error:
        raise Failure(f"{error.filename or directory}: {error.strerror}") from error


def _carry_out(
    cluster: ClusterDirectory, action: str, ids: Sequence[str], *, finished: bool, force: bool, output: str
) -> int:
    home = RunsHome(cluster.path)
    if action == "list":
        if ids or finished or force:
            raise Failure(
                "trainwright runs lists all runs and takes no ids; see one with: trainwright runs describe ID", 2
            )
        return _list(cluster, home, output)
    if action == "describe":
        if finished or force or len(ids) != 1:
            raise Failure("write: trainwright runs describe ID", 2)
        return _describe(cluster, _found(home, ids[0]), home, output)
    if bool(ids) is finished:
        raise Failure("write: trainwright runs delete ID…, or trainwright runs delete --finished", 2)
    return _delete(cluster, home, ids, force=force)


# Listing


def _list(cluster: ClusterDirectory, home: RunsHome, output: str) -> int:
    now = time.time()
    found = home.all()
    if output == "json":
        print(json.dumps([_json(home, run, now) for run in found], indent=2))
        return 0
    terminal = Terminal()
    if not found:
        terminal.say(f"no runs in {home.path}; start one with: trainwright run train.py{cluster.flag()}")
    else:
        remote = any(isinstance(run, Record) and not run.is_local for run in found)
        head = ("RUN", *(("CLUSTER",) if remote else ()), "STATE", "AGE", "DURATION", "NODES", "EXIT", "LAST REPORT")
        terminal.table(head, [_row(run, now, remote=remote) for run in found])
    for line in _remarks(cluster, home, found, now):
        terminal.say(line)
    return 0


def _row(run: Record | BrokenRecord, now: float, *, remote: bool) -> tuple[str, ...]:
    if isinstance(run, BrokenRecord):
        return (run.id, *(("",) if remote else ()), "Unreadable", "", "", "", "", run.why)
    return (
        run.id if run.name in run.id else f"{run.id} ({run.name})",
        *((run.context,) if remote else ()),
        run.state,
        _since(run.created, now),
        _taken(run, now),
        "" if run.nodes is None else str(run.nodes),
        "" if run.exit_code is None else str(run.exit_code),
        report_of(run)
        or (run.message if run.state == "Submitting" or (run.is_finished and run.state != "Complete") else ""),
    )


def report_of(run: Record) -> str:
    """The last report of the training code: `42 %, loss=0.12`."""
    progress = run.progress
    if progress is None:
        return ""
    parts = []
    if progress.step is not None:
        parts.append(f"step {progress.step}" + (f" of {progress.total}" if progress.total is not None else ""))
    elif progress.percent is not None:
        parts.append(f"{progress.percent} %")
    metrics = progress.metrics or {}
    parts += [f"{name}={value}" for name, value in list(metrics.items())[:METRICS_SHOWN]]
    if len(metrics) > METRICS_SHOWN:
        parts.append(f"and {len(metrics) - METRICS_SHOWN} more")
    return ", ".join(parts)


def _remarks(
    cluster: ClusterDirectory, home: RunsHome, found: Sequence[Record | BrokenRecord], now: float
) -> list[str]:
    """What the table cannot say: what is not known at present, and what is gone."""
    lines = []
    open_ends = [run.id for run in found if isinstance(run, Record) and run.is_local and not run.is_finished]
    if open_ends and cluster.running_pid() is None:
        lines.append(
            f"No control plane is running, so the state of {', '.join(open_ends)} is the last known one; "
            f"bring it up to date with: trainwright up --detach{cluster.flag()}"
        )
    gone = [
        deletion
        for deletion in home.deletions()
        if deletion.why != TOLD_TO and (ended := seconds_in(deletion.time)) is not None and now - ended < RECENT_SECONDS
    ]
    if gone:
        why = "; ".join(f"{deletion.id} ({deletion.why})" for deletion in gone[-5:])
        count = "1 run was" if len(gone) == 1 else f"{len(gone)} runs were"
        lines.append(
            f"{count} deleted by the limits in the last 7 days: {why}. "
            f"Set other limits in {home.state / 'settings.toml'}, section [runs]: limit, days"
        )
    return lines


def _json(home: RunsHome, run: Record | BrokenRecord, now: float) -> Json:
    if isinstance(run, BrokenRecord):
        return {"id": run.id, "state": "Unreadable", "message": run.why}
    directory = home.of(run.id)
    whole: Json = {field: msgspec.to_builtins(getattr(run, field)) for field in run.__struct_fields__}
    whole["duration_seconds"] = _taken_seconds(run, now)
    whole["directory"] = str(directory.path)
    whole["output"] = str(directory.output)
    return whole


# Describing


def _describe(cluster: ClusterDirectory, run: Record, home: RunsHome, output: str) -> int:
    now = time.time()
    directory = home.of(run.id)
    if output == "json":
        whole = _json(home, run, now)
        whole["events"], whole["metrics"] = directory.read_events(), directory.read_metrics()
        whole["logs"] = [
            {"pod": log.pod_name, "container": log.container, "attempt": log.attempt, "path": str(log.path)}
            for log in log_files(directory)
        ]
        print(json.dumps(whole, indent=2))
        return 0
    terminal = Terminal()
    for name, value in _facts(run, directory, now):
        if value:
            terminal.say(f"{name + ':':<14}{value}")
    logs = log_files(directory)
    if logs:
        terminal.say(f"\nLogs (trainwright logs {run.id}{cluster.flag()}):")
        terminal.table(
            ("POD", "CONTAINER", "ATTEMPT", "FILE"),
            [(log.pod_name, log.container, str(log.attempt), str(log.path)) for log in logs],
        )
    if events := directory.read_events():
        terminal.say(
            "\nEvents:" if len(events) <= EVENTS_SHOWN else f"\nThe last {EVENTS_SHOWN} of {len(events)} events:"
        )
        terminal.table(
            ("TIME", "TYPE", "REASON", "OBJECT", "MESSAGE"),
            [
                tuple(str(event.get(field, "")) for field in ("time", "type", "reason", "object", "message"))
                for event in events[-EVENTS_SHOWN:]
            ],
        )
    return 0


def _facts(run: Record, directory: RunDirectory, now: float) -> list[tuple[str, str]]:
    state = run.state if run.exit_code in (None, 0) else f"{run.state}, exit code {run.exit_code}"
    return [
        ("Run", run.id),
        ("TrainJob", f"{run.name} in namespace {run.namespace}"),
        ("Cluster", "" if run.is_local else f"context {run.context} at {run.server}"),
        ("State", f"{state}: {run.message}" if run.message else state),
        ("Asked", f"{run.asked.by} {run.asked.time or ''}".rstrip() if run.asked is not None else ""),
        ("Source", run.source),
        ("Directory", run.workdir),
        ("Python", run.python),
        ("Runtime", run.runtime),
        ("Nodes", "" if run.nodes is None else str(run.nodes)),
        ("Processes", "" if run.procs is None else f"{run.procs} on each node"),
        ("Created", run.created or ""),
        ("Started", run.started or ""),
        ("Ended", run.ended or ""),
        ("Duration", _taken(run, now)),
        ("Attempts", str(run.attempts) if run.attempts > 1 else ""),
        ("Last report", report_of(run)),
        ("Submitted by", run.origin),
        ("Outputs", str(directory.output)),
        ("Home", str(directory.path)),
    ]


def _found(home: RunsHome, name: str) -> Record:
    try:
        found = home.find(name)
    except BrokenRecord as error:
        raise Failure(f"{error}; delete it with: trainwright runs delete {error.id}") from None
    if found is None:
        raise Failure(f'there is no run "{name}" in {home.path}; list them with: trainwright runs')
    return found


# Deleting


def _delete(cluster: ClusterDirectory, home: RunsHome, ids: Sequence[str], *, force: bool) -> int:
    if not ids:
        chosen = [run.id for run in home.records() if run.is_finished]
    else:
        chosen = [_one_id(home, name) for name in ids]
        for id in chosen:
            _refuse_living(cluster, home, id, force=force)
    for id in dict.fromkeys(chosen):
        Outbox(home.state).withdraw(id)
        if home.delete(id, TOLD_TO, time.time()):
            print(f"run {id} deleted, with its logs and outputs")
    if not chosen:
        print("no finished runs")
    return 0


def _one_id(home: RunsHome, name: str) -> str:
    """The id that is meant. A name that several runs have is not enough to delete one."""
    if name in home.ids():
        return name
    named = [run.id for run in home.records() if run.name == name]
    if len(named) > 1:
        raise Failure(
            f"TrainJob {name} has {len(named)} runs: {', '.join(named)}; name the runs to delete by their ids"
        )
    if not named:
        raise Failure(f'there is no run "{name}" in {home.path}; list them with: trainwright runs')
    return named[0]


def _refuse_living(cluster: ClusterDirectory, home: RunsHome, id: str, *, force: bool) -> None:
    try:
        run = home.read(id)
    except BrokenRecord:
        return
    if run is None or run.is_finished or force:
        return
    if Outbox(home.state).holds(id):
        raise Failure(f"run {id} waits to be delivered to its cluster; add --force, and it never is")
    if run.is_local and cluster.running_pid() is None:
        how = f"see what became of it with: trainwright up --detach{cluster.flag()}"
    else:
        how = f"end it with: trainwright delete {run.name}"
        how += f"{cluster.flag()}" if run.is_local else f" --context {run.context}"
    raise Failure(f"run {id} is not over as far as is known ({run.state}); {how}, or add --force")


# Times


def _since(text: str | None, now: float) -> str:
    begin = seconds_in(text)
    return "" if begin is None else duration(now - begin)


def _taken_seconds(run: Record, now: float) -> float | None:
    """How long the run took, or has taken until now. One that has not started has taken no time yet."""
    begin = seconds_in(run.started)
    if begin is None:
        return None
    end = run.ended_seconds if run.is_finished else now
    return None if end is None else max(0.0, end - begin)


def _taken(run: Record, now: float) -> str:
    seconds = _taken_seconds(run, now)
    return "" if seconds is None else duration(seconds)
