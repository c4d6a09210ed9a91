"""GPUs found in trees of files as NVIDIA's and AMD's drivers document them, and how pods share them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainwright.embedded.node.resources.allotment import Allotments, NoneLeft, counts, models
from trainwright.embedded.node.resources.devices import AMD, NVIDIA, Device, find

INFORMATION = """\
Model: \t\t NVIDIA A100-SXM4-40GB
IRQ:   \t\t 155
GPU UUID: \t GPU-{uuid}
Video BIOS: \t 92.00.45.00.03
Bus Type: \t PCIe
DMA Size: \t 47 bits
Bus Location: \t {address}
Device Minor: \t {minor}
GPU Excluded:\t No
"""

PROPERTIES = """\
cpu_cores_count {cpus}
simd_count {simds}
mem_banks_count 1
gfx_target_version 90010
vendor_id 4098
drm_render_minor {minor}
unique_id {unique}
"""


def nvidia(root: Path, address: str, minor: int, uuid: str, *, device: bool = True) -> None:
    directory = root / "proc/driver/nvidia/gpus" / address
    directory.mkdir(parents=True)
    (directory / "information").write_text(INFORMATION.format(uuid=uuid, address=address, minor=minor))
    (root / "dev").mkdir(exist_ok=True)
    if device:
        (root / f"dev/nvidia{minor}").touch()


def amd(root: Path, node: int, *, simds: int, minor: int = 0, unique: int = 0) -> None:
    directory = root / "sys/class/kfd/kfd/topology/nodes" / str(node)
    directory.mkdir(parents=True)
    cpus = 0 if simds else 64
    (directory / "properties").write_text(PROPERTIES.format(cpus=cpus, simds=simds, minor=minor, unique=unique))
    (directory / "name").write_text("aldebaran\n" if simds else "\n")
    (root / "dev/dri").mkdir(parents=True, exist_ok=True)
    if minor:
        (root / f"dev/dri/renderD{minor}").touch()


def test_a_machine_without_drivers_has_no_gpus(tmp_path: Path) -> None:
    assert find({}, tmp_path) == {}


def test_nvidia_gpus_are_numbered_by_their_pci_addresses_as_cuda_does_when_told_to(tmp_path: Path) -> None:
    nvidia(tmp_path, "0000:3b:00.0", 0, "bbb")
    nvidia(tmp_path, "0000:07:00.0", 1, "aaa")
    nvidia(tmp_path, "0000:af:00.0", 2, "ccc", device=False)  # not given to the container that we are in
    found = find({}, tmp_path)
    model = "NVIDIA A100-SXM4-40GB"
    assert found == {NVIDIA: (Device(0, "GPU-aaa", model), Device(1, "GPU-bbb", model))}
    assert counts(found) == {"nvidia.com/gpu": "2"}
    assert models(found[NVIDIA]) == [f"2 {model}"]


def test_amd_gpus_are_the_nodes_with_simd_units(tmp_path: Path) -> None:
    amd(tmp_path, 0, simds=0)
    amd(tmp_path, 1, simds=0)
    amd(tmp_path, 2, simds=440, minor=128, unique=0xABC)
    amd(tmp_path, 10, simds=440, minor=129)
    amd(tmp_path, 9, simds=440, minor=130)
    names = [(device.index, device.id, device.model) for device in find({}, tmp_path)[AMD]]
    assert names == [(0, "GPU-abc", "aldebaran"), (1, "1", "aldebaran"), (2, "2", "aldebaran")]


def test_the_control_planes_own_variables_say_which_gpus_it_may_give_away(tmp_path: Path) -> None:
    nvidia(tmp_path, "0000:07:00.0", 0, "aaa")
    nvidia(tmp_path, "0000:3b:00.0", 1, "bbb")
    assert [device.id for device in find({"CUDA_VISIBLE_DEVICES": "1"}, tmp_path)[NVIDIA]] == ["GPU-bbb"]
    assert [device.id for device in find({"CUDA_VISIBLE_DEVICES": "GPU-aaa"}, tmp_path)[NVIDIA]] == ["GPU-aaa"]
    assert find({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == {}


def spec(*asked: int, cpus: str | None = None, init: int = 0) -> dict[str, Any]:
    def container(name: str, gpus: int) -> dict[str, Any]:
        limits = ({NVIDIA: str(gpus)} if gpus else {}) | ({"cpu": cpus} if cpus else {})
        return {"name": name, "resources": {"limits": limits}}

    made: dict[str, Any] = {"containers": [container(f"c{number}", gpus) for number, gpus in enumerate(asked)]}
    return made | ({"initContainers": [container("i", init)]} if init else {})


GPUS = {NVIDIA: tuple(Device(number, f"GPU-{number}") for number in range(4))}


def test_no_device_is_allotted_to_two_pods_also_after_a_restart_of_the_control_plane() -> None:
    before = Allotments(GPUS, [0, 1])
    first = before.allot("one", spec(1, 1))
    assert first.devices == {"c0": {NVIDIA: ["GPU-0"]}, "c1": {NVIDIA: ["GPU-1"]}}
    assert before.allot("one", spec(1, 1)) is first, "asked again"
    after = Allotments(GPUS, [0, 1])
    after.adopt("one", first.devices, first.cpus)
    second = after.allot("two", spec(2))
    assert second.devices == {"c0": {NVIDIA: ["GPU-2", "GPU-3"]}}
    with pytest.raises(NoneLeft, match=r"unavailable for nvidia.com/gpu. Requested: 1, Available: 0 of 4"):
        after.allot("three", spec(1))
    after.release("one")
    assert after.allot("three", spec(1)).devices == {"c0": {NVIDIA: ["GPU-0"]}}


def test_an_init_container_has_the_devices_of_the_containers_after_it() -> None:
    assert Allotments(GPUS, [0]).allot("one", spec(4, init=2)).devices["i"] == {NVIDIA: ["GPU-0", "GPU-1"]}


def test_a_container_sees_its_own_gpus_and_one_that_asks_for_none_sees_none() -> None:
    allotments = Allotments(GPUS, [0])
    allotments.allot("one", spec(3))
    allotted = allotments.allot("two", spec(1, 0))
    shown = {"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert allotments.variables("c0", allotted) == shown
    assert allotments.variables("c1", allotted) == {"CUDA_VISIBLE_DEVICES": ""}
    assert Allotments({}, [0]).variables("c0", allotted) == {}
    roc = Allotments({AMD: (Device(0, "a"), Device(1, "b"))}, [0])
    asking = {"containers": [{"name": "c", "resources": {"limits": {AMD: 2}}}]}
    assert roc.variables("c", roc.allot("one", asking)) == {"ROCR_VISIBLE_DEVICES": "0,1"}


def test_cpu_limits_become_the_cpus_that_fewest_pods_have() -> None:
    allotments = Allotments({}, range(4))
    assert allotments.allot("one", spec(0, cpus="1500m")).cpus == (0, 1)
    assert allotments.allot("two", spec(0, cpus="1")).cpus == (2,)
    assert allotments.allot("three", spec(0, cpus="2")).cpus == (0, 3)
    assert allotments.allot("all", spec(0, cpus="4")).cpus == ()
    assert allotments.allot("any", spec(0)).cpus == ()
