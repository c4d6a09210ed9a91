"""The commands of `trainwright`: their names, flags and help.

Each command is one entry of `COMMANDS`: its help, its flags, and the function that does the work. The function's module
is imported only when the command is called. A `Failure` becomes one line on standard error and an exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from trainwright.cli.directory import default_directory
from trainwright.cli.failure import Failure
from trainwright.version import __version__

Arguments = argparse.ArgumentParser


class Command(NamedTuple):
    name: str
    help: str
    declare: Callable[[Arguments], None]
    work: str
    """`module:function`; the function takes the parsed flags as keywords and returns the exit code."""


def _directory(parser: Arguments) -> None:
    parser.add_argument(
        "--dir",
        dest="directory",
        type=Path,
        default=default_directory(),
        metavar="DIR",
        help="directory of the local cluster's state (default: trainwright in the XDG state directory)",
    )


def _cluster(parser: Arguments) -> None:
    _directory(parser)
    parser.add_argument("-n", "--namespace", default="default", metavar="NS", help="the namespace (default: default)")


def _up(parser: Arguments) -> None:
    _directory(parser)
    parser.add_argument(
        "--port", type=_port, default=0, help="the API server's port (default: the last one, or a free one)"
    )
    parser.add_argument(
        "-d", "--detach", action="store_true", help="start it in the background and return when it is ready"
    )
    parser.add_argument(
        "--api-only", action="store_true", help="start only the API server with its CRDs: no operator, no pods"
    )


def _run(parser: Arguments) -> None:
    parser.add_argument("file", help="a file with one TrainJob and the objects it needs, or - for standard input")
    _cluster(parser)


def _get(parser: Arguments) -> None:
    kinds = ("trainjobs", "runtimes", "pods")
    parser.add_argument(
        "kind", nargs="?", default="trainjobs", choices=kinds, help="trainjobs (default), runtimes or pods"
    )
    parser.add_argument("name", nargs="?", help="show only this one")
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="how to show it (default: table)"
    )
    _cluster(parser)


def _logs(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob")
    parser.add_argument("-f", "--follow", action="store_true", help="follow the output until the TrainJob ends")
    _cluster(parser)


def _delete(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob")
    _cluster(parser)


def _files(parser: Arguments) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="YAML or JSON with TrainJobs and runtimes, - for standard input; may be repeated",
    )
    parser.add_argument("-n", "--namespace", metavar="NS", help="namespace of objects that name none")
    parser.add_argument("--config", metavar="FILE", help="the operator's configuration")
    parser.add_argument("--feature-gates", metavar="GATE=BOOL,…", help="such as TrainJobStatus=true")


def _render(parser: Arguments) -> None:
    _files(parser)
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="how to print (default: yaml)")


def _validate(parser: Arguments) -> None:
    _files(parser)
    parser.add_argument(
        "--patch", metavar="UPDATE", help="a file with a merge patch: validate it as an update of the TrainJob"
    )


def _explain(parser: Arguments) -> None:
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="show only this field and those under it, such as spec.replicatedJobs"
    )
    _files(parser)
    parser.add_argument("-o", "--output", choices=("tree", "json"), default="tree", help="how to print (default: tree)")


def _plugins(parser: Arguments) -> None:
    parser.add_argument("--config", metavar="FILE", help="the operator's configuration")
    parser.add_argument("--feature-gates", metavar="GATE=BOOL,…", help="such as TrainJobStatus=true")
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="how to show it (default: table)"
    )


def _operator(parser: Arguments) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="the operator's configuration file")
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig file (default: the service account of the pod)"
    )
    parser.add_argument("--feature-gates", default="", metavar="GATE=BOOL,…", help="such as TrainJobStatus=true")


def _initialize(parser: Arguments) -> None:
    parser.add_argument("step", choices=("dataset", "model"), help="what it is: decides the variables' meaning")
    parser.add_argument(
        "uri", nargs="?", metavar="URI", help="hf://, s3://, https:// or file:// (default: the variable STORAGE_URI)"
    )
    parser.add_argument(
        "--target", type=Path, metavar="DIR", help="where it goes (default: /workspace/dataset or /workspace/model)"
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="what other runs may use again, or none (default: TRAINWRIGHT_CACHE_DIR, or the XDG cache directory)",
    )
    parser.add_argument(
        "--retry-seconds",
        type=_seconds,
        metavar="N",
        help="give up after so long without a byte (default: TRAINWRIGHT_RETRY_SECONDS, or 300)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return seconds


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not a port: 0 to 65535")
    return port


COMMANDS = (
    Command(
        "up", "start a local cluster: an API server, the operator, and a node that runs pods as processes", _up, "up:up"
    ),
    Command("down", "stop the local cluster and every process of its pods", _directory, "up:down"),
    Command("status", "show whether the local cluster runs and how to reach it", _directory, "up:status"),
    Command(
        "run",
        "run a TrainJob and follow it to its end, on the local cluster or on a new one for this run",
        _run,
        "run:run",
    ),
    Command("get", "show TrainJobs with what they wait for, runtimes, or pods", _get, "get:get"),
    Command("logs", "print the output of a TrainJob's ranks, each line with its rank in front", _logs, "logs:logs"),
    Command("delete", "delete a TrainJob and wait until its processes have ended", _delete, "delete:delete"),
    Command(
        "render",
        "print the objects that a cluster would get for a TrainJob, without a cluster",
        _render,
        "render:render",
    ),
    Command(
        "validate",
        "list every reason for which a TrainJob or runtime would be refused, without a cluster",
        _validate,
        "validate:validate",
    ),
    Command(
        "explain",
        "show where the value of each rendered field comes from, without a cluster",
        _explain,
        "explain:explain",
    ),
    Command(
        "plugins",
        "list the plugins with their source, order and extension points, and errors of broken ones",
        _plugins,
        "plugins:plugins",
    ),
    Command(
        "initialize",
        "fetch a dataset or a model, as a TrainJob's initializers do",
        _initialize,
        "initialize:initialize",
    ),
    Command("operator", "run the operator in a cluster", _operator, "operate:operate"),
)


def parser() -> Arguments:
    root = argparse.ArgumentParser(
        prog="trainwright",
        description="Distributed ML training from one YAML file: on a Kubernetes cluster or on this machine alone.",
    )
    root.add_argument("--version", action="version", version=f"trainwright {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}."
        )
        command.declare(sub)
        sub.set_defaults(work=command.work)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. An error ends in one message."""
    flags = vars(parser().parse_args(argv))
    module, function = flags.pop("work").split(":")
    try:
        code: int = getattr(import_module(f"trainwright.cli.{module}"), function)(**flags)
    except Failure as failure:
        print(f"trainwright: {failure.message}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has left: not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


if __name__ == "__main__":
    sys.exit(main())
