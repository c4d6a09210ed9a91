"""Gives every namespace its service account `default`, which pods use that name no other.

In: namespaces and service accounts by watch. Out: the account, created where it is missing and again after it was
deleted. In a cluster kube-controller-manager does this.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.resources import SERVICE_ACCOUNTS
from trainwright.client import AlreadyExists, Client, Forbidden, NotFound
from trainwright.controlloop import Clock, Controller, Done, Key, Outcome, Source, Watches
from trainwright.embedded.workloads.objects import ApiObject

DEFAULT = "default"


class DefaultServiceAccounts:
    def __init__(
        self, client: Client, namespaces: Source[ApiObject], accounts: Source[ApiObject], clock: Clock
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._accounts = accounts
        self._clock = clock

    def controller(self) -> Controller:
        watches = [Watches(self._namespaces), Watches(self._accounts, _namespace_of_default)]
        return Controller("default-service-accounts", self.reconcile, watches, workers=1, clock=self._clock)

    async def reconcile(self, key: Key) -> Outcome:
        namespace = self._namespaces.store.get(key)
        if namespace is None or namespace.is_being_deleted:
            return Done()
        if self._accounts.store.get(Key(namespace.name, DEFAULT)) is not None:
            return Done()
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT}}
        try:
            await self._client.create(SERVICE_ACCOUNTS, account, namespace.name)
        except (AlreadyExists, Forbidden, NotFound):
            pass  # it exists by now, or its namespace is being deleted
        return Done()


def _namespace_of_default(account: ApiObject) -> Iterable[Key]:
    return [Key("", account.metadata.namespace)] if account.name == DEFAULT else []
