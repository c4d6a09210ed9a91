"""One directory, served over HTTPS on loopback: store, certificates, kubeconfig, socket, and the server behind it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType

from trainwright.clock import Clock, SystemClock
from trainwright.embedded.apiserver.access.credentials import Credentials
from trainwright.embedded.apiserver.access.tls import (
    SERVER_ADDRESSES,
    SERVER_NAMES,
    Authority,
    Certificate,
    server_context,
    write_kubeconfig,
)
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.admission.webhooks import ServiceResolver
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.listener import bind, serving
from trainwright.embedded.apiserver.installed import InstalledSets, as_installed, is_in_place
from trainwright.embedded.apiserver.operations.logs import Kubelet
from trainwright.embedded.apiserver.server import Server
from trainwright.embedded.apiserver.storage.history import WINDOW, Window
from trainwright.embedded.apiserver.storage.sqlite import SqliteStore
from trainwright.embedded.apiserver.storage.store import Store
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)


class ApiServer:
    """See the package's docstring for how to use it."""

    def __init__(
        self,
        directory: Path | str,
        port: int = 0,
        *,
        users: Mapping[str, User] | None = None,
        resolve_service: ServiceResolver | None = None,
        clock: Clock | None = None,
        window: Window = WINDOW,
    ) -> None:
        self.directory = Path(directory)
        self.kubeconfig = self.directory / "kubeconfig"
        self.ca_file = self.directory / "ca.crt"
        self.url = ""
        self.clock = clock or SystemClock()
        self.authority = Authority(self.directory, self.clock)
        self._wanted_port = port
        self._users = users
        self._resolve_service = resolve_service
        self._window = window
        self._installed = InstalledSets(self.directory / "installed.json")
        self._server: Server | None = None
        self._life = contextlib.AsyncExitStack()

    async def __aenter__(self) -> ApiServer:
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._life = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._life.__aexit__(kind, error, trace)

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        store = SqliteStore(self.directory)
        stack.push_async_callback(asyncio.to_thread, store.close)
        await asyncio.to_thread(self._open, store)
        listener = await asyncio.to_thread(self._listen, store)
        stack.callback(listener.close)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        self._server = server = await asyncio.to_thread(self._make, store, address)
        await stack.enter_async_context(server)
        tls = await asyncio.to_thread(self._tls)
        await stack.enter_async_context(serving(server.handler, listener, tls))
        stack.callback(server.state.end_watches)
        self.url = f"https://{address}"
        await asyncio.to_thread(write_kubeconfig, self.kubeconfig, self.url, self.ca_file, self.token)
        log.info("the API server answers at %s", self.url)

    # These read and write files, and run in a thread

    def _open(self, store: SqliteStore) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.directory.chmod(0o700)
        store.open()
        self.authority.ensure()

    def _listen(self, store: Store) -> socket.socket:
        """The port asked for, else the one of last time if it is free, else any."""
        wanted = self._wanted_port or int(store.setting("port") or 0)
        try:
            listener = bind(wanted)
        except OSError:
            if self._wanted_port:
                text = f"port {self._wanted_port} on 127.0.0.1 is taken: choose another --port"
                raise StatusError(500, text) from None
            listener = bind(0)
        store.set_setting("port", str(listener.getsockname()[1]))
        return listener

    def _make(self, store: Store, address: str) -> Server:
        credentials = Credentials.kept_in(store)
        return Server(
            store,
            clock=self.clock,
            credentials=credentials,
            address=address,
            users=self._users,
            resolve_service=self._resolve_service,
            kubelet=Kubelet(str(self.ca_file), credentials.kubelet_token),
            window=self._window,
            with_alpha=True,
        )

    def _tls(self) -> ssl.SSLContext:
        return server_context(self.authority.issue("apiserver", (*SERVER_NAMES, *SERVER_ADDRESSES)))

    # What its users ask

    @property
    def server(self) -> Server:
        assert self._server is not None, "the server was not started"
        return self._server

    @property
    def token(self) -> str:
        return self.server.credentials.admin_token

    @property
    def kubelet_token(self) -> str:
        return self.server.credentials.kubelet_token

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def issue_certificate(self, name: str, hosts: Iterable[str]) -> Certificate:
        """A serving certificate by the cluster's CA, for a node or a webhook: files under the directory."""
        return self.authority.issue(name, tuple(hosts))

    async def install(self, manifests: Iterable[Json]) -> None:
        await self.server.install(manifests)

    async def ensure(self, name: str, digest: str, manifests: Callable[[], Iterable[Json]]) -> None:
        """Installs a set of objects, unless this very set is installed and none of its objects has changed."""
        state = self.server.state
        if is_in_place((await asyncio.to_thread(self._installed.read)).get(name), digest, state):
            return
        keys = await self.server.install(manifests())
        await asyncio.to_thread(self._installed.write, name, as_installed(digest, keys, state))
