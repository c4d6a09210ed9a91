"""`trainwright ui`: the live page of the local cluster, or of another, on this machine.

The page needs no cluster: with none up it shows the history of runs, and follows a cluster as soon as one is there.
Everybody on this machine can connect to its port, so it asks for a key, which only the owner of the state directory can
read. The browser that this command opens gets it from a file, not from an address.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from pathlib import Path

from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.machine.keptport import bind, bind_kept_port
from trainwright.client.errors import ConfigError
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.serve import Page, own_page
from trainwright.runs import RunsHome, files

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that look like others."""
PORT = "ui-port"
OPENING = """<!doctype html><meta charset="utf-8"><title>Trainwright</title>
<form method="post" action="http://127.0.0.1:{port}/session"><input type="hidden" name="key" value="{key}">
<noscript><button>Open the page</button></noscript></form><script>document.forms[0].submit()</script>
"""


def ui(port: int, no_open: bool, read_only: bool, target: Target, namespace: str) -> int:
    target.directory.create()
    with listening(target.directory, port) as listener:
        page = page_of(target, listener, may_change=not read_only)
        return asyncio.run(_serve(target.directory, page, listener, no_open=no_open))


async def _serve(cluster: ClusterDirectory, page: Page, listener: socket.socket, *, no_open: bool) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with page:
        print(announcement(cluster, page.port), flush=True)
        if not no_open:
            await asyncio.to_thread(_open, cluster, page.port)
        await stopped.wait()
    return 0


def listening(cluster: ClusterDirectory, port: int) -> socket.socket:
    """A socket at this port, or at the one of last time."""
    if not port:
        return bind_kept_port(cluster.path / PORT, "the page")
    try:
        return bind(port)
    except OSError as error:
        raise Failure(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error


def page_of(target: Target, listener: socket.socket, *, may_change: bool) -> Page:
    def connection() -> Connection:
        try:
            return target.kubeconfig()
        except Failure as failure:  # the page says so, and goes on
            raise ConfigError(failure.message) from failure

    return own_page(
        listener,
        key_of(target.directory),
        connection,
        RunsHome(target.directory.path),
        may_change=may_change,
        flag=target.flag(),
        where=target.where or "the local cluster",
    )


def key_of(cluster: ClusterDirectory) -> str:
    """The key of the directory's page: made once, so that a browser stays signed in."""
    path = cluster.path / "ui-key"
    try:
        files.write_new(path, "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(4)).encode())
    except FileExistsError:
        pass
    return path.read_text().strip()


def kept_port(cluster: ClusterDirectory) -> int:
    return int((cluster.path / PORT).read_text())


def announcement(cluster: ClusterDirectory, port: int, until: str = "Ctrl-C") -> str:
    return (
        f"The page is at http://127.0.0.1:{port}/ until {until}. A browser that is not signed in asks for the key:\n\n"
        f"  {key_of(cluster)}\n"
    )


def _open(cluster: ClusterDirectory, port: int) -> None:
    """Opens the page in a browser, which gets the key from a file that only its owner can read."""
    import webbrowser

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return  # a browser of the terminal would take it over
    opening = cluster.path / "ui.html"
    files.replace(opening, OPENING.format(port=port, key=key_of(cluster)).encode(), durable=False)
    try:
        webbrowser.open(Path(opening).as_uri())
    except webbrowser.Error:
        pass
