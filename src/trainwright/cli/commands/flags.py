"""Flags that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainwright.cli.clusters.directory import default_directory
from trainwright.cli.commands.command import Arguments
from trainwright.cli.failure import Failure


def directory(parser: Arguments) -> None:
    parser.add_argument(
        "--dir",
        dest="directory",
        type=directory_path,
        default=default_directory(),
        metavar="DIR",
        help="directory of the local cluster's state (default: trainwright in the XDG state directory)",
    )


def target(parser: Arguments) -> None:
    """The flags that choose the cluster; `main` turns them into a `Target`."""
    group = parser.add_argument_group("cluster", "The local cluster, unless one of these or KUBECONFIG names another.")
    group.add_argument("--kubeconfig", type=Path, metavar="FILE", help="kubeconfig file of the cluster")
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    group.add_argument("--local", action="store_true", help="the local cluster, whatever KUBECONFIG says")
    group.add_argument(
        "--dir",
        dest="directory",
        type=directory_path,
        metavar="DIR",
        help="the local cluster of this directory; with another cluster: where runs are recorded",
    )
    group.add_argument("-n", "--namespace", metavar="NS", help="the namespace (default: the context's, or default)")


def quiet(parser: Arguments, what: str = "print nothing but errors") -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help=what)


def output(parser: Arguments, *choices: str, default: str) -> None:
    """`-o FORM`, and `--json` where that is one of the forms."""
    parser.add_argument("-o", "--output", choices=choices, default=default, help=f"how to show it (default: {default})")
    if "json" in choices:
        parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as -o json")


def files(parser: Arguments) -> None:
    """Files to read, as words or after -f."""
    parser.add_argument(
        "paths", nargs="*", metavar="FILE", help="YAML or JSON with TrainJobs and runtimes, - for standard input"
    )
    files_by_flag(parser)


def files_by_flag(parser: Arguments) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of objects; may be repeated",
    )
    configuration(parser)


def configuration(parser: Arguments) -> None:
    """The operator's configuration and the namespace, for commands that need no cluster."""
    parser.add_argument("-n", "--namespace", metavar="NS", help="namespace of objects that name none")
    gates(parser)


def gates(parser: Arguments) -> None:
    parser.add_argument("--config", metavar="FILE", help="the operator's configuration")
    parser.add_argument("--feature-gates", metavar="GATE=BOOL,…", help="such as TrainJobStatus=true")


def settle_files(found: dict[str, Any]) -> None:
    found["files"] = [*found["files"], *found.pop("paths")]
    if not found["files"]:
        raise Failure("no file is given: name one, or - for standard input", 2)


def settle_file(found: dict[str, Any]) -> None:
    """One file, as a word or after -f."""
    named = found.pop("filename")
    if named is not None and found["file"] is not None:
        raise Failure(f"{found['file']} and -f {named}: one file is enough", 2)
    found["file"] = found["file"] if named is None else named


# Types of values


def directory_path(text: str) -> Path:
    """A directory, or a place where one can be made."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text is no directory")
    path = Path(text).expanduser()
    if os.path.lexists(path) and not os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return path


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """A length of time: a number of seconds, or `90s`, `10m`, `1h30m`."""
    if re.fullmatch(r"(\d{1,9}[smhd])+", text):
        return float(sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text)))
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, nor a time such as 10m")
    return number


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of whole numbers from `least` to `most`."""
    span = f"of {least} or more" if most is None else f"from {least} to {most}"

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {span}")
        return number

    return convert


count, positive, port = whole(0), whole(1), whole(0, 65535)
