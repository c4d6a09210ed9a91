"""Commands for this machine: the local cluster, and the runs that are recorded here."""

from __future__ import annotations

from pathlib import Path

from trainwright.cli.commands import flags
from trainwright.cli.commands.command import Arguments, Command, Example


def _up(parser: Arguments) -> None:
    flags.directory(parser)
    parser.add_argument(
        "--port", type=flags.port, default=0, help="the API server's port (default: the last one, or a free one)"
    )
    parser.add_argument(
        "-d", "--detach", action="store_true", help="start it in the background and return when it is ready"
    )
    parser.add_argument(
        "--nodes",
        metavar="N|FILE",
        help="show this machine as N equal nodes, or as those of a YAML file (default: as the last time, or one)",
    )
    parser.add_argument(
        "--network",
        choices=("shared", "isolated"),
        help="pods share this machine's network, or each has one of its own (default: as the last time, or shared)",
    )
    parser.add_argument(
        "--api-only", action="store_true", help="start only the API server with its CRDs: no operator, no pods"
    )
    parser.add_argument("--ui", action="store_true", help="serve the live page too, and say where it is")


def _ui(parser: Arguments) -> None:
    parser.add_argument(
        "--port", type=flags.port, default=0, help="the page's port (default: the last one, or a free one)"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open it in a browser")
    parser.add_argument("--read-only", action="store_true", help="show only: no suspend, resume, scale or delete")
    flags.target(parser)


def _down(parser: Arguments) -> None:
    flags.directory(parser)
    parser.add_argument("--suspend", action="store_true", help="suspend jobs that run, without asking")
    parser.add_argument("--force", action="store_true", help="end jobs that run, without asking; their records stay")


def _status(parser: Arguments) -> None:
    flags.output(parser, "text", "json", default="text")
    flags.directory(parser)


def _backup(parser: Arguments) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write it, such as cluster.tar.gz")
    flags.directory(parser)


def _restore(parser: Arguments) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that `trainwright backup` wrote")
    parser.add_argument("--force", action="store_true", help="replace a cluster that is there")
    flags.directory(parser)


def _runs(parser: Arguments) -> None:
    parser.usage = (
        "trainwright runs [-o json]\n"
        "       trainwright runs describe ID [-o json]\n"
        "       trainwright runs delete (ID… | --finished)"
    )
    actions = ("list", "describe", "delete")
    parser.add_argument("action", nargs="?", default="list", choices=actions, help="list (default), describe or delete")
    parser.add_argument("ids", nargs="*", metavar="ID", help="runs by id; a TrainJob's name means its newest run")
    parser.add_argument("--finished", action="store_true", help="delete all runs that are over")
    parser.add_argument("--force", action="store_true", help="delete also a run that is not known to be over")
    flags.output(parser, "table", "json", default="table")
    flags.directory(parser)


def _doctor(parser: Arguments) -> None:
    flags.output(parser, "text", "json", default="text")
    flags.quiet(parser, "print only what is not in order")
    flags.target(parser)


COMMANDS = (
    Command(
        "up",
        "start a local cluster: an API server, the operator, and a node that runs pods as processes",
        _up,
        "machine.up:up",
        (
            Example("trainwright up --detach", "start it in the background"),
            Example("trainwright up", "start it here, until Ctrl-C"),
            Example("trainwright up --nodes 2", "show this machine as two nodes, each with half of it"),
            Example("trainwright up --network isolated", "a network for each pod: two jobs never meet"),
            Example("trainwright up --detach --ui", "with the live page"),
        ),
    ),
    Command(
        "down",
        "stop the local cluster; asks what becomes of jobs that run",
        _down,
        "machine.down:down",
        (
            Example("trainwright down", "stop it"),
            Example("trainwright down --suspend", "suspend the jobs that run first"),
        ),
    ),
    Command(
        "status",
        "show whether the local cluster runs and how to reach it",
        _status,
        "machine.up:status",
        (Example("trainwright status", "is it up, and where is its kubeconfig?"),),
        codes=((1, "no local cluster is running"),),
    ),
    Command(
        "ui",
        "open a live page of TrainJobs, curves, logs and the history of runs; needs no cluster",
        _ui,
        "machine.ui:ui",
        (
            Example("trainwright ui", "the local cluster, and the runs that are kept here"),
            Example("trainwright ui --context prod --read-only", "a cluster, with the rights of that context"),
            Example("trainwright ui --no-open --port 8088", "say where it is, for a browser elsewhere through ssh -L"),
        ),
    ),
    Command(
        "runs",
        "list the runs that are recorded here, describe one or delete some; needs no cluster",
        _runs,
        "machine.runs:runs",
        (
            Example("trainwright runs", "all of them, newest first"),
            Example("trainwright runs describe mnist", "one: its end, its attempts, where its files are"),
            Example("trainwright runs delete --finished", "delete all that are over"),
        ),
    ),
    Command(
        "backup",
        "write the state of the local cluster to a file, also while it runs",
        _backup,
        "machine.backup:backup",
        (
            Example(
                "trainwright backup cluster.tar.gz", "objects, certificates and tokens; runs are files of their own"
            ),
        ),
    ),
    Command(
        "restore",
        "put the state of a backup in place, while the local cluster is down",
        _restore,
        "machine.backup:restore",
        (Example("trainwright restore cluster.tar.gz --dir new", "into a directory without a cluster"),),
    ),
    Command(
        "doctor",
        "look whether this machine, or a cluster, is ready for training, and say what mends it",
        _doctor,
        "doctor.command:doctor",
        (
            Example("trainwright doctor", "this machine, and its local cluster if it is up"),
            Example("trainwright doctor --context prod", "a cluster: CRDs, rights, webhooks, operator, nodes"),
            Example("trainwright doctor --json", "for programs"),
        ),
        codes=((1, "something stands in the way of training"),),
    ),
)
