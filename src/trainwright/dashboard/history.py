"""The runs that are recorded on this machine, with no cluster up: listed, described, compared."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import yaml

from trainwright.dashboard.curves import curve_of
from trainwright.dashboard.loglines import last_lines
from trainwright.runs import BrokenRecord, Record, RunsHome
from trainwright.runs.record import seconds_in
from trainwright.runs.surroundings import Surroundings
from trainwright.schema.jsonobject import Json

OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "selfLink")
METRICS_LISTED = 4


def listed(home: RunsHome) -> Json:
    """All runs, newest first."""
    now = time.time()
    return {"runs": [_row(run, now) for run in home.all()], "now": now}


def _row(run: Record | BrokenRecord, now: float) -> Json:
    if isinstance(run, BrokenRecord):
        return {"id": run.id, "name": run.id, "state": "Unreadable", "message": run.why, "finished": True}
    progress = run.progress
    return {
        "id": run.id,
        "name": run.name,
        "namespace": run.namespace,
        "context": run.context,
        "state": run.state,
        "message": run.message,
        "created": run.created,
        "seconds": _seconds(run, now),
        "nodes": run.nodes,
        "runtime": run.runtime,
        "attempts": run.attempts,
        "exit": run.exit_code,
        "source": run.source,
        "finished": run.is_finished,
        "step": progress.step if progress else None,
        "total": progress.total if progress else None,
        "metrics": list((progress.metrics or {}).items())[:METRICS_LISTED] if progress else [],
    }


def _seconds(run: Record, now: float) -> float | None:
    begin = seconds_in(run.started)
    end = run.ended_seconds if run.is_finished else now
    return None if begin is None or end is None else max(0.0, end - begin)


def described(home: RunsHome, id: str) -> Json | None:
    """One run: its record, curve, events, environment and where its files are."""
    try:
        run = home.find(id)
    except ValueError:
        return None
    if run is None:
        return None
    directory = home.of(run.id)
    previous = before(home, run)
    return {
        "run": _row(run, time.time()),
        "record": {field: msgspec.to_builtins(getattr(run, field)) for field in run.__struct_fields__},
        "curve": curve_of(directory.read_metrics()).columns(),
        "events": directory.read_events(),
        "environment": _environment(home, run.id),
        "yaml": _text(home, run.id),
        "directory": str(directory.path),
        "output": str(directory.output),
        "previous": previous.id if previous else "",
        "difference": _difference(home, previous.id, run.id) if previous else [],
    }


def lines(home: RunsHome, id: str) -> Json:
    run = home.find(id)
    return {"lines": list(last_lines(home.of(run.id), count=10000)) if run else []}


def before(home: RunsHome, run: Record) -> Record | None:
    """The run of the same TrainJob, or of the same script or file, before this one."""
    for other in home.records():
        is_older = ((other.created or ""), other.serial) < ((run.created or ""), run.serial)
        same = other.name == run.name or (run.source and other.source == run.source)
        if other.id != run.id and is_older and same:
            return other
    return None


def difference(home: RunsHome, id: str, job: Json) -> Json:
    """How the TrainJob differs from the one of the run before it."""
    run = home.read(id)
    previous = before(home, run) if run else None
    if previous is None:
        return {"previous": "", "lines": []}
    return {"previous": previous.id, "lines": _difference(home, previous.id, id, job)}


def _difference(home: RunsHome, old: str, new: str, job: Json | None = None) -> list[str]:
    before, after = _text(home, old), _text(home, new)
    if not (before and after) and job is not None:
        after = plain_yaml(job)
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="", n=3)
    return list(found)


def plain_yaml(job: Json) -> str:
    """An object as its author would write it."""
    metadata = {key: value for key, value in (job.get("metadata") or {}).items() if key not in OF_THE_SERVER}
    plain = {**{key: value for key, value in job.items() if key != "status"}, "metadata": metadata}
    return str(yaml.safe_dump(plain, sort_keys=False, width=1000, allow_unicode=True))


def _text(home: RunsHome, id: str) -> str:
    try:
        return home.of(id).trainjob.read_text(errors="replace")
    except OSError:
        return ""


def _environment(home: RunsHome, id: str) -> Json:
    found = Surroundings.read(home.of(id))
    return msgspec.to_builtins(found) if found is not None else {}


# Comparing


def compared(home: RunsHome, ids: Sequence[str]) -> Json:
    """Two to six runs beside each other: what they are, what surrounds them, what they reported."""
    now = time.time()
    found = [run for id in ids if (run := home.find(id)) is not None]
    surroundings = [Surroundings.read(home.of(run.id)) or Surroundings() for run in found]
    jobs = [_job(_text(home, run.id)) for run in found]
    return {
        "runs": [_row(run, now) for run in found],
        "curves": [curve_of(home.of(run.id).read_metrics()).columns() for run in found],
        "sections": [
            {"title": "Run", "rows": _rows([_facts(*pair, now) for pair in zip(found, surroundings, strict=True)])},
            {"title": "TrainJob", "rows": _rows([dict(_flat(job.get("spec") or {})) for job in jobs])},
            {"title": "Last report", "rows": _rows([_last(run) for run in found])},
            {"title": "Packages", "rows": _rows([dict(one.packages) for one in surroundings])},
            {"title": "Variables (names only)", "rows": _rows([_names(one.variables) for one in surroundings])},
        ],
    }


def _rows(columns: Sequence[dict[str, Any]]) -> list[Json]:
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = []
    for name in names:
        values = ["" if column.get(name) is None else str(column[name]) for column in columns]
        rows.append({"name": name, "values": values, "differs": len(set(values)) > 1})
    return rows


def _facts(run: Record, surroundings: Surroundings, now: float) -> dict[str, Any]:
    return {
        "state": run.state,
        "duration": _seconds(run, now),
        "created": run.created,
        "source": run.source,
        "runtime": run.runtime,
        "nodes": run.nodes,
        "processes": run.procs,
        "attempts": run.attempts,
        "exit code": run.exit_code,
        "Python": surroundings.python,
        "interpreter": run.python,
        "directory": run.workdir,
        "version": run.version,
    }


def _last(run: Record) -> dict[str, Any]:
    progress = run.progress
    return {} if progress is None else {"step": progress.step, **(progress.metrics or {})}


def _names(variables: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(variables, "set")


def _job(text: str) -> Json:
    try:
        documents = [item for item in yaml.safe_load_all(text) if isinstance(item, dict)]
    except yaml.YAMLError:
        return {}
    return next((item for item in documents if item.get("kind") == "TrainJob"), {})


def _flat(value: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """The scalars of a spec by their paths; values of variables are left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        if path.endswith(".env") or path == "env":
            yield f"{path}[].name", ", ".join(str(item.get("name")) for item in value if isinstance(item, dict))
        elif all(not isinstance(item, dict | list) for item in value):
            yield path, " ".join(map(str, value))
        else:
            for number, item in enumerate(value):
                yield from _flat(item, f"{path}[{number}]")
    else:
        yield path, value
