"""The life of one API server: directory, store, certificates, HTTPS socket, controllers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType

from aiohttp import web

from trainwright.embedded.apiserver import installing
from trainwright.embedded.apiserver.access.authentication import Authenticator
from trainwright.embedded.apiserver.access.rbac import Authorizer
from trainwright.embedded.apiserver.access.reviews import Reviews
from trainwright.embedded.apiserver.access.tls import (
    SERVER_ADDRESSES,
    SERVER_NAMES,
    Authority,
    Certificate,
    server_context,
    write_kubeconfig,
)
from trainwright.embedded.apiserver.access.tokens import ServiceAccountTokens
from trainwright.embedded.apiserver.admission.webhooks import ServiceResolver
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.controllers import namespaces
from trainwright.embedded.apiserver.controllers.gc import GarbageCollector
from trainwright.embedded.apiserver.controllers.upkeep import upkeep
from trainwright.embedded.apiserver.custom.resources import CustomResources
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.discovery import Discovery
from trainwright.embedded.apiserver.http.handler import HttpApi
from trainwright.embedded.apiserver.http.openapi import OpenApi
from trainwright.embedded.apiserver.operations.logs import Kubelet
from trainwright.embedded.apiserver.operations.writing import User, WriteOptions
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Store
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)
BACKLOG = 1024
STANDARD_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
MAX_HEADER = 32 * 1024


class ApiServer:
    """See the package's docstring for how to use it."""

    def __init__(
        self,
        directory: Path | str,
        port: int = 0,
        *,
        users: Mapping[str, User] | None = None,
        resolve_service: ServiceResolver | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.kubeconfig = self.directory / "kubeconfig"
        self.ca_file = self.directory / "ca.crt"
        self.url = ""
        self.token = ""
        self.kubelet_token = ""
        self._wanted_port = port
        self._users = dict(users or {})
        self._resolve_service = resolve_service
        self._stack = contextlib.AsyncExitStack()

    # ------------------------------------------------------------------------------------------------ life

    async def __aenter__(self) -> ApiServer:
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.directory.chmod(0o700)
        store = Store(self.directory)
        store.open()
        stack.callback(store.close)
        self.authority = Authority(self.directory)
        self.authority.ensure()
        certificate = self.authority.issue("apiserver", (*SERVER_NAMES, *SERVER_ADDRESSES))
        self.token = _setting(store, "token")
        self.kubelet_token = _setting(store, "kubelet-token")
        signing_key = bytes.fromhex(_setting(store, "service-account-key"))
        listener = self._listen(store)
        stack.callback(listener.close)
        port = listener.getsockname()[1]
        self.url = f"https://127.0.0.1:{port}"
        self.state = State(store)
        self.state.load()
        self.registry = Registry(builtin_types())
        self.api = Api(self.state, self.registry)
        self.state.start()
        self.api.admission.start(self._resolve_service)
        resources = CustomResources(self.api)
        collector = GarbageCollector(self.api)
        resources.start()
        for name in STANDARD_NAMESPACES:
            await namespaces.ensure(self.api, name)
        collector.start()
        self.api.namespaces.start()
        await stack.enter_async_context(
            _tasks(resources.run(), collector.run(), self.api.namespaces.run(), upkeep(self.api))
        )
        kubelet = Kubelet(str(self.ca_file), self.kubelet_token)
        stack.push_async_callback(kubelet.close)
        stack.push_async_callback(self.api.admission.close)
        await self._serve(stack, listener, certificate, signing_key, kubelet)
        write_kubeconfig(self.kubeconfig, self.url, self.ca_file, self.token)
        log.info("the API server answers at %s", self.url)

    def _listen(self, store: Store) -> socket.socket:
        """The port asked for, else the one of last time if it is free, else any."""
        wanted = self._wanted_port or int(store.setting("port") or 0)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
        except OSError:
            if self._wanted_port:
                listener.close()
                raise StatusError(
                    500, f"port {self._wanted_port} on 127.0.0.1 is taken: choose another --port"
                ) from None
            listener.bind(("127.0.0.1", 0))
        listener.listen(BACKLOG)
        listener.setblocking(False)
        store.set_setting("port", str(listener.getsockname()[1]))
        return listener

    async def _serve(
        self,
        stack: contextlib.AsyncExitStack,
        listener: socket.socket,
        certificate: Certificate,
        signing_key: bytes,
        kubelet: Kubelet,
    ) -> None:
        tokens = ServiceAccountTokens(self.api, signing_key)
        authenticator = Authenticator(self.token, tokens, self._users)
        authorizer = Authorizer(self.api)
        http = HttpApi(
            self.api,
            authenticator,
            authorizer,
            Reviews(self.api, authenticator, authorizer, tokens),
            Discovery(self.registry, self.url.removeprefix("https://")),
            OpenApi(self.registry),
            frozenset((*SERVER_NAMES, *SERVER_ADDRESSES)),
            kubelet,
        )
        server = web.Server(
            http.handle,
            access_log=None,
            handler_cancellation=True,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            keepalive_timeout=120.0,
        )
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        stack.callback(self._end_watches)
        site = web.SockSite(runner, listener, ssl_context=server_context(certificate), backlog=BACKLOG)
        await site.start()

    def _end_watches(self) -> None:
        for table in self.state.tables.values():
            for watcher in tuple(table.watchers):
                watcher.close()

    # ------------------------------------------------------------------------------------------------ wiring

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def issue_certificate(self, name: str, hosts: Iterable[str]) -> Certificate:
        """A serving certificate by the cluster's CA, for a node or a webhook: files under the directory."""
        return self.authority.issue(name, tuple(hosts))

    async def install(self, manifests: Iterable[Json]) -> None:
        """Put objects in place through the same code as a request: made if missing, applied over if they are there."""
        options = WriteOptions(manager="trainwright", force=True)
        for manifest in manifests:
            group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
            served = self.registry.by_kind(group, version, str(manifest.get("kind", "")))
            if served is None:
                raise StatusError(404, f"{manifest.get('apiVersion')} {manifest.get('kind')} is not a served type")
            namespace = manifest["metadata"].get("namespace", "default") if served.namespaced else ""
            if namespace:
                await namespaces.ensure(self.api, namespace)
            await installing.install(self.api, served, namespace, manifest, options)


def _setting(store: Store, name: str) -> str:
    found = store.setting(name)
    if found is None:
        found = secrets.token_hex(32)
        store.set_setting(name, found)
    return found


@contextlib.asynccontextmanager
async def _tasks(*coroutines: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Background work that ends with the server."""
    tasks = [asyncio.create_task(_supervised(coroutine)) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _supervised(coroutine: Coroutine[None, None, None]) -> None:
    """A controller that fails has a defect: the log says which, and the server goes on without it."""
    try:
        await coroutine
    except asyncio.CancelledError:
        raise
    except Exception:
        log.exception("a controller of the API server ended")
