"""Namespaces: no object without one, and none into one that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api


def namespace_key(name: str) -> Key:
    return Key("namespaces", "", name)


def check_namespace(api: Api, served: Type, namespace: str, name: str) -> None:
    """Refuses a new object whose namespace is missing or being deleted."""
    stored = api.state.head(namespace_key(namespace))
    if stored is None:
        raise errors.not_found("", "namespaces", namespace)
    if not stored.deleting:
        return
    text = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = errors.forbidden(served.group, served.plural, name, text)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    assert refused.details is not None
    refused.details["causes"] = [cause]
    raise refused
