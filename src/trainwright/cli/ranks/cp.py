"""`trainwright cp`: files and directories into a rank of a TrainJob, and out of it.

They travel as a tar archive through a `tar` in the pod, as `kubectl cp` does it. A target that is a directory takes the
copy into it; any other name is the name of the copy.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import tarfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.ranks.rankpods import pod_of
from trainwright.client.client import Client
from trainwright.client.streams import STDERR, PodCommand, execute

READ_BYTES = 64 * 1024


class There(NamedTuple):
    """A path in a pod."""

    job: str
    path: str


class Pod(NamedTuple):
    client: Client
    namespace: str
    name: str
    container: str | None

    async def run(self, *argv: str) -> int:
        """The exit code of a command that says nothing of interest."""
        async with execute(self.client, self.namespace, self.name, argv, container=self.container) as command:
            async for _ in command.output():
                pass
            return command.exit_code


def cp(source: str, destination: str, rank: int | None, container: str | None, target: Target, namespace: str) -> int:
    origin, goal = there_of(source), there_of(destination)
    if (origin is None) == (goal is None):
        raise Failure("one side is a path of this machine, the other JOB:PATH: trainwright cp model.pt mnist:/tmp", 2)

    async def work(there: There) -> int:
        async with target.client() as client:
            pod = await pod_of(client, target, namespace, there.job, rank)
            inside = Pod(client, namespace, pod["metadata"]["name"], container)
            if there is origin:
                return await _fetch(inside, there.path, _named_here(there.path, Path(destination)))
            return await _send(inside, Path(source), there.path)

    if goal is not None and not Path(source).exists():
        raise Failure(f"{source}: there is no such file or directory")
    there = origin or goal
    assert there is not None
    return carry_out(work(there))


def there_of(text: str) -> There | None:
    """`JOB:PATH`, or None for a path of this machine: one that has a slash before its colon, or no colon."""
    job, colon, path = text.partition(":")
    if not colon or "/" in job or not job:
        return None
    if not path:
        raise Failure(f"{text!r} names no path: write JOB:PATH", 2)
    return There(job, path)


def _named_here(path: str, destination: Path) -> Path:
    """What the copy is called on this machine."""
    if destination.is_dir():
        destination = destination / (posixpath.basename(path.rstrip("/")) or "root")
    if not destination.parent.is_dir():
        raise Failure(f"{destination.parent}: there is no such directory")
    return destination


def _name(source: Path) -> str:
    return source.absolute().name


async def _send(pod: Pod, source: Path, path: str) -> int:
    into = path if path.endswith("/") or await pod.run("test", "-d", path) == 0 else posixpath.dirname(path) or "."
    name = _name(source) if into == path else posixpath.basename(path)
    make = 'mkdir -p "$1" && exec tar -xmf - -C "$1"'
    async with execute(
        pod.client, pod.namespace, pod.name, ["sh", "-c", make, "cp", into], container=pod.container, stdin=True
    ) as command:
        sending = asyncio.ensure_future(_send_archive(command, source, name))
        try:
            said = b"".join([data async for stream, data in command.output() if stream == STDERR])
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return _outcome(command.exit_code, said)


async def _send_archive(command: PodCommand, source: Path, name: str) -> None:
    reader, writer = os.pipe()

    def write() -> None:
        try:
            with open(writer, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as archive:
                archive.add(source, name)
        except BrokenPipeError:
            pass  # the other side has given up, and says why

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        while data := await asyncio.to_thread(os.read, reader, READ_BYTES):
            await command.write(data)
        await command.end_input()
    finally:
        os.close(reader)


async def _fetch(pod: Pod, path: str, destination: Path) -> int:
    name = posixpath.basename(path.rstrip("/")) or "."
    directory = posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")
    argv = ["tar", "-cf", "-", "-C", directory, "--", name]
    async with execute(pod.client, pod.namespace, pod.name, argv, container=pod.container) as command:
        said = await _unpack(command.output(), name, destination)
        return _outcome(command.exit_code, said)


async def _unpack(output: AsyncIterator[tuple[int, bytes]], name: str, destination: Path) -> bytes:
    """Writes what the archive holds under `name` as `destination`. Returns what tar said."""
    reader, writer = os.pipe()
    problem: list[Exception] = []

    def read() -> None:
        try:
            with open(reader, "rb") as pipe, tarfile.open(fileobj=pipe, mode="r|") as archive:
                for member in archive:
                    below = posixpath.relpath(member.name, name)
                    if below.startswith(".."):
                        continue  # not what was asked for
                    member.name = posixpath.join(destination.name, below) if below != "." else destination.name
                    archive.extract(member, destination.parent, filter="data")
                while pipe.read(READ_BYTES):
                    pass
        except (tarfile.TarError, OSError) as error:
            problem.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    said = b""
    try:
        async for stream, data in output:
            if stream == STDERR:
                said += data
            elif not problem:
                await asyncio.to_thread(_write, writer, data)
    finally:
        os.close(writer)
        await asyncio.to_thread(thread.join)
    if problem and not said:
        raise Failure(f"{destination}: {problem[0]}")
    return said


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        pass  # the reader has met a problem, and says which


def _outcome(code: int, said: bytes) -> int:
    if code != 0:
        raise Failure(f"tar in the pod failed: {said.decode(errors='replace').strip() or f'exit code {code}'}")
    return 0
