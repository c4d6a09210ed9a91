"""`trainwright upgrade-check`: what this version would change of a cluster's TrainJobs and runtimes, before it does.

Exit code 1 when something would break and somebody has to act first; what cannot go back to Kubeflow Trainer is told
and does not count.
"""

from __future__ import annotations

import json

import msgspec

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.files.configured import framework_of
from trainwright.operator.upgrade.check import check
from trainwright.operator.upgrade.findings import Effect, Finding, Report
from trainwright.pipeline import Framework


def upgrade_check(config: str | None, feature_gates: str | None, output: str, target: Target, namespace: str) -> int:
    report = carry_out(_check(target, framework_of(config, feature_gates)))
    if output == "json":
        print(json.dumps(msgspec.to_builtins(report), indent=2))
    else:
        _show(report)
    return 1 if any(finding.effect is Effect.BREAKS for finding in report.upgrade) else 0


async def _check(target: Target, framework: Framework) -> Report:
    async with target.client() as client:
        return await check(client, framework)


def _show(report: Report) -> None:
    print(f"{report.train_jobs} TrainJobs, {report.unfinished} of them unfinished; {report.runtimes} runtimes.")
    if report.upgrade:
        print("With this version:")
        _list(report.upgrade)
    else:
        print("With this version nothing changes: every JobSet and pod stays as it is.")
    if report.back:
        print("Should you go back to Kubeflow Trainer:")
        _list(report.back)


def _list(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"  {finding.effect.value:8} {finding.object}: {finding.text}")
