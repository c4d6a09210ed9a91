"""The homes of runs: what stays of every run, readable with no cluster up.

    STATE/runs/ID/                0700
      run.json                    the `Record`, replaced as a whole
      trainjob.yaml               what was submitted
      events.jsonl                phases and Kubernetes events, one JSON object a line
      metrics.jsonl               progress reports, one JSON object a line
      logs/POD.UID/pod.json       a pod of the run: what is needed to name its ranks
      logs/POD.UID/CONTAINER/RESTART.log[.N]   its output, in CRI's line format
      output/                     $TRAINWRIGHT_OUTPUT
      environment.json            0600, the caller's environment; removed when the run ends
      surroundings.json           its Python, packages and names of variables, for comparisons
      following                   locked while a `trainwright run` follows the run
    STATE/runs/deleted.jsonl      which runs were deleted, when and why
    STATE/settings.toml           [runs] limit = "10GB", days = 90

`RunsHome` makes, finds, changes and deletes records, under one file lock. Everything here is plain files: no event
loop, no HTTP. Invariants: a run's id is checked before it becomes a path, nothing outside STATE/runs is touched, and a
reader sees a whole old record or a whole new one.
"""

from trainwright.runs.directory import RunDirectory
from trainwright.runs.home import Deletion, RunExists, RunsHome
from trainwright.runs.record import LOCAL, Asked, BrokenRecord, Progress, Record, State

__all__ = [
    "LOCAL",
    "Asked",
    "BrokenRecord",
    "Deletion",
    "Progress",
    "Record",
    "RunDirectory",
    "RunExists",
    "RunsHome",
    "State",
]
