"""Commands for those who run the operator, and for the steps of a TrainJob."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.cli.commands import flags
from trainwright.cli.commands.command import Arguments, Command, Example


def _plugins(parser: Arguments) -> None:
    flags.gates(parser)
    flags.output(parser, "table", "json", default="table")


def _operator(parser: Arguments) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="the operator's configuration file")
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig file (default: the service account of the pod)"
    )
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,…",
        help="such as TrainJobStatus=true; may be given several times",
    )
    parser.add_argument(
        "--metrics-auth", action="store_true", help="serve metrics only to those who may read them (metrics.auth)"
    )
    parser.add_argument(
        "--take-over", action="store_true", help="serve a local cluster, or one whose webhooks call another operator"
    )


def _dashboard(parser: Arguments) -> None:
    parser.add_argument(
        "--kubeconfig",
        dest="config",
        type=Path,
        metavar="FILE",
        help="where the API server is (default: as for pods)",
    )
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument("--host", default="", metavar="ADDRESS", help="listen there only (default: on all interfaces)")
    parser.add_argument("--port", type=flags.port, default=8080, help="listen there (default: 8080)")
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which browsers reach it, such as the ingress's; may be repeated",
    )
    parser.add_argument(
        "--allow-changes", action="store_true", help="let viewers suspend, resume, scale and delete what they may"
    )
    parser.add_argument("--name", default="", help="what the page calls this cluster")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="serve HTTPS with this certificate")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="and this key")


def _install(parser: Arguments) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value of the Helm chart, such as replicas=3 or kueue.enabled=true; may be given several times",
    )
    parser.add_argument(
        "-f", "--values", dest="files", type=Path, action="append", default=[], metavar="FILE", help="a file of values"
    )
    parser.add_argument("--show", action="store_true", help="print the objects as YAML, and need no cluster")
    parser.add_argument("-y", "--yes", action="store_true", help="carry the plan out without asking")
    parser.add_argument(
        "--take-over", action="store_true", help="where webhooks call another operator, which you have stopped"
    )
    flags.target(parser)


def _uninstall(parser: Arguments) -> None:
    parser.add_argument(
        "--delete-crds", action="store_true", help="delete the CRDs too, and with them every TrainJob and runtime"
    )
    parser.add_argument(
        "--only-finalizers", action="store_true", help="take the operator's finalizers off runtimes, and nothing else"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="carry the plan out without asking")
    flags.target(parser)


def _upgrade_check(parser: Arguments) -> None:
    flags.gates(parser)
    flags.output(parser, "text", "json", default="text")
    flags.target(parser)


def _in_the_system_namespace(found: dict[str, Any]) -> None:
    found["namespace"] = found["namespace"] or SYSTEM_NAMESPACE


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
        type=flags.seconds,
        metavar="N",
        help="give up after so long without a byte (default: TRAINWRIGHT_RETRY_SECONDS, or 300)",
    )


def _completion(parser: Arguments) -> None:
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the shell")
    parser.add_argument("--list", dest="source", metavar="WHAT", help="names, for the scripts: jobs, runs, runtimes, …")


COMMANDS = (
    Command(
        "plugins",
        "list the plugins with their source, order and extension points, and errors of broken ones",
        _plugins,
        "operations.plugins:plugins",
        (Example("trainwright plugins", "those that the operator would load"),),
    ),
    Command(
        "initialize",
        "fetch a dataset or a model, as a TrainJob's initializers do",
        _initialize,
        "operations.initialize:initialize",
        (Example("trainwright initialize dataset file:///data/mnist --target mnist", "copy a folder, as a pod would"),),
    ),
    Command(
        "operator",
        "run the operator in a cluster",
        _operator,
        "operations.operate:operate",
        (Example("trainwright operator --config config.yaml --context prod", "on the cluster of that context"),),
    ),
    Command(
        "dashboard",
        "serve the live page in a cluster: every viewer with the rights of an own token",
        _dashboard,
        "operations.dashboard:dashboard",
        (Example("trainwright dashboard --allowed-host train.example.com", "behind an ingress of that name"),),
    ),
    Command(
        "install",
        "install the operator into a cluster, or upgrade it; shows first what would change",
        _install,
        "operations.install:install",
        (
            Example("trainwright install --context prod", "shows the plan and asks"),
            Example("trainwright install --set runtimes.enabled=true --show", "prints the objects"),
        ),
        settle=_in_the_system_namespace,
    ),
    Command(
        "uninstall",
        "take the operator out of a cluster; TrainJobs, runtimes and CRDs stay",
        _uninstall,
        "operations.install:uninstall",
        (Example("trainwright uninstall --context prod", "shows what would go and asks"),),
        settle=_in_the_system_namespace,
    ),
    Command(
        "upgrade-check",
        "tell what this version would change of a cluster's TrainJobs and runtimes, and what cannot go back",
        _upgrade_check,
        "operations.upgradecheck:upgrade_check",
        (Example("trainwright upgrade-check --context prod", "looks, asks by dry runs, and changes nothing"),),
    ),
    Command(
        "completion",
        "print the script with which bash, zsh or fish completes commands, flags and names",
        _completion,
        "completion.command:completion",
        (
            Example("source <(trainwright completion bash)", "for this shell; the line can go into ~/.bashrc"),
            Example("trainwright completion zsh", "for zsh"),
            Example("trainwright completion fish", "for fish: trainwright completion fish | source"),
        ),
    ),
)
