"""Commands for TrainJobs in a cluster."""

from __future__ import annotations

from trainwright.cli.commands import flags
from trainwright.cli.commands.command import Arguments, Command, Example


def _run(parser: Arguments) -> None:
    parser.usage = (
        "trainwright run [flags] (train.py | -m MODULE | FILE) [-- ARGUMENTS]\n"
        "       trainwright run [flags] -- COMMAND"
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="train.py | FILE",
        help="a Python script; or a file with one TrainJob and the objects it needs, - for standard input",
    )
    parser.add_argument(
        "-f", "--filename", metavar="FILE", help="the file with the TrainJob, as other commands take it"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a Python module in place of a script")
    parser.add_argument("--nodes", type=flags.positive, metavar="N", help="number of nodes (default: the runtime's)")
    parser.add_argument("--procs", type=flags.positive, metavar="N", help="processes on each node")
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        help="the runtime (default: by the script's imports; torch-distributed for PyTorch)",
    )
    parser.add_argument("--cpus", metavar="N", help="CPUs of each node, such as 4")
    parser.add_argument("--memory", metavar="SIZE", help="memory of each node, such as 16Gi")
    parser.add_argument("--gpus", type=flags.positive, metavar="N", help="GPUs of each node")
    parser.add_argument("--name", help="name of the TrainJob (default: the script's, with random letters)")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the program; may be repeated. In a cluster nothing else of your environment is set",
    )
    parser.add_argument(
        "--workdir",
        metavar="DIR",
        help="working directory (default: this one). It goes along to another cluster, unless it is none",
    )
    parser.add_argument(
        "--python", metavar="PYTHON", help="the Python to run with (default: the active virtualenv's or conda's)"
    )
    parser.add_argument(
        "--retries", type=flags.count, default=0, metavar="N", help="start again up to N times after a failure"
    )
    parser.add_argument(
        "--hang-after",
        type=flags.seconds,
        metavar="SECONDS",
        help="say that it hangs after so long without output and progress (default: 120; 0 for never). Local cluster",
    )
    parser.add_argument("--image", help="container image (default: the runtime's). The local cluster uses none")
    parser.add_argument(
        "--output-claim", metavar="CLAIM", help="volume claim of the cluster that keeps $TRAINWRIGHT_OUTPUT"
    )
    parser.add_argument("-d", "--detach", action="store_true", help="return when the TrainJob is created")
    parser.add_argument("--dry-run", action="store_true", help="print what would be created, and create nothing")
    flags.quiet(parser, "print only the lines of the ranks, and what went wrong")
    flags.target(parser)


def _submit(parser: Arguments) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a file with one TrainJob; without it, what waits is delivered"
    )
    flags.quiet(parser)
    flags.target(parser)


def _get(parser: Arguments) -> None:
    parser.usage = "trainwright get [flags] [KIND] [NAME…]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KIND | NAME",
        help="trainjobs (tj, the default), runtimes (rt) or pods (po); and names, also as KIND/NAME",
    )
    parser.add_argument("-l", "--selector", metavar="LABELS", help="only objects with these labels, such as team=a")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    parser.add_argument("-w", "--watch", action="store_true", help="go on with a row for every change, until Ctrl-C")
    flags.output(parser, "table", "wide", "yaml", "json", "name", default="table")
    flags.target(parser)


def _logs(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob, or the id of a run; a name means its newest run")
    parser.add_argument("-f", "--follow", action="store_true", help="follow the output until the TrainJob ends")
    parser.add_argument("--rank", metavar="RANKS", help="only these ranks, such as 0 or 0,2 or 0-3")
    parser.add_argument(
        "--tail", type=flags.count, metavar="N", help="only the last N lines of each rank (with -f: of each container)"
    )
    parser.add_argument("--since", metavar="WHEN", help="only newer lines: 10m, 1h30m, or a time in RFC 3339")
    parser.add_argument("-p", "--previous", action="store_true", help="the attempt before the last one")
    parser.add_argument("--timestamps", action="store_true", help="each line with its time")
    flags.output(parser, "text", "json", default="text")
    flags.target(parser)


def _describe(parser: Arguments) -> None:
    parser.usage = "trainwright describe [flags] [KIND] NAME…"
    parser.add_argument(
        "words", nargs="+", metavar="KIND | NAME", help="trainjobs (tj, the default) or runtimes (rt); and names"
    )
    flags.target(parser)


def _events(parser: Arguments) -> None:
    parser.add_argument("words", nargs="*", metavar="NAME", help="of these TrainJobs and their parts (default: all)")
    parser.add_argument("--types", metavar="TYPES", help="only these types: Normal, Warning")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    parser.add_argument("-w", "--watch", action="store_true", help="go on with every new event, until Ctrl-C")
    flags.output(parser, "table", "json", default="table")
    flags.target(parser)


def _jobs(parser: Arguments) -> None:
    """Several TrainJobs, by name, file or label."""
    parser.add_argument("words", nargs="*", metavar="NAME", help="the TrainJobs, or the ids of their runs")
    parser.add_argument(
        "-f", "--filename", dest="files", action="append", default=[], metavar="FILE", help="the TrainJobs of this file"
    )
    parser.add_argument("-l", "--selector", metavar="LABELS", help="those with these labels, such as team=a")
    flags.quiet(parser)


def _suspend(parser: Arguments) -> None:
    _jobs(parser)
    flags.target(parser)


def _scale(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob; its runtime has an elasticPolicy")
    parser.add_argument("--nodes", type=flags.positive, required=True, metavar="N", help="number of nodes from now on")
    flags.quiet(parser)
    flags.target(parser)


def _delete(parser: Arguments) -> None:
    _jobs(parser)
    parser.add_argument("--all", dest="every", action="store_true", help="all of the namespace; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--ignore-not-found", action="store_true", help="one that is not there is no error")
    flags.target(parser)


def _why(parser: Arguments) -> None:
    parser.add_argument("name", help="the TrainJob, or the id of its run")
    flags.output(parser, "text", "json", default="text")
    flags.target(parser)


def _wait(parser: Arguments) -> None:
    parser.add_argument("words", nargs="+", metavar="NAME", help="the TrainJobs, or the ids of their runs")
    parser.add_argument(
        "--for",
        dest="goal",
        metavar="GOAL",
        help="Complete, Failed, Running, Suspended, delete, create, condition=TYPE[=STATUS] or"
        " jsonpath={.status.state}=VALUE (default: the end, and exit code 1 unless it is complete)",
    )
    parser.add_argument(
        "--timeout", type=flags.seconds, metavar="TIME", help="give up after so long: 600, 90s, 10m or 1h30m"
    )
    flags.quiet(parser)
    flags.target(parser)


COMMANDS = (
    Command(
        "run",
        "run a script, a module, a command or a TrainJob, and follow it to its end",
        _run,
        "run.command:run",
        (
            Example("trainwright run train.py", "a script, with your Python and your environment"),
            Example(
                "trainwright run train.py --nodes 2 -- --lr 0.1", "on two nodes; the script's arguments go after --"
            ),
            Example("trainwright run -- ./train.sh --fast", "any command"),
            Example("trainwright run job.yaml", "a TrainJob from a file"),
            Example("trainwright run train.py --dry-run", "print what would be created"),
        ),
        settle=flags.settle_file,
        has_rest=True,
        codes=((1, "the job failed or was refused"), (130, "Ctrl-C")),
    ),
    Command(
        "submit",
        "hand over a TrainJob also while its cluster is away: it is kept here, and delivered once",
        _submit,
        "run.submit:submit",
        (
            Example("trainwright submit job.yaml", "created at once, or kept until the cluster answers"),
            Example("trainwright submit", "deliver what waits"),
        ),
    ),
    Command(
        "get",
        "show TrainJobs with what they wait for, runtimes, or pods",
        _get,
        "jobs.get:get",
        (
            Example("trainwright get", "all TrainJobs of the namespace"),
            Example("trainwright get mnist -o yaml", "one, as YAML"),
            Example("trainwright get -A -w", "those of all namespaces, and every change of them"),
            Example("trainwright get runtimes", "the runtimes, and which of them can run on this machine"),
            Example("trainwright get pods -l jobset.sigs.k8s.io/jobset-name=mnist -o wide", "the pods of a TrainJob"),
        ),
    ),
    Command(
        "logs",
        "print the output of a TrainJob's ranks, each line with its rank in front",
        _logs,
        "logs.command:logs",
        (
            Example("trainwright logs mnist", "all ranks and attempts, in the order of time"),
            Example("trainwright logs -f mnist --tail 20", "follow it, beginning with the last lines"),
            Example("trainwright logs mnist --rank 0,2-3 --since 10m", "some ranks, the last ten minutes"),
        ),
    ),
    Command(
        "describe",
        "show all about a TrainJob or a runtime: its state, pods by rank, objects and events",
        _describe,
        "jobs.describe:describe",
        (
            Example("trainwright describe mnist", "a TrainJob"),
            Example("trainwright describe runtime torch-distributed", "a runtime, and whether it can run here"),
        ),
    ),
    Command(
        "events",
        "show what happened to a TrainJob and all of its parts, oldest first",
        _events,
        "jobs.events:events",
        (
            Example("trainwright events mnist", "of the TrainJob, its JobSet, Jobs and pods"),
            Example("trainwright events --types Warning -A", "what went wrong anywhere"),
        ),
    ),
    Command(
        "wait",
        "wait until TrainJobs have ended, or are as --for says; fails unless they are complete",
        _wait,
        "jobs.wait:wait",
        (
            Example("trainwright wait mnist --timeout 10m", "exit code 0 when it is complete, 1 when it failed"),
            Example("trainwright wait mnist --for Running --timeout 60", "until its pods run"),
            Example("trainwright wait mnist --for jsonpath={.status.state}=Complete", "until a field has a value"),
        ),
        codes=((1, "it failed, is gone, or can no longer become so"), (124, "the time is over")),
    ),
    Command(
        "suspend",
        "end the processes of TrainJobs and keep the jobs, to go on later",
        _suspend,
        "jobs.suspend:suspend",
        (Example("trainwright suspend mnist", "its processes end, the TrainJob stays"),),
    ),
    Command(
        "resume",
        "let suspended TrainJobs go on",
        _suspend,
        "jobs.suspend:resume",
        (Example("trainwright resume mnist", "its pods start again"),),
    ),
    Command(
        "scale",
        "change the number of nodes of an elastic TrainJob while it trains",
        _scale,
        "jobs.scale:scale",
        (
            Example(
                "trainwright scale mnist --nodes 4", "nodes join or leave; the others go on from the last checkpoint"
            ),
        ),
    ),
    Command(
        "delete",
        "delete TrainJobs and wait until their processes have ended; their records stay",
        _delete,
        "jobs.delete:delete",
        (
            Example("trainwright delete mnist cifar", "these; their logs stay: trainwright runs"),
            Example("trainwright delete -l team=a", "those with a label"),
            Example("trainwright delete --all --yes", "all of the namespace, without a question"),
        ),
    ),
    Command(
        "why",
        "say why a TrainJob failed or waits, and what to do about it",
        _why,
        "jobs.why:why",
        (
            Example("trainwright why mnist", "the reason, the objects that lead to it, and the mend"),
            Example("trainwright why mnist -o json", "the same for programs"),
        ),
    ),
)
