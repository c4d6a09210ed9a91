"""The command `trainwright doctor`: looks at this machine and at the cluster that is meant, and prints its findings."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trainwright.cli.clusters.target import Target
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.doctor.finding import FAIL, OK, WARN, Finding
from trainwright.cli.failure import Failure

STATES = {OK: "Complete", WARN: "Suspended", FAIL: "Failed"}
"""The state of a TrainJob that has the colour of a finding."""


def doctor(output: str, quiet: bool, target: Target, namespace: str) -> int:
    """0 when training is possible, 1 when something stands in its way."""
    sections: list[tuple[str, list[Finding]]] = []
    if target.is_local:
        from trainwright.cli.doctor import machine

        sections.append(("this machine", list(machine.look(target.directory))))
    if not target.is_local or target.directory.running_pid() is not None:
        from trainwright.cli.clusters.connection import carry_out

        title = "the local cluster" if target.is_local else str(target.where)
        sections.append((title, carry_out(_look(target, namespace))))
    findings = [finding for _, found in sections for finding in found]
    if output == "json":
        print(json.dumps([_json(title, item) for title, found in sections for item in found], indent=2))
    else:
        _print(sections, quiet=quiet)
    return 1 if any(finding.state == FAIL for finding in findings) else 0


async def _look(target: Target, namespace: str) -> list[Finding]:
    from trainwright.cli.doctor import cluster
    from trainwright.cli.doctor.finding import fail

    try:
        async with target.client() as client:
            return [finding async for finding in cluster.look(client, namespace, local=target.is_local)]
    except Failure as failure:
        return [fail("kubeconfig", failure.message, "see: trainwright doctor --help")]


def _json(title: str, finding: Finding) -> dict[str, str]:
    return {"where": title, **finding._asdict()}


def _print(sections: Sequence[tuple[str, list[Finding]]], *, quiet: bool) -> None:
    terminal = Terminal()
    width = max(len(finding.what) for _, found in sections for finding in found)
    for number, (title, found) in enumerate(sections):
        shown = [finding for finding in found if not quiet or finding.state != OK]
        if number and shown:
            terminal.say()
        if shown:
            terminal.say(f"{title[0].upper()}{title[1:]}:")
        for finding in shown:
            terminal.finding(finding.state, STATES[finding.state], f"{finding.what:{width}}", finding.text)
            if finding.mend:
                terminal.sentence(f"        {'':{width}}→ {finding.mend}")
    counts = {state: sum(item.state == state for _, found in sections for item in found) for state in STATES}
    if not quiet:
        terminal.say()
        terminal.say(
            "Everything is ready."
            if not counts[WARN] + counts[FAIL]
            else f"{counts[FAIL]} to mend, {counts[WARN]} to know, {counts[OK]} in order."
        )
