"""One real control plane per test worker; every test gets its own namespace in it.

These tests need Go once, to build the programs: they are collected only when this folder is named (`make test-kube`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from kube import notonembedded
from kube.binaries import build
from kube.crds import install_crds
from trainwright.testing import oracle
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.embeddedplane import EmbeddedControlPlane, NotOnEmbedded
from trainwright.testing.watchlog import COLLECTIONS, WatchLog

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(HERE in (path, *path.parents) for path in asked) else True


class BuiltPrograms:
    """Programs built from the pinned Go modules under `binaries/`, or found in KUBEBUILDER_ASSETS."""

    def program(self, name: str) -> Path:
        return build.program(name)

    def manifests(self, name: str) -> Path:
        return build.manifests(name)


@pytest.fixture(scope="session")
def programs() -> BuiltPrograms:
    return BuiltPrograms()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--embedded", action="store_true", help="run the suite on the embedded control plane")


class TwoHalves(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Two workers, two planes. The operator's files share one of them, because the last file judges the others."""

    def _split_scope(self, nodeid: str) -> str:
        return "operator" if "/test_operator_" in nodeid else "rest"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TwoHalves:
    return TwoHalves(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--embedded"):
        return
    for item in items:
        if item.path.name in notonembedded.FILES:
            item.add_marker(pytest.mark.skip(reason=notonembedded.FILES[item.path.name]))
        elif item.name in notonembedded.TESTS:
            item.add_marker(pytest.mark.xfail(reason=notonembedded.TESTS[item.name], strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turn what the embedded control plane does not have into a skip that names its reason."""
    if call.excinfo is not None and call.excinfo.errisinstance(NotOnEmbedded):
        call.excinfo = _skipped(call.excinfo)
    return (yield)


def _skipped(missing: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    skip = pytest.skip.Exception(f"not on the embedded control plane: {missing.value}")
    return pytest.ExceptionInfo.from_exception(skip.with_traceback(missing.tb))


@pytest.fixture(scope="session")
def plane(
    request: pytest.FixtureRequest, programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealControlPlane | EmbeddedControlPlane]:
    directory = tmp_path_factory.mktemp("plane")
    if request.config.getoption("--embedded"):
        with EmbeddedControlPlane(programs, directory) as embedded:
            embedded.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
            yield embedded
        return
    with RealControlPlane(programs, directory) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        print(f"control plane ready in {running.seconds_to_ready:.1f} s", file=sys.stderr)
        yield running
    shutil.rmtree(directory / "etcd", ignore_errors=True)


JUDGED = ("test_conformance_kube.py", "test_crashes.py", "test_operator_")


@pytest.fixture(autouse=True)
def judged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the oracle judge what operators did during the test."""
    if not request.path.name.startswith(JUDGED) or "plane" not in request.fixturenames:
        yield
        return
    bare = "bare_plane" in request.fixturenames  # JobSet comes later there
    judge: RealControlPlane = request.getfixturevalue("bare_plane" if bare else "plane")
    begin = judge.audit_position()
    collections = [path for path in COLLECTIONS if not (bare and path.endswith("/jobsets"))]
    with WatchLog(judge.admin, collections) as log:
        yield
        log.settle()
        mine = requests(judge.audit_events(begin), agent="trainwright")
        oracle.check(oracle.Story(log.changes(), mine))


@pytest.fixture
def namespace(plane: RealControlPlane) -> str:
    return plane.namespace()
