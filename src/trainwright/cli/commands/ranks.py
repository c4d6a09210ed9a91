"""Commands for one rank of a TrainJob that runs."""

from __future__ import annotations

from trainwright.cli.commands import flags
from trainwright.cli.commands.command import Arguments, Command, Example


def _rank(parser: Arguments) -> None:
    parser.add_argument("--rank", type=flags.count, metavar="N", help="the rank (default: the first that runs)")


def _container(parser: Arguments) -> None:
    parser.add_argument("-c", "--container", metavar="NAME", help="the container (default: the pod's only one)")


def _exec(parser: Arguments) -> None:
    parser.usage = "trainwright exec [flags] NAME [-- COMMAND]"
    parser.add_argument("name", help="the TrainJob, or the id of its run")
    _rank(parser)
    _container(parser)
    parser.add_argument("-i", "--stdin", action="store_true", help="pass standard input on to the command")
    parser.add_argument("-t", "--tty", action="store_true", help="give the command a terminal")
    flags.target(parser)


def _cp(parser: Arguments) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a path of this machine, or NAME:PATH")
    parser.add_argument("destination", metavar="TARGET", help="NAME:PATH, or a path of this machine")
    _rank(parser)
    _container(parser)
    flags.target(parser)


def _port_forward(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob, or the id of its run")
    parser.add_argument("ports", nargs="+", metavar="[LOCAL:]REMOTE", help="a port here, and the rank's")
    _rank(parser)
    flags.target(parser)


def _top(parser: Arguments) -> None:
    parser.add_argument("name", nargs="?", help="the TrainJob, or the id of its run (default: all that run)")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    flags.output(parser, "table", "json", default="table")
    flags.target(parser)


COMMANDS = (
    Command(
        "top",
        "show what each rank uses of CPU, memory and GPUs now",
        _top,
        "ranks.top:top",
        (
            Example("trainwright top", "all TrainJobs of the namespace"),
            Example("trainwright top mnist", "the ranks of one"),
        ),
    ),
    Command(
        "exec",
        "run a command in a rank, with its variables, directory and processes; without a command, a shell",
        _exec,
        "ranks.exec:run",
        (
            Example("trainwright exec mnist -- nvidia-smi", "what its GPUs do"),
            Example("trainwright exec mnist --rank 1 -- env", "in another rank"),
            Example("trainwright exec mnist", "a shell in the first rank"),
        ),
        has_rest=True,
        codes=((1, "it could not be run"), (0, "and any other: the command's own")),
    ),
    Command(
        "cp",
        "copy files and directories into a rank or out of it",
        _cp,
        "ranks.cp:cp",
        (
            Example("trainwright cp mnist:/tmp/profile.json .", "out of the first rank"),
            Example("trainwright cp data mnist:/tmp/data --rank 1", "a directory into another"),
        ),
    ),
    Command(
        "port-forward",
        "let a port of this machine lead to a port of a rank, until Ctrl-C",
        _port_forward,
        "ranks.portforward:port_forward",
        (
            Example("trainwright port-forward mnist 6006", "TensorBoard in the first rank, at the same port here"),
            Example("trainwright port-forward mnist 8080:80 --rank 1", "another port here"),
        ),
    ),
)
