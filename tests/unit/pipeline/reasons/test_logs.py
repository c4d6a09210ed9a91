"""What a rank wrote last is found in its launcher's wall of text, and the rank that failed first is blamed by its
true rank.

The files in `recorded` are the output of torchrun 2.13 (paths shortened). No machine with GPUs was at hand to record
NCCL and CUDA: three files are written in the form in which those libraries print, and `PUBLISHED` has lines that users
recorded and published, each with its place. Each is read twice: as it is, as `why` reads a log, and as the local node
excerpts it for the pod's status.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.embedded.node.supervision.lastwords import MAX_BYTES, excerpt
from trainwright.pipeline.reasons import Evidence, Reason, reason_of
from unit.pipeline.reasons.objects import FAILED_JOB, ended

RECORDED = Path(__file__).parent / "recorded"


def read(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def why(*pods: dict[str, object]) -> Reason:
    found = reason_of(Evidence(job=FAILED_JOB, pods=pods))
    assert found is not None
    return found


@pytest.mark.parametrize("as_excerpt", [False, True], ids=["whole log", "excerpt of the node"])
@pytest.mark.parametrize(
    ("name", "code", "rank", "words"),
    [
        ("torchrun-raises", "FileMissing", 1, "No such file or directory: 'data/train.csv' (raises.py:7)"),
        ("torchrun-script-missing", "FileMissing", 0, "can't open file '/home/ada/nothere.py'"),
        ("torchrun-imports", "ImportFailed", 0, "No module named 'transformerz' (imports.py:1)"),
        ("torchrun-killed", "OutOfMemory", 1, "rank 1 was killed (SIGKILL), probably because memory ran out"),
        ("torchrun-worldsize", "WorldSizeMismatch", 1, "default world size 2, but found 4 ranks! (worldsize.py:4)"),
        ("torchrun-port", "PortInUse", None, "EADDRINUSE"),
        ("torchrun-rendezvous", "RendezvousTimeout", None, "1/2 clients joined"),
        ("nccl", "NcclError", 3, "unhandled system error"),
        ("cuda-memory", "GpuOutOfMemory", 1, "CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("watchdog", "CollectiveTimeout", 0, "ran for 600012 milliseconds"),
        ("disk", "DiskFull", None, "No space left on device (train.py:120)"),
    ],
)
def test_the_cause_is_found_in_the_output(name: str, code: str, rank: int | None, words: str, as_excerpt: bool) -> None:
    text = read(name)
    if as_excerpt:
        text = excerpt(text.splitlines())
        assert len(text.encode()) <= MAX_BYTES
    found = why(ended(0, text, processes=2))
    assert (found.code, found.rank) == (code, rank)
    assert words in found.headline
    assert found.mend, "and what to do about it"


NCCL = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d"
PUBLISHED = {
    "github.com/NVIDIA/nccl/issues/1410": (
        f"[rank7]: {NCCL}/NCCLUtils.hpp:275, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version"
        " 2.20.5\n[rank7]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank7]: Last error:\n"
        "[rank7]: Cuda failure 1 'invalid argument'",
        "NcclError", 7,
    ),
    "github.com/pytorch/pytorch/issues/149984": (
        "Collective WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1000000) raised the"
        " following async exception: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details),"
        " NCCL version"
        " 2.25.1\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        "NcclError", None,
    ),
    "github.com/Tencent-Hunyuan/HunyuanVideo/issues/114": (
        "[rank0]: RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "NcclError", 0,
    ),
    "github.com/pytorch/pytorch/issues/37004": (
        "node08:27106:27302 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied\n"
        "RuntimeError: NCCL error in ProcessGroupNCCL.cpp:290, unhandled system error",
        "NcclError", None,
    ),
    "github.com/verl-project/verl/issues/161": (
        f"{NCCL}/NCCLUtils.hpp:275, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.20.5\n"
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 10",
        "WorldSizeMismatch", None,
    ),
    "github.com/NVIDIA/nccl/issues/2076": (
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268,"
        " remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call"
        " failed possibly"
        " due to a network error or a remote process exiting prematurely.",
        "PeerLost", None,
    ),
    "github.com/hiyouga/LlamaFactory/issues/7396": (
        "[rank4]:[E321 02:07:08.414640780 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168,"
        " Timeout(ms)=600000) ran for"
        " 600067 milliseconds before timing out.",
        "CollectiveTimeout", 4,
    ),
    "github.com/OFA-Sys/OFA/issues/271": (
        "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=469508,"
        " OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.",
        "CollectiveTimeout", 1,
    ),
    "github.com/pytorch/pytorch/issues/16417": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of"
        " 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory"
        " in use.",
        "GpuOutOfMemory", None,
    ),
}  # fmt: skip
"""By the issue in which a user published them: lines of NCCL, PyTorch and CUDA (Python's frames before them left out);
the cause and the rank that they tell."""


@pytest.mark.parametrize("as_excerpt", [False, True], ids=["whole log", "excerpt of the node"])
@pytest.mark.parametrize("place", PUBLISHED)
def test_lines_that_users_of_gpus_published_tell_their_cause(place: str, as_excerpt: bool) -> None:
    text, code, rank = PUBLISHED[place]
    if as_excerpt:
        text = excerpt(text.splitlines())
    found = why(ended(0, text, processes=8))
    assert (found.code, found.rank) == (code, rank)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("MemoryError", "HostMemoryFull"),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's"
         " workers are out of shared memory: insufficient shared memory (shm)", "SharedMemoryFull"),
        ("PermissionError: [Errno 13] Permission denied: '/data'", "PermissionDenied"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "GpuNotUsable"),
        ("train.py: error: unrecognized arguments: --lrr 0.1", "WrongArguments"),
        ("ValueError: the loss is nan", "Exception"),
        ("RuntimeError: Connection reset by peer", "PeerLost"),
        ("OSError: [Errno 98] Address already in use", "PortInUse"),
    ],
)  # fmt: skip
def test_a_line_tells_its_cause(line: str, code: str) -> None:
    frames = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
    text = line if line.startswith("train.py") else f"{frames}{line}"
    assert why(ended(0, text)).code == code


def test_the_rank_that_failed_is_blamed_and_not_the_one_that_lost_its_connection_to_it() -> None:
    lost = "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [127.0.0.1]:1"
    raised = "Traceback (most recent call last):\nValueError: the loss is nan"
    first, second = "2026-01-01T00:00:01Z", "2026-01-01T00:00:09Z"
    found = why(ended(0, lost, at=first), ended(1, raised, at=second))
    assert (found.rank, found.code) == (1, "Exception")
    assert found.headline == "rank 1 failed: ValueError: the loss is nan"


def test_a_metric_called_error_is_no_error() -> None:
    found = why(ended(0, "step 1 error: 0.25\nstep 2 error: 0.12", code=3))
    assert found.headline == "rank 0 ended with exit code 3; its last line: step 2 error: 0.12"


def test_the_kernels_own_words_are_in_the_headline() -> None:
    found = why(ended(0, "step 1\nkernel: Out of memory: Killed process 42 (python3) total-vm:9GB", code=137))
    assert found.code == "OutOfMemory"
    assert "killed by the kernel: Out of memory: Killed process 42 (python3)" in found.headline


@pytest.mark.parametrize(
    ("code", "reason", "cause", "words"),
    [
        (137, "OOMKilled", "OutOfMemory", "used more memory than its limit"),
        (137, "Error", "OutOfMemory", "SIGKILL"),
        (139, "Error", "Crashed", "SIGSEGV"),
        (143, "Error", "EndedFromOutside", "SIGTERM"),
        (3, "Error", "ExitCode", "exit code 3"),
    ],
)
def test_an_exit_code_is_explained(code: int, reason: str, cause: str, words: str) -> None:
    found = why(ended(0, code=code, reason=reason))
    assert found.code == cause
    assert words in found.headline
