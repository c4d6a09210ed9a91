"""The Flux plugin: hostlist, broker configuration, scripts and keys."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainwright.plugins.flux.scripts import Cluster, entrypoint_script, init_script
from unit.pipeline.objects import container, job_of_runtime, jobset, objects, plan, pods, runtime, trainjob

FLUX = {"numNodes": 1, "flux": {}}


def flux(**containers: Any) -> Any:
    return runtime(job_of_runtime(containers=[{"name": "node", "image": "i", **containers}]), policy=FLUX)


def scripts(job: Any, of: Any) -> dict[str, str]:
    data: dict[str, str] = objects(plan(job, of))["ConfigMap/tj-flux-entrypoint"]["data"]
    return data


def test_the_users_command_is_what_the_first_node_submits() -> None:
    made = container(
        jobset(trainjob({"numNodes": 2, "command": ["lmp"], "args": ["-in", "x"]}), flux(command=["rt"], args=["ra"]))
    )
    assert made["command"] == ["/bin/bash", "/etc/flux-config/entrypoint.sh", "lmp -in x"]
    assert made["args"] == ["ra"]


def test_without_a_command_the_templates_is_taken() -> None:
    made = container(jobset(trainjob({"numNodes": 2}), flux(command=["rt", "x"])))
    assert made["command"][-1] == "rt x"


def test_a_job_without_trainer_or_nodes_takes_the_runtimes_number() -> None:
    of = runtime(job_of_runtime(), policy={"numNodes": 3, "flux": {}})
    assert "-N 3 -n 3" in scripts(trainjob(), of)["entrypoint.sh"]
    assert "-N 3 -n 6" in scripts(trainjob({"numProcPerNode": 2}), of)["entrypoint.sh"]


def test_gpus_are_offered_and_asked_for() -> None:
    job = trainjob({"numNodes": 2, "numProcPerNode": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})
    text = scripts(job, flux())["entrypoint.sh"]
    assert "--cores=0-3 --gpu=0-1" in text
    assert "flux run -N 2 -n 8 -g 2" in text


def test_settings_come_from_the_runtime_and_then_from_the_trainjob() -> None:
    of = flux(env=[{"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}, {"name": "FLUX_QUEUE_POLICY", "value": "easy"}])
    job = trainjob({"numNodes": 1, "env": [{"name": "FLUX_QUEUE_POLICY", "value": "conservative"}]})
    text = scripts(job, of)["init.sh"]
    assert 'default_bind = "tcp://ib0:%p"' in text
    assert 'queue-policy = "conservative"' in text
    assert 'hosts = [\n    { host = "tj-node-0-[0]" },' in text
    assert "tcp://%h.tj.ns.svc.cluster.local:%p" in text


def test_an_empty_view_image_is_no_image() -> None:
    job = trainjob({"numNodes": 1, "env": [{"name": "FLUX_VIEW_IMAGE", "valueFrom": {}}]})
    (installer,) = pods(jobset(job, flux()))["initContainers"]
    assert "image" not in installer


def test_the_installer_is_the_last_init_container() -> None:
    of = runtime(job_of_runtime(initContainers=[{"name": "mine", "image": "i"}]), policy=FLUX)
    made = pods(jobset(trainjob({"numNodes": 1}), of))
    assert [item["name"] for item in made["initContainers"]] == ["mine", "flux-installer"]
    names = ["spack-install", "flux-install", "tj-flux-entrypoint", "shared-memory", "flux-curve"]
    assert [volume["name"] for volume in made["volumes"]] == names


@pytest.mark.parametrize("make", [init_script, entrypoint_script])
def test_the_scripts_are_valid_shell(make: Any, tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(make(Cluster("tj", "ns", 4, 2, 1, "eth0", "fcfs")))
    checked = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True, timeout=30, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def run_entrypoint(tmp_path: Path, hostname: str, *command: str) -> str:
    """Run the real script against a root of its own, with programs that only say how they were called."""
    root, programs = tmp_path / "mnt", tmp_path / "bin"
    (root / "config/etc/flux/system").mkdir(parents=True)
    (root / "config/etc/curve").mkdir(parents=True)
    (root / "config/etc/flux/system/hostlist").write_text("tj-node-0-[0-1]\n")
    (root / "view/lib/python3.11").mkdir(parents=True)
    (root / "view/bin").mkdir()
    for folder in ("software", "curve", "opt"):
        (root / folder).mkdir()
    (root / "software/thing").write_text("")
    (root / "curve/curve.cert").write_text("key")
    programs.mkdir()
    for name, body in (("flux", f'echo flux "$@" >> {tmp_path}/calls'), ("hostname", f"echo {hostname}")):
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    text = entrypoint_script(Cluster("tj", "ns", 2, 2, 0, "eth0", "fcfs"))
    for there, here in (("/mnt/flux", root), ("/opt/software", root / "opt"), ("cp /curve", f"cp {root}/curve")):
        text = text.replace(there, str(here))
    script = tmp_path / "entrypoint.sh"
    script.write_text(text)
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    subprocess.run(["bash", str(script), *command], env=environment, timeout=60, check=True, capture_output=True)
    assert (root / "flux-operator-complete.txt").exists()
    assert (root / "config/etc/curve/curve.cert").stat().st_mode & 0o777 == 0o600
    return (tmp_path / "calls").read_text().replace(str(root), "/mnt/flux")


def test_the_first_node_starts_flux_and_submits(tmp_path: Path) -> None:
    encode, start = run_entrypoint(tmp_path, "tj-node-0-0", "lmp -in x", "more").splitlines()
    assert encode == "flux R encode --hosts=tj-node-0-[0-1] --cores=0-1"
    assert start.startswith("flux start -o --config /mnt/flux/config/etc/flux/config -Scron.directory=")
    assert start.endswith(" flux run -N 2 -n 4 lmp -in x more")


def test_without_a_command_the_first_node_waits_for_somebody(tmp_path: Path) -> None:
    calls = run_entrypoint(tmp_path, "tj-node-0-0", "").splitlines()
    assert calls[1].startswith("flux broker --config-path /mnt/flux/config/etc/flux/config ")


def test_other_nodes_only_join(tmp_path: Path) -> None:
    calls = run_entrypoint(tmp_path, "tj-node-0-1", "lmp").splitlines()
    assert calls[1].startswith("flux start -o --config ")
    assert "flux run" not in calls[1]
