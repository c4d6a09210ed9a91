"""The GPUs of this machine, as their drivers' files and tools show them.

In: the machine's files (`root` is another tree in tests), its tools, and the environment of the control plane. Out:
`Device`s by resource name, in the order in which the vendor's own libraries number them. What a machine of the layout
that the drivers document would show has been tried; real hardware has not.

    nvidia.com/gpu    /proc/driver/nvidia/gpus/<PCI address>/information, else `nvidia-smi` (WSL has no such files)
    amd.com/gpu       /sys/class/kfd/kfd/topology/nodes/<n>: nodes with SIMD units are GPUs
    apple.com/gpu     the one GPU of a Mac with Apple silicon
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"
APPLE = "apple.com/gpu"

TOOL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. `index` is its number for the vendor's libraries, `id` its UUID where it has one."""

    index: int
    id: str
    model: str = ""


Devices = Mapping[str, tuple[Device, ...]]


def find(environ: Mapping[str, str], root: Path = Path("/")) -> Devices:
    """Every GPU that the control plane itself may use, by resource name. Blocks: call it in a thread."""
    nvidia = _nvidia(root) or (_nvidia_by_tool() if root == Path("/") else [])
    found = {
        NVIDIA: _visible(nvidia, environ.get("CUDA_VISIBLE_DEVICES")),
        AMD: _visible(_amd(root), environ.get("ROCR_VISIBLE_DEVICES")),
        APPLE: [Device(0, "0", "Apple GPU")] if _is_apple_silicon() else [],
    }
    return {name: tuple(devices) for name, devices in found.items() if devices}


def _nvidia(root: Path) -> list[Device]:
    """NVIDIA's driver has a directory for each GPU, named by its PCI address, by which CUDA numbers them when told to.

    A GPU without its device file /dev/nvidia<minor> cannot be opened, in a container that was given others.
    """
    found = []
    for number, directory in enumerate(_sorted(root / "proc/driver/nvidia/gpus")):
        about = _fields(directory / "information", ":")
        minor = about.get("Device Minor")
        if minor is None or (root / f"dev/nvidia{minor}").exists():
            found.append(Device(number, about.get("GPU UUID", directory.name), about.get("Model", "")))
    return found


def _nvidia_by_tool() -> list[Device]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-gpu=index,uuid,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TOOL_SECONDS)
    except (OSError, subprocess.SubprocessError):  # a tool without a driver
        return []
    lines = [[word.strip() for word in line.split(",", 2)] for line in answer.stdout.splitlines()]
    return [Device(int(words[0]), words[1], words[2]) for words in lines if len(words) == 3 and words[0].isdigit()]


def _amd(root: Path) -> list[Device]:
    """ROCm numbers the GPUs in the order of the topology's nodes. A node without SIMD units is a CPU."""
    found: list[Device] = []
    for directory in _sorted(root / "sys/class/kfd/kfd/topology/nodes"):
        about = _fields(directory / "properties", " ")
        if int(about.get("simd_count", "0")) == 0:
            continue
        minor = about.get("drm_render_minor", "0")
        if minor == "0" or (root / f"dev/dri/renderD{minor}").exists():
            unique = int(about.get("unique_id", "0"))
            name = _text(directory / "name") or f"gfx{about.get('gfx_target_version', '')}"
            found.append(Device(len(found), f"GPU-{unique:x}" if unique else str(len(found)), name))
    return found


def _is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


def _visible(devices: list[Device], chosen: str | None) -> list[Device]:
    """Those that the control plane's own variable leaves visible; all without one."""
    if chosen is None:
        return devices
    wanted = [word.strip() for word in chosen.split(",") if word.strip()]
    return [device for device in devices if str(device.index) in wanted or device.id in wanted]


def _sorted(directory: Path) -> list[Path]:
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return [directory / name for name in sorted(names, key=lambda name: (int(name) if name.isdigit() else 0, name))]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:  # a node that this user may not look at
        return ""


def _fields(path: Path, separator: str) -> dict[str, str]:
    found = {}
    for line in _text(path).splitlines():
        name, _, value = line.partition(separator)
        found[name.strip()] = value.strip()
    return found
