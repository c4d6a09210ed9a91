"""The pods' /etc/hosts files: true for every pod that has a directory, whoever comes and goes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trainwright.embedded.node.network.addresses import PodName
from trainwright.embedded.node.network.hostsfiles import WITHOUT_ONE, HostsFiles, Machine
from trainwright.embedded.node.pods.directories import PodDirectories
from trainwright.embedded.node.pods.record import PodDirectory


class Scene:
    def __init__(self, directories: PodDirectories) -> None:
        self.files = HostsFiles(directories, {"op.sys.svc": "127.0.0.1"})
        self.directories = directories
        self.pods: dict[str, PodName] = {}
        self.aliases: dict[str, dict[str, str]] = {}

    def add(self, uid: str, *, is_there: bool = True) -> PodDirectory:
        self.pods[uid] = PodName("ns", f"j-{uid}", "j", f"127.64.0.{len(self.pods) + 1}")
        directory = self.directories.of(uid)
        if is_there:
            directory.path.mkdir()
        return directory

    async def update(self) -> None:
        await self.files.update(
            lambda: list(self.pods.values()),
            lambda: [(self.directories.of(uid), self.aliases.get(uid, {})) for uid in self.pods],
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with PodDirectories(tmp_path, lambda _: None) as directories:
        yield Scene(directories)


async def test_every_pod_finds_every_other_and_the_services(scene: Scene) -> None:
    one, two = scene.add("1"), scene.add("2")
    await scene.update()
    assert one.hosts.read_text() == two.hosts.read_text()
    for name in ("j-1.j.ns.svc.cluster.local", "j-2.j", "op.sys.svc"):
        assert name in one.hosts.read_text()


async def test_the_aliases_of_a_pods_spec_are_in_its_own_file_alone(scene: Scene) -> None:
    one, two = scene.add("1"), scene.add("2")
    scene.aliases["1"] = {"first": "127.0.0.1", "other": "10.0.0.9"}
    await scene.update()
    assert one.hosts.read_text() == f"{two.hosts.read_text()}\n127.0.0.1\tfirst\n10.0.0.9\tother\n"


async def test_a_file_stays_the_same_file_when_its_content_shrinks(scene: Scene) -> None:
    one, _ = scene.add("1"), scene.add("2")
    await scene.update()
    before = one.hosts.stat().st_ino
    del scene.pods["2"]
    await scene.update()
    assert one.hosts.stat().st_ino == before
    assert "j-2" not in one.hosts.read_text()


async def test_a_pod_whose_directory_comes_later_gets_its_file_then(scene: Scene) -> None:
    scene.add("1")
    late = scene.add("2", is_there=False)
    await scene.update()
    late.path.mkdir()
    await scene.update()
    assert "j-1.j" in late.hosts.read_text()


async def test_nothing_is_written_when_nothing_changed(scene: Scene) -> None:
    one = scene.add("1")
    await scene.update()
    one.hosts.write_text("as the test left it")
    await scene.update()
    assert one.hosts.read_text() == "as the test left it"


async def test_the_last_word_wins_however_many_write_at_once(scene: Scene) -> None:
    async def come(uid: str) -> None:
        scene.add(uid)
        await scene.update()

    await asyncio.gather(*(come(str(number)) for number in range(20)))
    texts = {scene.directories.of(uid).hosts.read_text() for uid in scene.pods}
    assert len(texts) == 1
    assert all(f"j-{uid}.j" in text for uid in scene.pods for text in texts)


async def test_a_pod_that_left_gets_a_file_again_when_it_comes_back(scene: Scene) -> None:
    one = scene.add("1")
    await scene.update()
    await scene.files.forget("1")
    await scene.directories.remove(one)
    assert not one.path.exists()
    one.path.mkdir()
    await scene.update()
    assert one.hosts.exists()


def test_the_machines_own_names_are_read_again_when_they_change(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    machine = Machine(file)
    assert machine.text() == WITHOUT_ONE
    file.write_text("10.0.0.1 one\n")
    assert machine.text() == "10.0.0.1 one\n"
    file.write_text("10.0.0.1 one other\n")
    assert machine.text() == "10.0.0.1 one other\n"
    file.unlink()
    assert machine.text() == WITHOUT_ONE
