"""`trainwright convert`: makes TrainJobs of Training Operator v1's jobs, and proves that their pods mean the same.

In: files with PyTorchJobs, MPIJobs, TFJobs, XGBoostJobs and JAXJobs, or those of a cluster (`--live`, only read).
Out: TrainJobs and TrainingRuntimes on standard output, and for each job a table on standard error that says what is
equal, what means the same and what differs. A job that would differ is refused, unless `--accept` names the difference.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trainwright.api.resources import Resource
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import choose
from trainwright.cli.console.output import to_json, to_yaml
from trainwright.cli.failure import Failure
from trainwright.cli.files.configured import framework_of
from trainwright.cli.files.documents import Document, Place, read
from trainwright.cli.files.offline import Offline
from trainwright.cli.files.render import admitted_job, check_runtime, plan_of
from trainwright.client.errors import NotFound
from trainwright.conversion.conversion import Converted, Options, convert
from trainwright.conversion.findings import Finding, Refused, Verdict
from trainwright.conversion.proof import differences
from trainwright.conversion.proof import prove as compare
from trainwright.conversion.v1job import API_VERSION, KINDS
from trainwright.conversion.v1job import read as read_job
from trainwright.schema.jsonobject import Json


class Source(NamedTuple):
    """One job, and where it comes from."""

    where: str
    value: Json

    @property
    def title(self) -> str:
        return f"{self.where}: {self.value.get('kind')}/{(self.value.get('metadata') or {}).get('name', '')}"


def convert_jobs(
    *,
    files: Sequence[str],
    live: bool,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    wrap: str | None,
    gang: str | None,
    accept: Sequence[str],
    prove: bool,
    output: str,
    quiet: bool,
) -> int:
    """Converts every job. Exit code 1 when one of them is refused; the others are printed all the same."""
    if live:
        sources, ignored = carry_out(_of_cluster(kubeconfig, context, namespace)), 0
    else:
        sources, ignored = _of_files(files)
    if not sources:
        place = "the cluster" if live else ", ".join(files)
        raise Failure(f"{place}: no job of Training Operator v1 to convert ({', '.join(KINDS)} of {API_VERSION})")
    accepted = {word for item in accept for word in item.split(",") if word}
    options, objects, refused = Options(wrap, gang), list[Json](), 0
    for source in sources:
        try:
            converted = convert(read_job(source.value, namespace or "default"), options)
            findings = compare(converted, rendered(converted)) if prove else converted.findings
        except Refused as error:
            refused += 1
            for sentence in error.sentences:
                print(f"{source.title} is refused: {sentence}", file=sys.stderr)
            continue
        if not quiet:
            _show(source, converted, findings, accepted)
        if differing := differences(findings, accepted):
            refused += 1
            names = ",".join(finding.aspect for finding in differing)
            print(
                f"{source.title} is refused: it would differ; to convert it all the same: --accept {names!r}",
                file=sys.stderr,
            )
            continue
        objects += converted.objects
    sys.stdout.write(to_json(objects) if output == "json" and objects else to_yaml(objects))
    if not quiet:
        rest = f", {ignored} objects of other kinds left out" if ignored else ""
        print(f"{len(sources) - refused} converted, {refused} refused{rest}", file=sys.stderr)
    return 1 if refused else 0


def _of_files(files: Sequence[str]) -> tuple[list[Source], int]:
    """The v1 jobs of the files, and how many other objects they have."""
    documents = read(files)
    found = [Source(f"{each.file}:{each.place.line}", each.value) for each in documents if _is_v1(each.value)]
    return found, len(documents) - len(found)


def _is_v1(value: Json) -> bool:
    return value.get("apiVersion") == API_VERSION and value.get("kind") in KINDS


async def _of_cluster(kubeconfig: Path | None, context: str | None, namespace: str | None) -> list[Source]:
    """All v1 jobs of a cluster, or of one namespace. A kind whose CRD is not installed has none."""
    target = choose(kubeconfig=kubeconfig, context=context, local=False, directory=None)
    found: list[Source] = []
    async with target.client() as client:
        for kind in KINDS.values():
            resource = Resource("kubeflow.org", "v1", kind.plural, kind.name)
            try:
                listed = await client.list(resource, namespace)
            except NotFound:
                continue
            for item in listed.items or ():
                value = {**item, "apiVersion": API_VERSION, "kind": kind.name}
                found.append(Source(f"{target.where or 'the local cluster'}, namespace {_namespace(item)}", value))
    return found


def _namespace(item: Json) -> str:
    return str((item.get("metadata") or {}).get("namespace") or "")


def rendered(converted: Converted) -> list[Json]:
    """The objects as the operator would make them."""
    place = Place(1, {})
    documents = [Document("(converted)", 1, value, place) for value in converted.objects]
    offline = Offline(documents, converted.job.namespace, framework_of(None, None))
    for document in offline.runtimes:
        check_runtime(offline, document)
    (document,) = offline.train_jobs
    job = admitted_job(offline, document)
    return [intention.object for intention in plan_of(offline, job, document).objects]


def _show(source: Source, converted: Converted, findings: Sequence[Finding], accepted: set[str]) -> None:
    runtime = converted.train_job["spec"]["runtimeRef"]
    print(f"{source.title} becomes a TrainJob of {runtime['kind']} {runtime['name']}", file=sys.stderr)
    width = max(len(finding.aspect) for finding in findings)
    column = max(len(verdict.value) for verdict in Verdict)
    for finding in findings:
        verdict = finding.verdict.value
        if finding.verdict is Verdict.DIFFERS and finding.aspect in accepted:
            verdict = f"{verdict} (accepted)"
        print(f"  {finding.aspect.ljust(width)}  {verdict.ljust(column)}  {finding.reason}".rstrip(), file=sys.stderr)
