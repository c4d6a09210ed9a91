"""From a path to what it names."""

from __future__ import annotations

import pytest

from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import PageNotFound
from trainwright.embedded.apiserver.http.router import find_target, segments
from trainwright.embedded.apiserver.registry import Registry, version_order
from trainwright.embedded.apiserver.types import Strategy, Type

REGISTRY = Registry(builtin_types(VirtualClock()))
THING = Type("example.com", "v1", "things", "thing", "Thing", True, Strategy(), custom=True)
REGISTRY.set_custom("example.com", "things", [THING])


def found(path: str) -> tuple[str, str, str, str, bool]:
    target = find_target(REGISTRY, segments(path))
    return target.served.plural, target.namespace, target.name, target.subresource, target.watch


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", ("pods", "", "", "", False)),
        ("/api/v1/namespaces", ("namespaces", "", "", "", False)),
        ("/api/v1/namespaces/n", ("namespaces", "", "n", "", False)),
        ("/api/v1/namespaces/n/status", ("namespaces", "", "n", "status", False)),
        ("/api/v1/namespaces/n/finalize", ("namespaces", "", "n", "finalize", False)),
        ("/api/v1/namespaces/n/pods", ("pods", "n", "", "", False)),
        ("/api/v1/namespaces/n/pods/p/log", ("pods", "n", "p", "log", False)),
        ("/api/v1/watch/namespaces/n/pods", ("pods", "n", "", "", True)),
        ("/apis/batch/v1/namespaces/n/jobs/j/status", ("jobs", "n", "j", "status", False)),
        ("/apis/example.com/v1/namespaces/n/things/a%20b", ("things", "n", "a b", "", False)),
        ("/apis/example.com/v1/things", ("things", "", "", "", False)),
    ],
)
def test_a_path_names_its_target(path: str, target: tuple[str, str, str, str, bool]) -> None:
    assert found(path) == target


@pytest.mark.parametrize(
    "path",
    [
        "/apis/nowhere.example.com/v1/things",
        "/apis/example.com/v2/things",
        "/apis/example.com/v1/others",
        "/apis/example.com/v1/things/x",
    ],
)
def test_paths_of_nobody_get_the_plain_page(path: str) -> None:
    with pytest.raises(PageNotFound):
        found(path)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothings",
        "/api/v2/pods",
        "/api/v1/pods/p",
        "/api/v1/namespaces/n/nodes",
        "/api/v1/namespaces/n/pods/p/x",
    ],
)
def test_unknown_resources_of_known_groups_get_a_status(path: str) -> None:
    with pytest.raises(StatusError, match="the server could not find the requested resource") as error:
        found(path)
    assert error.value.code == 404
    assert not isinstance(error.value, PageNotFound)


def test_a_custom_type_comes_and_goes() -> None:
    registry = Registry(builtin_types(VirtualClock()))
    changes = registry.changes
    registry.set_custom("example.com", "things", [THING])
    assert registry.find("example.com", "v1", "things") is THING
    assert registry.custom_groups == {"example.com"}
    registry.set_custom("example.com", "things", [])
    assert registry.find("example.com", "v1", "things") is None
    assert not registry.has_version("example.com", "v1")
    assert registry.changes == changes + 2


def test_versions_are_ordered_as_kubernetes_orders_them() -> None:
    versions = ["foo10", "v1alpha1", "v11alpha2", "v10", "v3beta1", "v1", "foo1", "v12alpha1", "v2", "v10beta3"]
    expected = ["v10", "v2", "v1", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
    assert sorted(versions, key=version_order) == expected
