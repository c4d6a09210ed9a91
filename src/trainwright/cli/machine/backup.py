"""`trainwright backup` and `restore`: the state of the local cluster as one file.

A backup is taken while the cluster runs or is down: the database as of one moment, the cluster's certificates and what
says which objects are installed. Runs are plain files of their own and stay where they are. A restore needs a cluster
that is down; pods that ran when the backup was taken have no process any more, and end as after a reboot.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
import time
from pathlib import Path

from trainwright.api.times import rfc3339
from trainwright.cli.clusters.directory import ClusterDirectory, check_system
from trainwright.cli.failure import Failure
from trainwright.version import __version__

DATABASE = "state.db"
NOTE = "backup.json"
KEPT = ("ca.crt", "ca.key", "installed.json")
LARGEST = 2**32


def backup(file: Path, directory: Path) -> int:
    cluster = ClusterDirectory(directory)
    database = cluster.path / DATABASE
    if not database.exists():
        raise Failure(f"there is no cluster in {cluster.path} to take a backup of")
    if file.exists():
        raise Failure(f"{file} exists already; choose another name")
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="trainwright-backup-", dir=file.absolute().parent) as work:
            copy = Path(work) / DATABASE
            objects = _copy_database(database, copy)
            _write_archive(temporary, cluster, copy, objects)
        os.link(temporary, file)  # fails if somebody made it meanwhile
    except (OSError, sqlite3.Error) as error:
        raise Failure(
            f"the backup could not be written to {file}: {getattr(error, 'strerror', None) or error}"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    print(f"{objects} objects of {cluster.path} are in {file}; it holds secrets: keep it private.")
    print("Runs are not in it: they are plain files, to be copied as such.")
    return 0


def _copy_database(source: Path, target: Path) -> int:
    """Copies the database as it is at one moment, whoever writes to it meanwhile. How many objects it has."""
    target.touch(mode=0o600)
    with (
        contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as running,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        running.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        return int(copy.execute("SELECT count(*) FROM objects").fetchone()[0])


def _write_archive(path: Path, cluster: ClusterDirectory, database: Path, objects: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            note = {"version": __version__, "taken": rfc3339(time.time()), "objects": objects}
            text = json.dumps(note).encode()
            entry = tarfile.TarInfo(NOTE)
            entry.size, entry.mode = len(text), 0o600
            archive.addfile(entry, io.BytesIO(text))
            archive.add(database, DATABASE)
            for name in KEPT:
                if (cluster.path / name).exists():
                    archive.add(cluster.path / name, name)
        out.flush()
        os.fsync(out.fileno())


def restore(file: Path, directory: Path, force: bool) -> int:
    check_system()
    cluster = ClusterDirectory(directory)
    cluster.create()
    if cluster.running_pid() is not None:
        raise Failure(f"a cluster runs on {cluster.path}; stop it first with: trainwright down{cluster.flag()}")
    if (cluster.path / DATABASE).exists() and not force:
        raise Failure(f"{cluster.path} has a cluster already; give --force to replace it, or another --dir")
    try:
        found = _read_archive(file)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise Failure(f"{file} cannot be read as a backup: {error}") from error
    if DATABASE not in found:
        raise Failure(f"{file} is no backup of a cluster")
    with cluster.held():
        _check(found[DATABASE], cluster.path, file)
        for name, data in found.items():
            if name != NOTE:
                _replace(cluster.path / name, data)
        for leftover in ("state.db-wal", "state.db-shm", "apiserver.hosts", "node.hosts", "operator.hosts"):
            (cluster.path / leftover).unlink(missing_ok=True)
    print(f"{cluster.path} has the state of {file}. Start it with: trainwright up --detach{cluster.flag()}")
    return 0


def _read_archive(file: Path) -> dict[str, bytes]:
    """The files of a backup by name; whatever else it holds is not looked at."""
    found = {}
    with tarfile.open(file) as archive:
        for entry in archive:
            if entry.isfile() and entry.name in (NOTE, DATABASE, *KEPT) and entry.size < LARGEST:
                content = archive.extractfile(entry)
                assert content is not None
                found[entry.name] = content.read()
    return found


def _check(database: bytes, directory: Path, file: Path) -> None:
    """That the database is whole, before anything is replaced."""
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=directory) as work:
        path = Path(work) / DATABASE
        path.write_bytes(database)
        try:
            with contextlib.closing(sqlite3.connect(path)) as opened:
                if opened.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                    raise sqlite3.DatabaseError("it is damaged")
                opened.execute("SELECT count(*) FROM objects").fetchone()
        except sqlite3.Error as error:
            raise Failure(f"the state in {file} cannot be used: {error}; nothing was replaced") from error


def _replace(path: Path, data: bytes) -> None:
    from trainwright.embedded.apiserver.access.tls import write_private

    write_private(path, data)
