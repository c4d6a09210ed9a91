"""Objects beside the JobSet: never a stranger's, put back when they go, and kept as new certificates need them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from trainwright.api.configuration import CertManagementConfig, StatusServerConfig, local
from trainwright.api.resources import CONFIG_MAPS, JOB_SETS, SECRETS, TRAIN_JOBS, Resource
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


async def test_a_new_ca_reaches_the_configmaps_of_running_jobs(tmp_path: Path) -> None:
    """Certificates as cert-manager mounts them: when they change, so does what pods mount to report progress."""
    for number in ("1", "2"):
        made = next_material(None, Policy("operator.ns.svc"), datetime.now(UTC), injected=True)
        assert made is not None
        (tmp_path / number).mkdir()
        for name, content in (("ca.crt", made.bundle), ("tls.crt", made.certificate), ("tls.key", made.key)):
            (tmp_path / number / name).write_bytes(content)
    mounted = tmp_path / "mounted"
    mounted.symlink_to(tmp_path / "1")
    configuration = msgspec.structs.replace(
        local(),
        cert_management=CertManagementConfig(enable=False, cert_dir=str(mounted)),
        feature_gates={"TrainJobStatus": True},
        status_server=StatusServerConfig(host="127.0.0.1", port=free_port()),
    )
    async with World(configuration=configuration) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(2)
        first = world.get(CONFIG_MAPS, "job-tls-config")
        mounted.unlink()
        mounted.symlink_to(tmp_path / "2")
        await world.settle(15)
        second = world.get(CONFIG_MAPS, "job-tls-config")
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
