from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from initializers.fileserver import FileServer, file_server
from trainwright.testing.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A web server with TLS that initializers trust, in this process and in others."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    with file_server(authority) as files:
        yield files


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
