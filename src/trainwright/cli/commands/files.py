"""Commands that read files and need no cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trainwright.cli.commands import flags
from trainwright.cli.commands.command import Arguments, Command, Example
from trainwright.cli.failure import Failure

FRAMEWORKS = ("torch", "jax", "xgboost", "deepspeed", "mpi", "plain")


def _render(parser: Arguments) -> None:
    flags.files(parser)
    flags.output(parser, "yaml", "json", default="yaml")


def _validate(parser: Arguments) -> None:
    flags.files(parser)
    parser.add_argument(
        "--patch", metavar="UPDATE", help="a file with a merge patch: validate it as an update of the TrainJob"
    )
    parser.add_argument("--local", action="store_true", help="also say what of it cannot run on this machine")
    flags.output(parser, "text", "json", default="text")


def _explain(parser: Arguments) -> None:
    parser.usage = "trainwright explain [flags] FILE [PATH]\n       trainwright explain [flags] -f FILE [PATH]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FILE | PATH",
        help="the file; and only this field and those under it, such as spec.replicatedJobs",
    )
    flags.files_by_flag(parser)
    flags.output(parser, "tree", "json", default="tree")


def _settle_explain(found: dict[str, Any]) -> None:
    """The words are FILE PATH, or only PATH where -f names the file."""
    words = found.pop("words")
    if not found["files"]:
        if not words:
            raise Failure("no file is given: trainwright explain FILE [PATH]", 2)
        found["files"] = [words.pop(0)]
    if len(words) > 1:
        raise Failure(f"explain takes one path, not {len(words)}: {' '.join(words)}", 2)
    found["path"] = words[0] if words else None


def _diff(parser: Arguments) -> None:
    parser.add_argument("paths", nargs="*", metavar="FILE", help="YAML or JSON with TrainJobs and runtimes")
    parser.add_argument(
        "-f", "--filename", dest="files", action="append", default=[], metavar="FILE", help="a file of objects"
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE",
        help="compare with this file, without a cluster (default: with the cluster); may be repeated",
    )
    flags.gates(parser)
    flags.quiet(parser, "print nothing: the exit code says whether anything differs")
    flags.target(parser)


def _init(parser: Arguments) -> None:
    parser.usage = "trainwright init [flags] [FRAMEWORK] [FILE]"
    parser.add_argument(
        "framework", nargs="?", default="torch", choices=FRAMEWORKS, help="the framework (default: torch)"
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="where to write it (default: trainjob.yaml), - to print"
    )
    parser.add_argument("-f", "--filename", metavar="FILE", help="the same")
    parser.add_argument("--name", help="name of the TrainJob (default: my-FRAMEWORK-job)")
    parser.add_argument("--nodes", type=flags.positive, default=2, metavar="N", help="number of nodes (default: 2)")
    parser.add_argument("--with-runtime", action="store_true", help="a runtime of your own, too, to be changed")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    flags.quiet(parser)


def _convert(parser: Arguments) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="FILE", help="YAML or JSON with jobs of Training Operator v1, - for standard input"
    )
    parser.add_argument(
        "-f", "--filename", dest="files", action="append", default=[], metavar="FILE", help="the same; may be repeated"
    )
    parser.add_argument("--live", action="store_true", help="convert the jobs of a cluster, which is only read")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="with --live: kubeconfig file of the cluster")
    parser.add_argument("--context", metavar="NAME", help="with --live: context of the kubeconfig")
    parser.add_argument(
        "-n", "--namespace", metavar="NS", help="namespace of jobs that name none; with --live: only it"
    )
    parser.add_argument("--wrap", choices=("torchrun",), help="start scripts of PyTorchJobs by torchrun, not by Python")
    parser.add_argument(
        "--gang", choices=("volcano", "coscheduling", "none"), help="the gang scheduler that v1's operator is set to"
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="WHAT,…",
        help="differences to live with, by name; may be repeated",
    )
    parser.add_argument(
        "--prove", action=argparse.BooleanOptionalAction, default=True, help="compare the pods with v1's (default: yes)"
    )
    flags.output(parser, "yaml", "json", default="yaml")
    flags.quiet(parser, "print no tables, only what is refused")


def _settle_convert(found: dict[str, Any]) -> None:
    if found["live"]:
        if found["files"] or found["paths"]:
            raise Failure("--live reads a cluster and takes no file: give one of the two", 2)
        del found["paths"]
        return
    if found["kubeconfig"] or found["context"]:
        raise Failure("--kubeconfig and --context are for --live: add it to read the jobs of that cluster", 2)
    flags.settle_files(found)


COMMANDS = (
    Command(
        "render",
        "print the objects that a cluster would get for a TrainJob, without a cluster",
        _render,
        "files.render:render",
        (
            Example("trainwright render job.yaml", "the JobSet and what goes with it, as YAML"),
            Example("trainwright render -f job.yaml -f runtime.yaml -o json", "with a runtime of your own, as JSON"),
        ),
        settle=flags.settle_files,
    ),
    Command(
        "validate",
        "list every reason for which a TrainJob or runtime would be refused, without a cluster",
        _validate,
        "files.validate:validate",
        (
            Example("trainwright validate job.yaml", "each error with its line and a hint"),
            Example("trainwright validate job.yaml --local", "would it run here: limits, GPUs, volumes, users"),
            Example("trainwright validate job.yaml --patch update.yaml", "may this TrainJob be changed so?"),
            Example("trainwright validate job.yaml --json", "for editors: file, line, message and hint of each error"),
        ),
        settle=flags.settle_files,
    ),
    Command(
        "explain",
        "show where the value of each rendered field comes from, without a cluster",
        _explain,
        "files.explain:explain",
        (
            Example("trainwright explain job.yaml", "every field, with file and line or the plugin that set it"),
            Example("trainwright explain job.yaml spec.replicatedJobs", "only this field and those under it"),
        ),
        settle=_settle_explain,
    ),
    Command(
        "diff",
        "show what applying files would change in the objects that a cluster gets",
        _diff,
        "files.diff:diff",
        (
            Example("trainwright diff job.yaml --against old.yaml", "between two files, without a cluster"),
            Example("trainwright diff -f job.yaml", "between the file and what the cluster has"),
        ),
        settle=flags.settle_files,
        codes=((0, "nothing differs"), (1, "something differs"), (2, "an error, or wrong usage")),
    ),
    Command(
        "init",
        "write a commented TrainJob for a framework, which validates and trains as it is",
        _init,
        "files.init:init",
        (
            Example("trainwright init torch", "trainjob.yaml for PyTorch, in this directory"),
            Example("trainwright init plain job.yaml --nodes 4 --name mine", "another file, more nodes, a name"),
            Example("trainwright init torch - --with-runtime", "print it, with a runtime of your own"),
        ),
        settle=flags.settle_file,
    ),
    Command(
        "convert",
        "make TrainJobs of Training Operator v1's jobs, with a proof that their pods mean the same",
        _convert,
        "files.convert:convert_jobs",
        (
            Example(
                "trainwright convert pytorchjob.yaml > trainjob.yaml", "the TrainJob, and a table of what is equal"
            ),
            Example("trainwright convert --live --context prod -n team-a", "all v1 jobs of a namespace; reads only"),
        ),
        settle=_settle_convert,
        codes=((1, "a job was refused; the others are printed"),),
    ),
)
