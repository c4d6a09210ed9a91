"""The causes that are found in output, with the expressions that tell them.

The first pattern that matches a line decides. One with `anywhere` counts in any line; the others count only in the
last line of a traceback, because the words alone prove nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trainwright.pipeline.reasons.cause import Cause

FILE_MISSING: Final = Cause(
    "FileMissing",
    "A file is not there",
    "The program, or the script itself, opened a file that does not exist where the rank runs.",
    "Give a path that exists where the rank runs; a relative one counts from its working directory",
    "On the local cluster a script runs in the directory in which you called `trainwright run`, or in `--workdir`; a"
    " TrainJob from a file runs in an empty directory of its own. In a cluster only what the image, a volume or the"
    " packed working directory holds is there.",
)
IMPORT_FAILED: Final = Cause(
    "ImportFailed",
    "A module cannot be imported",
    "Python did not find a module, or one that it found cannot be loaded. The rank may run with another Python than"
    " the one you installed it for.",
    "Install the module for the Python that runs the rank, or choose another with --python",
    "`trainwright runs describe JOB` shows which Python was used. In a cluster the image decides; `packages_to_install`"
    " of the Kubeflow SDK adds to it.",
)
CUDA_MEMORY: Final = Cause(
    "GpuOutOfMemory",
    "The GPU's memory is full",
    "An allocation on the GPU failed: model, activations, optimizer states and the batch do not fit together, or"
    " another process uses the same GPU.",
    "Use a smaller batch, gradient checkpointing or sharding (FSDP), or a GPU with more memory",
    "`nvidia-smi` on the node shows who else uses the GPU. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps"
    " against fragmentation.",
)
HOST_MEMORY: Final = Cause(
    "HostMemoryFull",
    "An allocation in main memory failed",
    "The program asked for memory and was refused, before the kernel had to kill it.",
    "Give each node more memory (--memory, or resourcesPerNode), or load less of the data at once",
)
SHARED_MEMORY: Final = Cause(
    "SharedMemoryFull",
    "Shared memory is full",
    "Data loader workers and NCCL pass data through /dev/shm, which has 64 MiB in most containers.",
    "Mount an emptyDir with medium Memory at /dev/shm, or use fewer data loader workers",
)
DISK_FULL: Final = Cause(
    "DiskFull",
    "The disk is full",
    "A write failed because the file system, or the quota on it, has no room left. Checkpoints, logs and caches of"
    " datasets are the usual reasons.",
    "Make room: trainwright runs delete --finished, or write to a larger volume",
    "`df -h` on the node shows which file system it is. settings.toml limits what finished runs may keep.",
)
PERMISSION: Final = Cause(
    "PermissionDenied",
    "Permission denied",
    "The rank may not read, write or execute a file.",
    "Give the user of the rank the right to it, or write to $TRAINWRIGHT_OUTPUT",
)
PORT_IN_USE: Final = Cause(
    "PortInUse",
    "A port is in use",
    "The first rank listens on a port for the others, and another process has that port already: an earlier run that"
    " has not ended, or another training on the same machine.",
    "End the process that holds the port, or let Trainwright choose one: do not set --master-port or MASTER_PORT",
    "On the local cluster every job gets ports of its own in place of those that its runtime names; a port that a"
    " script sets by itself is not known to it.",
)
RENDEZVOUS: Final = Cause(
    "RendezvousTimeout",
    "The ranks did not find each other in time",
    "A rank waited for the others to join and gave up. A node was not started, started too late or failed before, the"
    " number of nodes that each rank expects is wrong, or a network policy lies between them.",
    "See what became of the rank that is missing: trainwright why JOB, and trainwright get pods",
    "All nodes must start: where the cluster has room for some only, a gang scheduler keeps the others from waiting.",
)
WORLD_SIZE: Final = Cause(
    "WorldSizeMismatch",
    "The number of ranks does not fit",
    "The program expects another number of ranks than the job has: a device mesh, a sharded checkpoint, a batch size"
    " that must be divisible, or a rank without a GPU of its own.",
    "Make nodes times processes what the program expects: --nodes and --procs, or numNodes and numProcPerNode",
)
NCCL: Final = Cause(
    "NcclError",
    "NCCL failed",
    "The library that connects GPUs reported an error: a network interface that cannot reach the others, a GPU that"
    " fell off the bus, or versions of NCCL that differ between ranks.",
    "Run it once with NCCL_DEBUG=INFO, and name the network with NCCL_SOCKET_IFNAME",
    "If one rank ended first, its own error is the cause and NCCL's on the others is what they saw of it.",
)
COLLECTIVE: Final = Cause(
    "CollectiveTimeout",
    "A collective operation timed out",
    "A rank waited in an operation such as all_reduce for a rank that never came: the ranks do not run the same"
    " operations in the same order, or one of them hangs, or works for longer than the time-out.",
    "Find the rank that did not arrive: trainwright why JOB while it hangs, or TORCH_NCCL_TRACE_BUFFER_SIZE",
)
NO_GPU_SEEN: Final = Cause(
    "GpuNotUsable",
    "The program finds no GPU",
    "The program wants CUDA and there is no GPU, no driver, or a PyTorch without CUDA where the rank runs.",
    "Ask for GPUs with --gpus on a machine that has them, or let the program run on the CPU",
)
ARGUMENTS: Final = Cause(
    "WrongArguments",
    "The program was called with the wrong arguments",
    "The program's own command line parser refused what it got.",
    "Correct what stands behind -- on the command line, or args of the TrainJob",
)
PEER_LOST: Final = Cause(
    "PeerLost",
    "The connection to another rank broke",
    "Another rank ended while this one spoke with it. This is what the ranks see that did not fail.",
    "Look at the rank that ended first: trainwright logs JOB shows the lines of all",
)
EXCEPTION: Final = Cause(
    "Exception",
    "The program raised an exception",
    "The training code, or a library that it uses, raised an exception that nobody caught. The headline shows the"
    " exception, the rank and the last line of your own code.",
    "Mend the code, then run it again; all lines before it: trainwright logs JOB",
)


SHARED_GPU: Final = re.compile("Duplicate GPU detected")
"""What NCCL says of two ranks that use one GPU."""


class Pattern(NamedTuple):
    cause: Cause
    expression: re.Pattern[str]
    anywhere: bool = False


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


PATTERNS: Final = (
    Pattern(
        CUDA_MEMORY,
        _words("CUDA out of memory", "HIP out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
               "RESOURCE_EXHAUSTED: Out of memory"),
        True,
    ),
    Pattern(
        SHARED_MEMORY,
        _words("insufficient shared memory", r"No space left on device.*/dev/shm", r"/[d]ev/shm.*No space",
               "unable to (?:open|write to|mmap).*shared memory"),
        True,
    ),
    Pattern(DISK_FULL, _words("No space left on device", "Disk quota exceeded", r"\[Errno (?:28|122)\]"), True),
    Pattern(
        HOST_MEMORY,
        _words(r"^(?:numpy\.\S*)?_?(?:Array)?MemoryError\b", "DefaultCPUAllocator: can't allocate memory",
               "Cannot allocate memory", "std::bad_alloc", "Unable to allocate .* for an array"),
        True,
    ),
    Pattern(PORT_IN_USE, _words("EADDRINUSE", "[Aa]ddress already in use"), True),
    Pattern(
        RENDEZVOUS,
        _words("RendezvousTimeoutError", r"waiting for clients\. \d+/\d+ clients joined",
               r"[Tt]imed out (?:after|waiting).*(?:rendezvous|clients|to join)", "RendezvousConnectionError"),
        True,
    ),
    Pattern(
        COLLECTIVE,
        _words("Watchdog caught collective operation timeout", r"Timed out waiting \d+ms for (?:recv|send) operation",
               r"collective .*timed out"),
        True,
    ),
    Pattern(
        PEER_LOST,
        _words("[Cc]onnection closed by peer", "[Cc]onnection reset by peer", "[Bb]roken pipe", "ncclRemoteError",
               r"recvBytes.*failed", "RendezvousClosedError", "SignalException", "[Cc]onnection refused",
               "failed to recv, got 0 bytes", "remote process exited"),
    ),
    Pattern(
        NCCL,
        _words(r"NCCL (?:error|Error|WARN)", r"nccl(?:System|UnhandledCuda|Internal)Error", "ncclInvalidUsage"),
        True,
    ),
    Pattern(
        WORLD_SIZE,
        _words("(?i:world[ _]?size)", "Duplicate GPU detected", r"(?i:invalid rank)", "invalid device ordinal",
               r"rank \d+ (?:is )?(?:out of range|>= )"),
    ),
    Pattern(
        NO_GPU_SEEN,
        _words("No CUDA GPUs are available", "Torch not compiled with CUDA enabled", "Found no NVIDIA driver",
               "no CUDA-capable device", "CUDA driver version is insufficient"),
        True,
    ),
    Pattern(
        IMPORT_FAILED,
        _words(r"^ModuleNotFoundError\b", r"^ImportError\b", r": No module named ", "cannot open shared object file"),
        True,
    ),
    Pattern(
        FILE_MISSING, _words(r"^FileNotFoundError\b", r"can't open file '.*No such file", r"^NotADirectory"), True
    ),
    Pattern(FILE_MISSING, _words("No such file or directory")),
    Pattern(PERMISSION, _words(r"^PermissionError\b", r"can't open file '.*Permission denied")),
    Pattern(PERMISSION, _words(": Permission denied$"), True),
    Pattern(
        ARGUMENTS,
        _words(r"^\S+: error: (?:unrecognized arguments|the following arguments are|argument |invalid choice)"),
        True,
    ),
)  # fmt: skip
