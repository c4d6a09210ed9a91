"""The cluster that a command acts on: the local one, or another that a kubeconfig names.

In: the flags `--kubeconfig`, `--context`, `--local`, `--dir` and the variable KUBECONFIG. Out: a `Target`. The first of
these that is given decides:

    --kubeconfig, --context   the cluster of that file and context (--context alone: of $KUBECONFIG or ~/.kube/config)
    --local, --dir            the local cluster of the directory
    KUBECONFIG                the cluster of its current context
    nothing                   the local cluster of the default directory

A kubeconfig that a local cluster wrote into its own directory means that local cluster. With another cluster, `--dir`
names the directory where runs are recorded.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.cli.clusters.directory import ClusterDirectory, default_directory
from trainwright.cli.failure import Failure

if TYPE_CHECKING:
    from trainwright.client.client import Client
    from trainwright.client.kubeconfig import Connection


OWN_CONTEXT = "trainwright"
"""The context of the kubeconfig that a local cluster writes."""


class Target:
    """One cluster, and the directory of this machine's state."""

    def __init__(self, directory: ClusterDirectory, remote: Remote | None = None, flag: str = "") -> None:
        self.directory = directory
        """The local cluster's state. Runs on other clusters are recorded there too."""
        self.remote = remote
        self._flag = flag

    @property
    def is_local(self) -> bool:
        return self.remote is None

    @property
    def where(self) -> str | None:
        """`context NAME at SERVER`, or None for the local cluster."""
        if self.remote is None:
            return None
        connection = self.remote.connection()
        return f"context {connection.context} at {connection.server}"

    @property
    def namespace(self) -> str:
        """The namespace of a command that names none: the context's."""
        return "default" if self.remote is None else self.remote.connection().namespace

    def flag(self) -> str:
        """The flags that choose this target again, for a command in a message; nothing where it is the default."""
        return self._flag

    def kubeconfig(self) -> Connection:
        """How to reach the API server now: a local one may have another port after each start."""
        if self.remote is None:
            from trainwright.client import kubeconfig

            return kubeconfig.load(self.directory.kubeconfig)
        return self.remote.connection()

    @asynccontextmanager
    async def client(self, on_warning: Callable[[str], None] | None = None) -> AsyncIterator[Client]:
        """A client of the cluster. The server's warnings go to `on_warning`."""
        from trainwright.client.client import Client

        if self.is_local and self.directory.running_pid() is None:
            raise Failure(
                f"no local cluster is running on {self.directory.path}; start one with: trainwright up --detach"
                f"{self.directory.flag()}"
            )
        async with Client.to(self.kubeconfig(), on_warning=on_warning) as client:
            yield client


class Remote:
    """The kubeconfig files of a cluster, and the context of it."""

    def __init__(self, files: list[Path], context: str | None) -> None:
        self._files = files
        self._context = context
        self._read: tuple[object, Connection] | None = None

    def connection(self) -> Connection:
        """Reads the files when they have changed. Unchanged ones keep their connection: a plugin that asks for
        credentials then runs once for a command, not once for each stream.
        """
        from trainwright.client import kubeconfig
        from trainwright.client.errors import ConfigError

        state = [_stamp(file) for file in self._files]
        if self._read is None or self._read[0] != state:
            try:
                self._read = state, kubeconfig.load_merged(self._files, context=self._context)
            except ConfigError as error:
                raise Failure(str(error)) from error
        return self._read[1]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def choose(
    *,
    kubeconfig: Path | None,
    context: str | None,
    local: bool,
    directory: Path | None,
    environment: Mapping[str, str] = os.environ,
) -> Target:
    """The target that flags and environment name."""
    if local and (kubeconfig or context):
        raise Failure("--local and --kubeconfig or --context exclude each other: choose one", 2)
    cluster = ClusterDirectory(directory or default_directory())
    listed = [Path(part).expanduser() for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if kubeconfig is None and context is None and (local or directory is not None or not listed):
        return Target(cluster, flag=cluster.flag() or (" --local" if listed else ""))
    files = [kubeconfig] if kubeconfig else listed or [Path.home() / ".kube" / "config"]
    flag = f" --kubeconfig {shlex.quote(str(kubeconfig))}" if kubeconfig else ""
    flag += f" --context {shlex.quote(context)}" if context else ""
    flag += cluster.flag()
    if context in (None, OWN_CONTEXT) and len(files) == 1 and (own := _own_cluster(files[0])):
        return Target(own, flag=flag)
    return Target(cluster, Remote(files, context), flag)


def _own_cluster(file: Path) -> ClusterDirectory | None:
    """The local cluster whose directory holds this kubeconfig."""
    cluster = ClusterDirectory(file.expanduser().absolute().parent)
    return cluster if file.name == cluster.kubeconfig.name and cluster.lock_file.exists() else None
