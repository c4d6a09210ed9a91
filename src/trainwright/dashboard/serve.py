"""The page's server, for as long as an `async with` block runs: on one's own machine, or in a cluster."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from types import TracebackType

from trainwright.client.credentials import StaticCredentials
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.curves import Curves
from trainwright.dashboard.guard import Door, Guard, KeyDoor, TokenDoor, with_credentials
from trainwright.dashboard.site import Site
from trainwright.dashboard.viewer import Viewer
from trainwright.http.server import Server
from trainwright.runs import RunsHome

SHUTDOWN_SECONDS = 0.2
"""Streams never end by themselves."""


class Page(Server):
    """The server of a site. At its end, its viewers are closed."""

    def __init__(
        self,
        site: Site,
        where: socket.socket | tuple[str, int],
        viewers: Callable[[], Iterable[Viewer]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(site, where, tls, shutdown_seconds=SHUTDOWN_SECONDS)
        self.site = site
        self._viewers = viewers

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        for viewer in self._viewers():
            await viewer.close()


def own_page(
    listener: socket.socket,
    key: str,
    connection: Callable[[], Connection],
    home: RunsHome,
    *,
    may_change: bool = True,
    flag: str = "",
    where: str = "",
) -> Page:
    """The page of one person on a socket of the loopback interface. Whoever has the key acts as that person."""
    viewer = Viewer(connection, Curves(home), may_change=may_change)
    door: Door = KeyDoor(key, viewer, f"trainwright-{listener.getsockname()[1]}")
    return Page(Site(Guard(), door, home=home, flag=flag, where=where), listener, lambda: (viewer,))


def cluster_page(
    where: socket.socket | tuple[str, int],
    connection: Callable[[], Connection],
    *,
    hosts: Iterable[str] = (),
    may_change: bool = False,
    name: str = "",
    tls: ssl.SSLContext | None = None,
) -> Page:
    """The page of a cluster: every viewer with the rights of an own token, read-only unless told otherwise."""

    def viewer_of(credentials: StaticCredentials) -> Viewer:
        return Viewer(lambda: with_credentials(connection(), credentials), Curves(), may_change=may_change)

    door = TokenDoor(viewer_of)
    return Page(Site(Guard(hosts), door, where=name), where, door.viewers, tls)
