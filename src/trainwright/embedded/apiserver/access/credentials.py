"""The server's own secrets, made once and kept in its store."""

from __future__ import annotations

import secrets

import msgspec

from trainwright.embedded.apiserver.storage.store import Store


class Credentials(msgspec.Struct, frozen=True):
    admin_token: str  # the kubeconfig's
    kubelet_token: str  # what the server shows to nodes when it asks for logs
    signing_key: bytes  # of service account tokens

    @classmethod
    def kept_in(cls, store: Store) -> Credentials:
        """Those of last time, or new ones. The store is open and not yet started."""
        return cls(
            _setting(store, "token"),
            _setting(store, "kubelet-token"),
            bytes.fromhex(_setting(store, "service-account-key")),
        )


def _setting(store: Store, name: str) -> str:
    found = store.setting(name)
    if found is None:
        found = secrets.token_hex(32)
        store.set_setting(name, found)
    return found
