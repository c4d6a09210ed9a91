"""Objects beside the JobSet: never a stranger's, put back when they go, and kept as new certificates need them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from trainwright.api.configuration import CertManagementConfig, Configuration, StatusServerConfig, local
from trainwright.api.resources import CONFIG_MAPS, JOB_SETS, SECRETS, TRAIN_JOBS, Resource
from trainwright.client.requests import DeleteOptions
from trainwright.operator.certificates.material import Policy, next_material
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import DropBefore
from trainwright.testing.processes import free_port
from unit.operator.world import World, mpi_runtime, train_job

HOSTFILE = "job-mpi-hostfile"
SSH_KEYS = "job-mpi-ssh-auth"


@pytest.mark.parametrize(
    ("resource", "name", "spec"),
    [(JOB_SETS, "job", {"spec": {"suspend": True}}), (CONFIG_MAPS, HOSTFILE, {}), (SECRETS, SSH_KEYS, {})],
    ids=["JobSet", "ConfigMap", "Secret"],
)
async def test_what_belongs_to_somebody_else_is_never_written(resource: Resource, name: str, spec: Json) -> None:
    async with World(runtimes=[mpi_runtime()]) as world:
        theirs = await world.add(resource, {"metadata": {"name": name}, **spec})
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(30)
        assert world.get(resource, name)["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
        assert f'"{name}" exists already and does not belong to this TrainJob' in world.status()["message"]
        if resource is not JOB_SETS:
            assert world.find_job_set() is None
        await world.remove(resource, name)
        await world.settle(90)
        owner = world.job_set()["metadata"]["ownerReferences"][0]
        assert owner["uid"] == world.get(TRAIN_JOBS, "job")["metadata"]["uid"]


async def test_children_belong_to_their_job_and_go_with_it() -> None:
    children = ((JOB_SETS, "job"), (CONFIG_MAPS, HOSTFILE), (SECRETS, SSH_KEYS))
    async with World(runtimes=[mpi_runtime()]) as world:
        job = await world.add(TRAIN_JOBS, train_job())
        await world.settle(1)
        for resource, name in children:
            [owner] = world.get(resource, name)["metadata"]["ownerReferences"]
            assert owner["uid"] == job["metadata"]["uid"]
        await world.remove(TRAIN_JOBS, "job")
        await world.settle(5)
        assert [name for resource, name in children if world.find(resource, name)] == []


async def test_a_secret_that_a_killed_operator_made_is_known_by_its_configmap() -> None:
    """The ConfigMap is written before the Secret, so that a ConfigMap of this UID tells whose the Secret is."""
    async with World(runtimes=[mpi_runtime()]) as world:
        dead = world.fail(DropBefore(), path="/jobsets/")
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        assert dead.seen
        assert world.find_job_set() is None
        first = world.get(SECRETS, SSH_KEYS)
        world.mend()
        await world.restart()
        await world.settle(2)
        assert world.find_job_set() is not None
        assert world.get(SECRETS, SSH_KEYS) == first


async def test_a_configmap_taken_from_a_running_job_is_put_back() -> None:
    async with World(runtimes=[mpi_runtime()]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        await world.remove(CONFIG_MAPS, HOSTFILE)
        await world.settle(1)
        assert world.find(CONFIG_MAPS, HOSTFILE) is not None
        await world.restart()
        await world.remove(CONFIG_MAPS, HOSTFILE)
        await world.settle(1)
        assert world.find(CONFIG_MAPS, HOSTFILE) is not None


async def test_a_configmap_edited_by_hand_is_put_right_while_the_job_runs() -> None:
    async with World(runtimes=[mpi_runtime()]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        before = world.get(CONFIG_MAPS, HOSTFILE)
        await world.change(CONFIG_MAPS, HOSTFILE, {"data": {"hostfile": "nonsense"}})
        await world.settle(1)
        assert world.get(CONFIG_MAPS, HOSTFILE)["data"] == before["data"]


def certificates_in(directory: Path) -> None:
    made = next_material(None, Policy("operator.ns.svc"), datetime.now(UTC), injected=True)
    assert made is not None
    directory.mkdir()
    for name, content in (("ca.crt", made.bundle), ("tls.crt", made.certificate), ("tls.key", made.key)):
        (directory / name).write_bytes(content)


def reporting(certificates: Path) -> Configuration:
    """Progress is reported, so that every job has a ConfigMap beside its JobSet and no Secret."""
    return msgspec.structs.replace(
        local(),
        cert_management=CertManagementConfig(enable=False, cert_dir=str(certificates)),
        feature_gates={"TrainJobStatus": True},
        status_server=StatusServerConfig(host="127.0.0.1", port=free_port()),
    )


AUTHORITY = "job-tls-config"


@pytest.mark.parametrize("labelled", [True, False], ids=["the watch shows it", "the watch does not show it"])
async def test_what_a_predecessor_left_as_an_orphan_is_not_taken_over(tmp_path: Path, labelled: bool) -> None:
    certificates_in(tmp_path / "1")
    async with World(configuration=reporting(tmp_path / "1")) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(2)
        await world.server.admin.delete(TRAIN_JOBS, "job", "ns", DeleteOptions(propagation="Orphan"))
        await world.settle(5)
        await world.remove(JOB_SETS, "job")
        if not labelled:
            await world.change(CONFIG_MAPS, AUTHORITY, {"metadata": {"labels": None}})
        await world.settle(5)
        left = world.get(CONFIG_MAPS, AUTHORITY)
        assert not left["metadata"].get("ownerReferences")
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(30)
        found = world.get(CONFIG_MAPS, AUTHORITY)
        assert (found["metadata"]["uid"], found["data"]) == (left["metadata"]["uid"], left["data"])
        assert not found["metadata"].get("ownerReferences")
        assert f'ConfigMap "{AUTHORITY}" exists already' in world.status()["message"]
        assert world.find_job_set() is None
        await world.remove(CONFIG_MAPS, AUTHORITY)
        await world.settle(90)
        [owner] = world.get(CONFIG_MAPS, AUTHORITY)["metadata"]["ownerReferences"]
        assert owner["uid"] == world.get(TRAIN_JOBS, "job")["metadata"]["uid"]


async def test_a_strangers_configmap_with_data_of_its_own_is_given_back_as_it_was(tmp_path: Path) -> None:
    certificates_in(tmp_path / "1")
    theirs = {"metadata": {"name": AUTHORITY, "labels": {"of": "them"}}, "data": {"mine": "x"}}
    async with World(configuration=reporting(tmp_path / "1")) as world:
        await world.add(CONFIG_MAPS, theirs)
        await world.settle(5)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(30)
        found = world.get(CONFIG_MAPS, AUTHORITY)
        assert (found["data"], found["metadata"]["labels"]) == ({"mine": "x"}, {"of": "them"})
        assert not found["metadata"].get("ownerReferences")
        assert f'ConfigMap "{AUTHORITY}" exists already' in world.status()["message"]
        tried = [request for request in world.writes if AUTHORITY in request.path]
        assert len(tried) == 2, "one try, and what gives it back; after that it only looks"


async def test_a_new_ca_reaches_the_configmaps_of_running_jobs(tmp_path: Path) -> None:
    """Certificates as cert-manager mounts them: when they change, so does what pods mount to report progress."""
    for number in ("1", "2"):
        certificates_in(tmp_path / number)
    mounted = tmp_path / "mounted"
    mounted.symlink_to(tmp_path / "1")
    async with World(configuration=reporting(mounted)) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(2)
        first = world.get(CONFIG_MAPS, AUTHORITY)
        mounted.unlink()
        mounted.symlink_to(tmp_path / "2")
        await world.settle(15)
        second = world.get(CONFIG_MAPS, AUTHORITY)
        assert second["data"]["ca.crt"] == (tmp_path / "2" / "ca.crt").read_text()
        assert second["data"] != first["data"]
        assert second["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_restarted_operator_finds_children_as_they_should_be_and_writes_nothing() -> None:
    gang = mpi_runtime()
    gang["spec"]["podGroupPolicy"] = {"volcano": {}}
    async with World(runtimes=[gang]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(5)
        written = len(world.writes)
        await world.restart()
        await world.settle(600)
        assert [f"{request.method} {request.path}" for request in world.writes[written:]] == []
