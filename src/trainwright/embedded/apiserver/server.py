"""The API server as a value: `Request → Answer`, with the controllers that act on their own. No socket, no directory.

    store = MemoryStore()
    async with Server(store, clock=clock) as server:
        await server.install(manifests)           # CRDs, runtimes, any objects: forced server-side apply
        await server.answer(request)              # what `serving` does for HTTPS, and `InProcessTransport` in process

`directory.ApiServer` is this server on a directory and behind HTTPS.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType

from trainwright.clock import Clock, SystemClock
from trainwright.embedded.apiserver import installing
from trainwright.embedded.apiserver.access.authentication import Authenticator
from trainwright.embedded.apiserver.access.credentials import Credentials
from trainwright.embedded.apiserver.access.escalation import Escalation
from trainwright.embedded.apiserver.access.rbac import Authorizer
from trainwright.embedded.apiserver.access.reviews import Reviews
from trainwright.embedded.apiserver.access.tls import SERVER_ADDRESSES, SERVER_NAMES
from trainwright.embedded.apiserver.access.tokenrequests import TokenRequests
from trainwright.embedded.apiserver.access.tokens import ServiceAccountTokens
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.admission.webhooks import ServiceResolver
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.controllers.customresources import CustomResources
from trainwright.embedded.apiserver.controllers.gc import GarbageCollector
from trainwright.embedded.apiserver.controllers.namespaces import NamespaceController
from trainwright.embedded.apiserver.controllers.supervisor import Controller, Supervision
from trainwright.embedded.apiserver.controllers.upkeep import Upkeep
from trainwright.embedded.apiserver.http.discovery import Discovery
from trainwright.embedded.apiserver.http.dispatch import Operations
from trainwright.embedded.apiserver.http.documents import Documents
from trainwright.embedded.apiserver.http.handler import Handler
from trainwright.embedded.apiserver.http.openapi import OpenApi
from trainwright.embedded.apiserver.http.requests import Answer, Request, StreamedAnswer, UpgradedAnswer
from trainwright.embedded.apiserver.operations.finalizing import ensure_namespace
from trainwright.embedded.apiserver.operations.logs import Kubelet
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.history import WINDOW, Window
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key, Store
from trainwright.schema.jsonobject import Json

STANDARD_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Server:
    """Made with what the store holds, started by `async with`.

    `store` is open, and stays so until the server has ended. `users` maps further bearer tokens to users that have
    only the rights RBAC gives them. Without a `kubelet` there are no logs, streams and metrics. `with_alpha` serves
    the kinds that a cluster has only with feature gates.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        credentials: Credentials | None = None,
        address: str = "localhost",
        users: Mapping[str, User] | None = None,
        resolve_service: ServiceResolver | None = None,
        kubelet: Kubelet | None = None,
        window: Window = WINDOW,
        with_alpha: bool = False,
    ) -> None:
        self.clock = clock or SystemClock()
        self.credentials = credentials or Credentials.kept_in(store)
        self.state = State(store, self.clock, window)
        self.state.load(store.load())
        self.registry = Registry(builtin_types(self.clock, with_metrics=kubelet is not None, with_alpha=with_alpha))
        self.api = Api(self.state, self.registry)
        tokens = ServiceAccountTokens(self.api, self.credentials.signing_key)
        authenticator = Authenticator(self.credentials.admin_token, tokens, users)
        authorizer = Authorizer(self.api)
        self.api.check_escalation = Escalation(authorizer).check
        reviews = Reviews(self.api, authenticator, authorizer, tokens)
        self.handler = Handler(
            self.api,
            authenticator,
            authorizer,
            Documents(Discovery(self.registry, address), OpenApi(self.registry), lambda: self.state.failing),
            Operations(self.api, reviews, TokenRequests(self.api, tokens), kubelet),
            frozenset((*SERVER_NAMES, *SERVER_ADDRESSES)),
        )
        # The first one serves the stored CRDs' types, which the others may need.
        self.controllers: tuple[Controller, ...] = (
            CustomResources(self.api),
            NamespaceController(self.api),
            GarbageCollector(self.api),
            Upkeep(self.api),
        )
        self._resolve_service = resolve_service
        self._kubelet = kubelet
        self._life = contextlib.AsyncExitStack()
        self.is_running = False

    async def answer(self, request: Request) -> Answer | StreamedAnswer | UpgradedAnswer:
        return await self.handler.answer(request)

    async def install(self, manifests: Iterable[Json]) -> list[Key]:
        """Puts objects in place: made if missing, applied over if they are there. Returns where they are."""
        return await installing.install(self.api, manifests)

    async def __aenter__(self) -> Server:
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._life = stack.pop_all()
        self.is_running = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises `ControllerFailed` if that is why the server ends."""
        self.is_running = False
        await self._life.__aexit__(kind, error, trace)

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        self.state.start()
        self.api.admission.start(self._resolve_service)
        stack.push_async_callback(self.api.admission.close)
        if self._kubelet is not None:
            stack.push_async_callback(self._kubelet.close)
        await stack.enter_async_context(Supervision(self.controllers, self.state))
        for name in STANDARD_NAMESPACES:
            await ensure_namespace(self.api, name)
        stack.callback(self.state.end_watches)
