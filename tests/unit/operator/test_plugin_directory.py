"""A directory of plugins under a running operator: files come, change, break and go, and no job is lost over it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from prometheus_client import generate_latest

from trainwright.api.configuration import PluginsConfig, local
from trainwright.api.resources import EVENTS, JOBS, TRAIN_JOBS, Resource
from trainwright.plugins.registry import BUILT_IN
from trainwright.schema.jsonobject import Json
from unit.operator.world import SEE_PLUGINS, World, train_job

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
PLAINJOB = Path(__file__).parents[3] / "examples" / "plugins" / "plainjob" / "trainwright_plainjob.py"


def stamp(value: str) -> str:
    """A plugin that writes a variable into every container."""
    return f"""
from trainwright.pipeline.podset import env_var

class Stamp:
    name = "Stamp"

    def enforce_pod_spec(self, info, job):
        for pod_set in info.pod_sets:
            for container in pod_set.containers:
                container.set_env(env_var("STAMP", {value!r}))

PLUGINS = [Stamp]
"""


def world_of(folder: Path) -> World:
    return World(configuration=msgspec.structs.replace(local(), plugins=PluginsConfig(directory=str(folder))))


async def until(world: World, happened: Callable[[], object], seconds: float = 20.0) -> None:
    """Turn the clock, look by look, until it has happened. Files are read in a thread, which takes real time."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        await world.settle(1.0)
        await asyncio.sleep(0.01)


def plugins(world: World) -> list[str]:
    """The plugins in force besides the built-in ones."""
    names = [plugin.name for plugin in world.operator.kinds.framework.plugins]
    return names[names.index("KubernetesGang") + 1 :]


def digest(world: World) -> str:
    return world.operator.kinds.framework.digest


async def stamp_of(world: World, name: str) -> str | None:
    """What the plugin writes into a job that is created now."""
    await world.add(TRAIN_JOBS, train_job(name))
    await world.settle(1)
    [container] = world.job_set(name)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    return next((it["value"] for it in container.get("env", ()) if it["name"] == "STAMP"), None)


def watched() -> Counter[str]:
    """How many watches there are of each kind at this moment."""
    names = (task.get_name() for task in asyncio.all_tasks())
    return Counter(name.removeprefix("watch ") for name in names if name.startswith("watch "))


async def test_a_file_that_comes_changes_and_goes_serves_the_next_job(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        assert await stamp_of(world, "before") is None
        (tmp_path / "stamp.py").write_text(stamp("first"))
        await until(world, lambda: plugins(world) == ["Stamp"])
        assert await stamp_of(world, "first") == "first"
        began = world.job_set("first")
        (tmp_path / "stamp.py").write_text(stamp("second"))
        old = digest(world)
        await until(world, lambda: digest(world) != old)
        assert await stamp_of(world, "second") == "second"
        (tmp_path / "stamp.py").unlink()
        await until(world, lambda: not plugins(world))
        assert await stamp_of(world, "after") is None
        assert world.job_set("first") == began, "what runs is left alone"
        written = len(world.writes)
        await world.settle(600)
        assert len(world.writes) == written


async def test_a_file_that_breaks_is_named_and_its_last_good_version_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "stamp.py").write_text(stamp("good"))
    async with world_of(tmp_path) as world:
        (tmp_path / "stamp.py").write_text("import no_such_module\n")
        with caplog.at_level(logging.ERROR):
            await until(world, lambda: "stamp.py" in caplog.text)
        [record] = [it for it in caplog.records if "stamp.py" in it.getMessage()]
        assert record.getMessage() == (
            f"plugin file {tmp_path}/stamp.py: line 1: ModuleNotFoundError: No module named 'no_such_module'; "
            "the last version that could be used goes on"
        )
        assert 'trainwright_plugins_broken{file="stamp.py"} 1.0' in figures(world)
        assert world.operator.is_ready
        assert await stamp_of(world, "meanwhile") == "good"
        (tmp_path / "stamp.py").write_text(stamp("mended"))
        old = digest(world)
        await until(world, lambda: digest(world) != old)
        assert await stamp_of(world, "mended") == "mended"
        assert "trainwright_plugins_broken{" not in figures(world)
        assert f"trainwright_plugins {len(BUILT_IN) + 2}.0" in figures(world), "with KubernetesGang and the file's"


def figures(world: World) -> str:
    return generate_latest(world.operator.metrics.registry).decode()


async def test_a_directory_that_is_not_there_yet_is_told_and_read_when_it_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "late"
    async with world_of(place) as world:
        assert f"{place}: the directory cannot be read: No such file or directory" in caplog.text
        assert world.operator.is_ready
        assert await stamp_of(world, "before") is None
        place.mkdir()
        (place / "stamp.py").write_text(stamp("late"))
        await until(world, lambda: plugins(world))
        assert await stamp_of(world, "after") == "late"


async def test_a_file_that_hangs_while_it_is_imported_is_named_and_holds_up_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.01)\n"
    async with world_of(tmp_path) as world:
        (tmp_path / "slow.py").write_text(waits + stamp("slow"))
        with caplog.at_level(logging.ERROR):
            await until(world, lambda: "slow.py" in caplog.text)
        assert f"plugin file {tmp_path}/slow.py is still being imported" in caplog.text
        assert await stamp_of(world, "meanwhile") is None
        go.touch()
        await until(world, lambda: plugins(world))
        assert await stamp_of(world, "after") == "slow"


def drop(file: Path, folder: Path) -> Path:
    dropped = folder / file.name
    shutil.copyfile(file, dropped)
    dropped.chmod(0o644)
    return dropped


def plain(name: str) -> Json:
    body = train_job(name)
    body["metadata"]["labels"] = {"example.com/plain-job": "true"}
    return body


async def test_the_watch_of_a_plugin_that_comes_later_is_started_and_ends_with_it(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        assert watched()["jobs.batch"] == 1, "those of elastic jobs"
        file = drop(PLAINJOB, tmp_path)
        await until(world, lambda: plugins(world))
        await world.add(TRAIN_JOBS, plain("plain"))
        await world.settle(1)
        assert watched()["jobs.batch"] == 2
        assert world.find(JOBS, "plain") is not None
        assert world.find_job_set("plain") is None
        await world.finish_job("plain")
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        file.unlink()
        await until(world, lambda: not plugins(world))
        await world.settle(1)
        assert watched()["jobs.batch"] == 1
        assert {"jobsets.jobset.x-k8s.io", "trainjobs.trainer.kubeflow.org"} <= watched().keys()


async def test_a_status_that_raises_is_named_by_its_job_alone_until_the_file_is_mended(tmp_path: Path) -> None:
    file = drop(PLAINJOB, tmp_path)
    good = file.read_text()
    async with world_of(tmp_path) as world:
        await world.add(TRAIN_JOBS, plain("plain"))
        await world.add(TRAIN_JOBS, train_job("other"))
        await world.settle(1)
        job = world.get(JOBS, "plain")
        old = digest(world)
        file.write_text(good.replace("found, suspended = workload", "1 / 0\n        found, suspended = workload"))
        await until(world, lambda: digest(world) != old)
        await world.finish_job("plain")
        await world.finish_job_set(name="other")
        await world.settle(5)
        assert world.status("other")["state"] == "Complete"
        assert world.status("plain")["message"] == f"plugin PlainJob failed in status: division by zero. {SEE_PLUGINS}"
        file.write_text(good)
        await until(world, lambda: digest(world) == old)
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        after = world.get(JOBS, "plain")
        assert after["metadata"]["uid"] == job["metadata"]["uid"]


async def test_a_watch_that_is_forbidden_is_named_by_the_jobs_that_need_it_alone(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        world.refuse(403, 'User "x" cannot list resource "jobs"', path="/apis/batch/v1/jobs")
        drop(PLAINJOB, tmp_path)
        await until(world, lambda: plugins(world))
        await world.add(TRAIN_JOBS, plain("plain"))
        assert await stamp_of(world, "other") is None, "it is built as if nothing were"
        message = 'plugin PlainJob cannot watch jobs: User "x" cannot list resource "jobs"'
        assert world.status("plain")["message"] == f"{message}. {SEE_PLUGINS}"
        assert world.operator.is_ready
        world.mend()
        await world.settle(60)
        assert world.find(JOBS, "plain") is not None


async def test_a_kind_that_is_not_installed_is_named_by_the_jobs_that_need_it_alone(tmp_path: Path) -> None:
    source = (
        PLAINJOB.read_text()
        .replace("JOBS", "WIDGETS")
        .replace("from trainwright.api.resources import WIDGETS\n", "from trainwright.api.resources import Resource\n")
    )
    source = source.replace('LABEL = "', 'WIDGETS = Resource("example.com", "v1", "widgets", "Widget")\nLABEL = "')
    async with world_of(tmp_path) as world:
        (tmp_path / "widgets.py").write_text(source)
        await until(world, lambda: plugins(world))
        await world.add(TRAIN_JOBS, plain("plain"))
        assert await stamp_of(world, "other") is None, "it is built as if nothing were"
        assert (
            "plugin PlainJob cannot watch widgets: widgets.example.com is not served"
            in (world.status("plain")["message"])
        )
        await world.define(WIDGETS)
        await world.settle(10)
        assert world.find(WIDGETS, "plain") is not None


async def test_a_job_whose_plugin_goes_away_waits_for_it_and_is_never_built_a_second_time(tmp_path: Path) -> None:
    file = drop(PLAINJOB, tmp_path)
    async with world_of(tmp_path) as world:
        await world.add(TRAIN_JOBS, plain("plain"))
        await world.settle(1)
        await world.run_job("plain")
        await world.settle(1)
        job = world.get(JOBS, "plain")
        source = file.read_text()
        file.unlink()
        await until(world, lambda: not plugins(world))
        for _ in range(2):  # the operator that ran it, and one that never knew the plugin
            await world.settle(5)
            assert world.find_job_set("plain") is None
            assert world.status("plain")["state"] == "Running"
            assert world.status("plain")["message"] == (
                "plugin PlainJob built the workload of this TrainJob and is not loaded any more; load it again, "
                "or delete the TrainJob"
            )
            assert await stamp_of(world, f"other{_}") is None, "others go on"
            await world.restart()
        file.write_text(source)
        await until(world, lambda: plugins(world))
        await world.finish_job("plain")
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        after = world.get(JOBS, "plain")
        assert after["metadata"]["uid"] == job["metadata"]["uid"]


async def test_a_job_that_is_resumed_after_a_file_changed_says_so(tmp_path: Path) -> None:
    def carried(world: World) -> str:
        return str(world.job_set()["metadata"]["annotations"]["trainwright.dev/plugins"])

    def told(world: World) -> list[str]:
        return [event["reason"] for event in world.all(EVENTS)]

    (tmp_path / "stamp.py").write_text(stamp("first"))
    async with world_of(tmp_path) as world:
        await world.add(TRAIN_JOBS, train_job(suspend=True))
        await world.settle(1)
        first = digest(world)
        assert carried(world) == first
        (tmp_path / "stamp.py").write_text(stamp("second"))
        await until(world, lambda: digest(world) != first)
        await world.settle(5)
        assert (carried(world), told(world)) == (first, []), "nothing is resumed yet"
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle(1)
        second = digest(world)
        assert (carried(world), told(world)) == (second, ["PluginsChanged"])
        (tmp_path / "stamp.py").unlink()
        await until(world, lambda: not plugins(world))
        await world.settle(5)
        assert carried(world) == second, "a running job is left alone"
