#!/usr/bin/env python3
"""Replay recorded conversations with kube-apiserver against any server and compare the answers.

Needs Python 3.11 and PyYAML only. README.md describes the scenarios.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import os
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from apicorpus.connection import BROKEN, Client, NoToken  # noqa: E402 - this file is run as a script
from apicorpus.definitions import install_missing  # noqa: E402
from apicorpus.judgement import PRIORITIES, Result, priority_of  # noqa: E402
from apicorpus.runner import LOADER, Aborted, Runner  # noqa: E402
from apicorpus.summary import Summary  # noqa: E402

Json = dict[str, Any]


def load(paths: Iterable[str], only: str | None = None) -> list[Json]:
    """The scenarios in files and folders; `only` holds patterns or parts of their names."""
    scenarios = []
    for path in map(Path, paths):
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
            name = file.stem
            if only is None or any(fnmatch.fnmatch(name, part) or part in name for part in only.split(",")):
                scenario: Json = yaml.load(file.read_text(), Loader=LOADER)  # noqa: S506 - one of the safe loaders
                scenarios.append({**scenario, "name": name, "file": str(file)})
    return scenarios


def play(client: Client, scenario: Json, missing: dict[str, str]) -> list[Result]:
    """The results of one scenario; one that lacks a kind is skipped, one that cannot begin has failed."""
    name = scenario["name"]
    lacks = [missing[kind] for kind in scenario.get("kinds", []) if kind in missing]
    if lacks:
        steps = enumerate(scenario["steps"], 1)
        return [Result(name, number, priority_of(scenario, step), skip=lacks[0]) for number, step in steps]
    try:
        return Runner(client, scenario).go()
    except (Aborted, NoToken, *BROKEN) as error:
        aborted = {"core": [f"scenario aborted: {error!r}"]}
        return [Result(name, 0, scenario.get("priority", "should"), facets=aborted)]


def record(client: Client, scenario: Json) -> None:
    """Play a scenario against the server it is to be recorded from, and write its answers into its file."""
    Runner(client, scenario, record=True).go()
    content = {key: value for key, value in scenario.items() if key not in ("name", "file")}
    Path(scenario["file"]).write_text(yaml.safe_dump(content, sort_keys=False, width=1000))


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("scenarios", nargs="+")
    add("--server", required=True)
    add("--token", default=os.environ.get("CORPUS_TOKEN", ""))
    add("--token-for", action="append", default=[], metavar="USER=TOKEN", help="another user's token (bob: no rights)")
    add("--ca")
    add("--insecure", action="store_true")
    add("--only", help="comma separated glob patterns or substrings of scenario names")
    add("--crds", action="append", default=[str(HERE / "crds")], help="where the CRDs of kinds not served are")
    add("--keep-crds", action="store_true", help="leave CRDs installed by this run in place")
    add("-j", "--jobs", type=int, default=1)
    add("--priority", choices=PRIORITIES, help="judge only checks of this priority or higher")
    add("--shuffle", action="store_true", help="random scenario order")
    add("--seed", type=int, help="seed for --shuffle")
    add("--reverse", action="store_true")
    add("--json", dest="json_out")
    add("--max-diffs", type=int, default=20, help="failing steps shown in detail")
    add("--record", action="store_true", help="write the answers into the scenarios' files instead of judging them")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    asked = options(arguments)
    tokens = {"admin": asked.token, **dict(pair.split("=", 1) for pair in asked.token_for)}
    client = Client(asked.server, tokens, asked.ca, insecure=asked.insecure)
    scenarios = load(asked.scenarios, asked.only)
    if asked.shuffle:
        seed = asked.seed if asked.seed is not None else random.randrange(10**6)
        random.Random(seed).shuffle(scenarios)
        print(f"order: shuffled with seed {seed}")
    if asked.reverse:
        scenarios.reverse()
    installed, missing = install_missing(client, scenarios, asked.crds)
    if asked.record:
        for scenario in scenarios:
            record(client, scenario)
        client.close()
        return 0
    start = time.monotonic()
    summary = Summary(asked.priority)
    with concurrent.futures.ThreadPoolExecutor(max(1, asked.jobs)) as pool:
        played = pool.map(lambda scenario: play(client, scenario, missing), scenarios)
        for scenario, results in zip(scenarios, played, strict=True):
            summary.add(scenario, results)
    if not asked.keep_crds:
        for path in installed:
            client.request("DELETE", path)
    client.close()
    print("\n".join(summary.lines(asked.max_diffs, time.monotonic() - start)))
    if asked.json_out:
        Path(asked.json_out).write_text(json.dumps(summary.as_json(), indent=1))
    return 1 if summary.total.failed["must"] else 0


if __name__ == "__main__":
    sys.exit(main())
