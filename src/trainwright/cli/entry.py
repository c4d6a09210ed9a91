"""Where the programs begin: `trainwright`, and `kubectl-trainjob`, which kubectl finds as `kubectl trainjob`.

`--version` is answered before anything is imported for it.
"""

from __future__ import annotations

import sys

from trainwright.version import __version__


def main() -> int:
    if sys.argv[1:] == ["--version"]:
        print(f"trainwright {__version__}")
        return 0
    import gc

    gc.set_threshold(50_000, 20, 20)  # what is imported stays: looking at it a hundred times meanwhile is in vain
    from trainwright.cli.main import main as command

    return command()


def kubectl() -> int:
    """The same commands as a plugin of kubectl: on the cluster that kubectl itself would use."""
    import os

    config = os.path.join(os.path.expanduser("~"), ".kube", "config")
    if not os.environ.get("KUBECONFIG") and os.path.exists(config):
        os.environ["KUBECONFIG"] = config
    return main()
