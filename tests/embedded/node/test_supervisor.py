"""A pod's supervisor with real processes: exit codes, signals, logs, and which process survives the death of which."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.node.machine import PROBED, Machine, isolations, processes_marked, supervisor_pid, terminated
from trainwright.embedded.node.pods import identity
from trainwright.embedded.node.pods.record import ContainerRecord, Isolation, supervisor_of
from trainwright.embedded.node.pods.spawning import StartFailed
from trainwright.embedded.node.supervision.crilog import MAX_BYTES, MAX_FILES
from trainwright.embedded.node.supervision.tiers import T0_ISOLATION

every_isolation = pytest.mark.parametrize("isolation", isolations())
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
namespaces_only = pytest.mark.skipif(PROBED.name == "T0", reason=PROBED.reason)


@every_isolation
async def test_exit_codes_are_recorded_as_they_were(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(["sh", "-c", "exit 0"], ["sh", "-c", "exit 3"], isolation=isolation)
    record = await machine.done(directory)
    assert (terminated(record, "c0")["exitCode"], terminated(record, "c0")["reason"]) == (0, "Completed")
    assert (terminated(record, "c1")["exitCode"], terminated(record, "c1")["reason"]) == (3, "Error")


@every_isolation
async def test_a_signal_becomes_128_and_its_number(machine: Machine, isolation: Isolation) -> None:
    record = await machine.done(await machine.start(["sh", "-c", "kill -SEGV $$"], isolation=isolation))
    assert terminated(record)["exitCode"] == 128 + signal.SIGSEGV
    assert terminated(record)["signal"] == signal.SIGSEGV


@every_isolation
@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        (["no-such-program"], None, "executable file not found in $PATH"),
        (["/no/such/program"], None, "executable file not found on this machine"),
        (["/etc/passwd"], None, "Permission denied"),
        (["true"], "/no/such/directory", "working directory /no/such/directory: No such file or directory"),
    ],
)
async def test_a_command_that_cannot_start_says_why(
    machine: Machine, isolation: Isolation, argv: list[str], cwd: str | None, says: str
) -> None:
    record = await machine.done(await machine.start(argv, isolation=isolation, cwd=cwd))
    assert terminated(record)["reason"] == "StartError"
    assert terminated(record)["exitCode"] == 128
    assert says in terminated(record)["message"]


@every_isolation
async def test_sigterm_reaches_the_command_and_its_exit_code_counts(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(
        ["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done"], isolation=isolation
    )
    await machine.says(directory, "up")
    assert not await machine.directories.terminate(directory, 30)
    assert terminated(await machine.done(directory))["exitCode"] == 7


@every_isolation
async def test_a_command_that_ignores_sigterm_is_killed_when_the_grace_period_is_over(
    machine: Machine, isolation: Isolation
) -> None:
    directory = await machine.start(
        ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"], isolation=isolation
    )
    await machine.says(directory, "up")
    await machine.directories.terminate(directory, 0.3)
    assert terminated(await machine.done(directory))["exitCode"] == 137
    assert processes_marked(directory.uid) == []


@every_isolation
async def test_a_command_that_stopped_itself_is_killed_too(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(["sh", "-c", "echo up; kill -STOP 0; sleep 60"], isolation=isolation)
    await machine.says(directory, "up")
    await machine.directories.terminate(directory, 0.3)
    assert terminated(await machine.done(directory))["exitCode"] == 137
    assert processes_marked(directory.uid) == []


ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("escaped", flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep({seconds})
"""


@every_isolation
async def test_an_escaped_daemon_ends_with_its_container(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start([sys.executable, "-S", "-c", ESCAPE.format(seconds=0.2)], isolation=isolation)
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 0
    assert "escaped" in machine.raw_log(directory)
    assert processes_marked(directory.uid) == []


@every_isolation
async def test_kill_9_of_the_supervisor_ends_everything_within_two_seconds(
    machine: Machine, isolation: Isolation
) -> None:
    directory = await machine.start([sys.executable, "-S", "-c", ESCAPE.format(seconds=600)], isolation=isolation)
    await machine.says(directory, "escaped")
    assert len(processes_marked(directory.uid)) >= 2
    os.kill(supervisor_pid(directory), signal.SIGKILL)
    await machine.until(lambda: processes_marked(directory.uid) == [], seconds=2)
    # A dying process has lost its environment, by which we found it, a moment before its lock.

    async def is_over() -> bool:
        return not (await machine.directories.observe(directory)).alive

    await machine.until(is_over, seconds=2)


@every_isolation
async def test_kill_9_of_supervisor_and_keepers_leaves_nothing_after_the_sweep(
    machine: Machine, isolation: Isolation
) -> None:
    directory = await machine.start([sys.executable, "-S", "-c", ESCAPE.format(seconds=600)], isolation=isolation)
    await machine.says(directory, "escaped")
    supervisor = supervisor_pid(directory)
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    for pid in (supervisor, *map(int, children)):
        os.kill(pid, signal.SIGKILL)
    await machine.until(lambda: machine.directories.terminate(directory, 0))
    await machine.until(lambda: processes_marked(directory.uid) == [], seconds=2)


async def test_a_pod_uid_is_never_started_twice(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "echo ran; sleep 0.2"])
    again = subprocess.run(
        [sys.executable, "-m", "trainwright.embedded.node.supervision.supervisor", str(directory.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, "started already" in again.stderr) == (3, True)
    await machine.done(directory)
    assert machine.raw_log(directory).count("ran") == 1


async def test_a_supervisor_outlives_the_process_that_started_it(machine: Machine, tmp_path: Path) -> None:
    """The starter is a whole process of its own that dies by kill -9; the record tells the true exit code."""
    directory = await machine.start(["sh", "-c", "echo up; sleep 0.5; exit 5"])
    record = directory.record()
    assert record is not None
    supervisor = supervisor_of(record)
    # It is in a session of its own, and its parent is not us.
    assert os.getsid(supervisor.pid) != os.getsid(0)
    status = Path(f"/proc/{supervisor.pid}/status").read_text()
    assert f"PPid:\t{os.getpid()}\n" not in status
    assert terminated(await machine.done(directory))["exitCode"] == 5
    await machine.until(lambda: not identity.is_alive(supervisor))


def nursery_of_this_process() -> int:
    """The process of ours that supervisors are forked from."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = [int(pid) for pid in children if b"supervision.nursery" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(found) == 1
    return found[0]


@linux_only
async def test_when_the_nursery_dies_pods_live_on_and_new_ones_start(machine: Machine) -> None:
    first = await machine.start(["sh", "-c", "echo up; sleep 0.5; exit 5"])
    os.kill(nursery_of_this_process(), signal.SIGKILL)
    second = await machine.start(["sh", "-c", "exit 6"])
    assert terminated(await machine.done(first))["exitCode"] == 5
    assert terminated(await machine.done(second))["exitCode"] == 6


@linux_only
async def test_a_nursery_that_dies_while_it_starts_pods_leaves_each_started_once(machine: Machine) -> None:
    await machine.start(["true"])
    nursery = nursery_of_this_process()
    os.kill(nursery, signal.SIGSTOP)  # requests wait in its pipe
    starting = [asyncio.ensure_future(machine.start(["sh", "-c", "echo ran"])) for _ in range(3)]
    asyncio.get_running_loop().call_later(0.2, os.kill, nursery, signal.SIGKILL)
    for directory in await asyncio.gather(*starting):
        await machine.done(directory)
        assert machine.raw_log(directory).count("ran") == 1


async def test_a_supervisor_that_cannot_begin_says_why(machine: Machine) -> None:
    directory = await machine.start(["true"])
    await machine.done(directory)
    pod = directory.pod()
    assert pod is not None
    with pytest.raises(StartFailed, match="started already"):
        await machine.directories.start(directory, pod)


async def test_init_containers_run_one_after_the_other_and_first(machine: Machine) -> None:
    script = "cat order 2>/dev/null; echo {0} >> order"
    directory = await machine.start(
        ["sh", "-c", "cat order"], init=[["sh", "-c", script.format("a")], ["sh", "-c", script.format("b")]]
    )
    await machine.done(directory)
    assert await machine.output(directory) == b"a\nb\n"


async def test_a_failed_init_container_keeps_the_pod_from_starting(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "echo never"], init=[["sh", "-c", "exit 4"]])
    record = await machine.done(directory)
    assert record["initContainers"]["init0"]["state"]["terminated"]["exitCode"] == 4
    assert "waiting" in record["containers"]["c0"]["state"]


async def test_on_failure_restarts_at_once_then_after_a_back_off_and_keeps_each_instances_log(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "echo try; exit 1"], policy="OnFailure", grace=0)

    def container() -> ContainerRecord:
        record = directory.record()
        assert record is not None
        return record["containers"]["c0"]

    await machine.until(lambda: container()["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")
    assert container()["lastState"]["terminated"]["exitCode"] == 1
    assert container()["restartCount"] == 1
    assert container()["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=c0 pod=pod_")
    await machine.directories.terminate(directory, 0)
    await machine.done(directory)
    assert await machine.output(directory, restart=0) == await machine.output(directory, restart=1) == b"try\n"


async def test_on_failure_is_done_when_it_succeeds(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "mkdir once && exit 1; exit 0"], policy="OnFailure")
    record = await machine.done(directory)
    assert (terminated(record)["exitCode"], record["containers"]["c0"]["restartCount"]) == (0, 1)


async def test_output_comes_back_byte_for_byte(machine: Machine) -> None:
    written = bytes(range(256)) * 1000 + b"\n" + b"x" * 300000 + b"\nno newline at the end"
    program = (
        "import sys; out = sys.stdout.buffer; out.write(bytes(range(256)) * 1000);"
        " out.write(b'\\n' + b'x' * 300000 + b'\\nno newline at the end')"
    )
    directory = await machine.start([sys.executable, "-S", "-c", program])
    await machine.done(directory)
    assert await machine.output(directory) == written


async def test_an_unfinished_line_is_seen_before_it_is_finished(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "printf 'epoch 1: 40%%'; sleep 600"], grace=0)
    await machine.says(directory, "stdout P epoch 1: 40%")


async def test_a_flood_of_output_keeps_its_tail_and_little_of_the_disk(machine: Machine) -> None:
    count = 2_000_000
    program = f"import sys\nfor n in range({count}): sys.stdout.write(f'line number {{n}}\\n')"
    directory = await machine.start([sys.executable, "-S", "-c", program])
    await machine.done(directory)
    files = list(directory.log("c0", 0).parent.iterdir())
    assert sum(file.stat().st_size for file in files) <= (MAX_FILES + 1) * MAX_BYTES
    lines = (await machine.output(directory)).decode().splitlines()
    assert lines[-1] == f"line number {count - 1}"
    first = int(lines[0].rsplit(" ", 1)[1])
    assert lines == [f"line number {n}" for n in range(first, count)]


@linux_only
async def test_out_of_descriptors_is_told_in_the_containers_state(machine: Machine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    init = [["sh", "-c", f"echo up; while [ ! -e {gate} ]; do sleep 0.05; done"]]
    directory = await machine.start(["true"], init=init)
    await machine.says(directory, "up", "init0")
    supervisor = supervisor_pid(directory)
    # Enough for its record, not enough for another container's four pipes.
    most = max(int(name) for name in os.listdir(f"/proc/{supervisor}/fd")) + 1
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (most, most))
    gate.touch()
    record = await machine.done(directory)
    assert terminated(record)["reason"] == "StartError"
    assert "Too many open files" in terminated(record)["message"]


@linux_only
async def test_a_flood_of_output_costs_no_memory(machine: Machine) -> None:
    program = "import os\nwhile True: os.write(1, b'x' * 65536)"
    directory = await machine.start([sys.executable, "-S", "-c", program], grace=0)
    await machine.until(lambda: len(list(directory.path.glob("logs/c0/*"))) >= 4)
    status = Path(f"/proc/{supervisor_pid(directory)}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 40_000, "kilobytes"


@namespaces_only
async def test_a_pod_has_a_host_name_and_hosts_of_its_own(machine: Machine) -> None:
    hosts = "127.64.0.1 pod-0.svc.default.svc.cluster.local pod-0.svc pod-0\n127.64.0.2 pod-1.svc\n"
    program = "import socket; print(socket.gethostname(), socket.gethostbyname('pod-1.svc'), socket.getfqdn())"
    directory = await machine.start([sys.executable, "-S", "-c", program], hosts=hosts)
    await machine.done(directory)
    assert await machine.output(directory) == b"pod-0 127.64.0.2 pod-0.svc.default.svc.cluster.local\n"


@namespaces_only
async def test_hosts_changed_in_place_are_seen_by_a_running_pod(machine: Machine) -> None:
    script = "echo up; until getent hosts late.svc; do sleep 0.05; done"
    directory = await machine.start(["sh", "-c", script])
    await machine.says(directory, "up")
    with open(directory.hosts, "r+") as file:
        file.write("127.64.0.9 late.svc\n")
        file.truncate()
    await machine.done(directory)
    assert "127.64.0.9" in machine.raw_log(directory)


@namespaces_only
async def test_volumes_appear_at_paths_the_machine_does_not_have(machine: Machine, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "data").write_text("from the volume")
    mounts = [
        {"source": str(volume), "target": "/trainwright-test/deep", "readOnly": False},
        {"source": str(volume / "data"), "target": "/etc/trainwright-test/file", "readOnly": True},
    ]
    script = (
        "cat /trainwright-test/deep/data /etc/trainwright-test/file; echo; echo new > /trainwright-test/deep/new;"
        " echo no > /etc/trainwright-test/file || echo read-only; test -e /etc/passwd && echo machine"
    )
    directory = await machine.start(["sh", "-c", script], mounts=mounts)
    await machine.done(directory)
    output = await machine.output(directory)
    assert output.startswith(b"from the volumefrom the volume\n")
    assert b"read-only\nmachine\n" in output
    assert (volume / "new").read_text() == "new\n"
    assert not Path("/trainwright-test").exists()
    assert not Path("/etc/trainwright-test").exists()


@namespaces_only
async def test_a_volume_below_run_leaves_the_rest_of_the_tree_the_machines_own(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("from the volume\n")
    mounts = [
        {"source": str(tmp_path), "target": "/var/run/trainwright-test/deep", "readOnly": True},
        {"source": str(tmp_path), "target": "/var/run/trainwright-test/other", "readOnly": True},
    ]
    before = set(os.listdir("/var/run"))
    script = "cat /var/run/trainwright-test/deep/data; stat -c %d / /usr; ls -A /var/run"
    directory = await machine.start(["sh", "-c", script], mounts=mounts)
    await machine.done(directory)
    said, root, programs, *shown = (await machine.output(directory)).decode().splitlines()
    assert said == "from the volume"
    assert [int(root), int(programs)] == [os.stat("/").st_dev, os.stat("/usr").st_dev]
    assert set(shown) >= {"trainwright-test", *(before & set(os.listdir("/var/run")))}
    assert not Path("/var/run/trainwright-test").exists()


@namespaces_only
@pytest.mark.skipif(not PROBED.isolation["pid"], reason="no PID namespaces here")
async def test_a_pod_sees_its_own_processes_only(machine: Machine) -> None:
    directory = await machine.start(["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
    await machine.done(directory)
    assert int(await machine.output(directory)) <= 4


async def test_a_supervisor_costs_little_memory(machine: Machine) -> None:
    directory = await machine.start(["sleep", "600"], isolation=T0_ISOLATION, grace=0)
    status = Path(f"/proc/{supervisor_pid(directory)}/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0])
    assert resident < 20_000, "kilobytes"
