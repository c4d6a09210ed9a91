"""How fast the embedded API server is: durable creates, re-applies, watch fan-out, memory, cold start.

    python bench/apiserver.py [--seconds 5] [--real | --kubeconfig FILE]

Starts a server of its own in a temporary directory. With `--real` the same load goes to a real kube-apiserver with etcd
(the programs that `make test-kube` built), with `--kubeconfig` to one that runs already; figures stand side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

CLIENTS = 32
WATCHERS, EVENTS, RATE = 500, 1_000, 50
OBJECTS = 10_000
MEMORY, COLD_START = "MB with 10,000 objects of 2 KB", "cold start in s"
LIMITS = {
    "creates/s of a 1 KB ConfigMap, 32 clients": (1_000, "min"),
    "re-applies/s of a 9 KB JobSet, 32 clients": (250, "min"),
    "watch latency p99 in ms, 500 watchers": (250, "max"),
    "events missed by watchers": (0, "max"),
    MEMORY: (120, "max"),
    COLD_START: (0.8, "max"),
}


class Target:
    """A server to load: ours, or a real one."""

    def __init__(self, kubeconfig: Path, *pids: int) -> None:
        self.pids = pids
        config = json.loads(kubeconfig.read_text()) if kubeconfig.read_text().lstrip()[:1] == "{" else _yaml(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url: str = cluster["server"]
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        data = cluster.get("certificate-authority-data")
        pem = base64.b64decode(data).decode() if data else Path(cluster["certificate-authority"]).read_text()
        self.context = ssl.create_default_context(cadata=pem)
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as pair:  # ssl reads key material from files only
                for member in ("client-certificate-data", "client-key-data"):
                    pair.write(base64.b64decode(user[member]) + b"\n")
                pair.flush()
                self.context.load_cert_chain(pair.name)
        elif "client-certificate" in user:
            self.context.load_cert_chain(user["client-certificate"], user["client-key"])

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self.context, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            self.url, connector=connector, headers=self.headers, timeout=timeout, read_bufsize=2**20
        ) as session:
            yield session

    def rss(self) -> float:
        """The resident memory of all processes of the server, in MB."""
        statuses = [Path(f"/proc/{pid}/status").read_text().splitlines() for pid in self.pids]
        return sum(int(line.split()[1]) for lines in statuses for line in lines if line.startswith("VmRSS:")) / 1024


def _yaml(path: Path) -> Any:
    import yaml

    return yaml.safe_load(path.read_text())


async def load(seconds: float, clients: int, one: Any) -> float:
    """Operations per second of `clients` running `one(number)` over and over."""
    done = 0
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        nonlocal done
        count = 0
        while time.monotonic() < end:
            await one(f"{number}-{count}")
            count += 1
            done += 1

    began = time.monotonic()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return done / (time.monotonic() - began)


async def creates(target: Target, seconds: float) -> float:
    async with target.session() as session:
        payload = "x" * 900

        async def one(name: str) -> None:
            body = {"metadata": {"name": f"create-{name}"}, "data": {"payload": payload}}
            async with session.post("/api/v1/namespaces/bench/configmaps", json=body) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()

        return await load(seconds, CLIENTS, one)


def jobset(name: str) -> dict[str, Any]:
    """About 9 KB, as the operator renders it."""
    environment = [{"name": f"VARIABLE_{index}", "value": "v" * 20} for index in range(60)]
    container: dict[str, Any] = {
        "name": "node",
        "image": "example.org/train:1",
        "command": ["torchrun", "train.py"],
        "env": environment,
    }
    container["resources"] = {"limits": {"cpu": "4", "memory": "8Gi"}, "requests": {"cpu": "4", "memory": "8Gi"}}
    container["volumeMounts"] = [{"name": f"v{index}", "mountPath": f"/mnt/{index}"} for index in range(10)]
    volumes = [{"name": f"v{index}", "emptyDir": {}} for index in range(10)]
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    template = {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}}}
    labels = {f"example.org/label-{index}": "value" for index in range(10)}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "bench", "labels": labels},
        "spec": {
            "suspend": True,
            "replicatedJobs": [{"name": step, "template": template} for step in ("dataset", "node")],
        },
    }


async def applies(target: Target, seconds: float) -> float:
    async with target.session() as session:
        headers = {"Content-Type": "application/apply-patch+yaml"}
        bodies = {str(number): json.dumps(jobset(f"js-{number}")).encode() for number in range(CLIENTS)}

        async def one(name: str) -> None:
            number = name.partition("-")[0]
            path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/bench/jobsets/js-{number}?fieldManager=bench&force=true"
            async with session.patch(path, data=bodies[number], headers=headers) as answer:
                assert answer.status in (200, 201), await answer.text()
                await answer.read()

        await asyncio.gather(*(one(f"{number}-0") for number in range(CLIENTS)))
        return await load(seconds, CLIENTS, one)


class LineCounter(asyncio.Protocol):
    """Counts the lines of a watch on a bare socket: an HTTP client cannot read 25,000 lines a second."""

    def __init__(self, target: Target, sent: dict[bytes, float], latencies: list[float]) -> None:
        self.target = target
        self.sent = sent
        self.latencies = latencies
        self.seen = 0
        self.started = asyncio.get_running_loop().create_future()
        self.done = asyncio.get_running_loop().create_future()
        self.rest = b""

    def connection_made(self, transport: Any) -> None:
        path = "/api/v1/namespaces/bench-watch/configmaps?watch=true&timeoutSeconds=600"
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.target.headers.items())
        transport.write((head + "\r\n").encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self.started.done():
            self.started.set_result(None)
        data = self.rest + data
        at = 0
        while True:
            found = data.find(b'"name":"event-', at)
            if found < 0 or found + 18 > len(data):
                break
            self.latencies.append((now - self.sent[data[found + 8 : found + 18]]) * 1000)
            self.seen += 1
            at = found + 18
        self.rest = data[max(at, len(data) - 32) :]
        if self.seen >= EVENTS and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def fan_out(target: Target) -> tuple[float, int]:
    """p99 from a write to each watcher's line, in milliseconds, and how many events were not seen."""
    latencies: list[float] = []
    sent: dict[bytes, float] = {}
    loop = asyncio.get_running_loop()
    host, _, port = target.url.removeprefix("https://").partition(":")
    watchers: list[LineCounter] = []
    for _ in range(WATCHERS):
        _, watcher = await loop.create_connection(
            lambda: LineCounter(target, sent, latencies), host, int(port), ssl=target.context
        )
        watchers.append(watcher)
    await asyncio.gather(*(watcher.started for watcher in watchers))
    async with target.session() as session:
        began = time.monotonic()
        writes = []
        for number in range(EVENTS):
            await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
            writes.append(asyncio.create_task(_event(session, f"event-{number:04d}", sent)))
        await asyncio.gather(*writes)
    await asyncio.wait([watcher.done for watcher in watchers], timeout=30)
    latencies.sort()
    missed = sum(max(0, EVENTS - watcher.seen) for watcher in watchers)
    return latencies[int(len(latencies) * 0.99)], missed


async def _event(session: aiohttp.ClientSession, name: str, sent: dict[bytes, float]) -> None:
    sent[name.encode()] = time.monotonic()
    body = {"metadata": {"name": name}, "data": {"payload": "x" * 500}}
    async with session.post("/api/v1/namespaces/bench-watch/configmaps", json=body) as answer:
        assert answer.status == 201, await answer.text()


async def fill(target: Target) -> float:
    """Resident memory with OBJECTS objects."""
    async with target.session() as session:
        payload = "x" * 1700
        gate = asyncio.Semaphore(64)

        async def one(number: int) -> None:
            body = {"metadata": {"name": f"fill-{number}"}, "data": {"payload": payload}}
            async with gate, session.post("/api/v1/namespaces/bench-fill/configmaps", json=body) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()

        await asyncio.gather(*(one(number) for number in range(OBJECTS)))
        return target.rss()


async def prepare(target: Target) -> None:
    async with target.session() as session:
        for name in ("bench", "bench-watch", "bench-fill"):
            async with session.post("/api/v1/namespaces", json={"metadata": {"name": name}}) as answer:
                assert answer.status in (201, 409), await answer.text()


def start(directory: Path, *options: str) -> tuple[subprocess.Popen[str], float]:
    began = time.monotonic()
    command = [sys.executable, "-m", "trainwright.embedded.apiserver", "--dir", str(directory), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process, time.monotonic() - began


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(10)


async def measure(target: Target, seconds: float, figures: dict[str, float]) -> None:
    names = list(LIMITS)
    await prepare(target)
    figures[names[0]] = await creates(target, seconds)
    figures[names[1]] = await applies(target, seconds)
    p99, missed = await fan_out(target)
    figures[names[2]], figures[names[3]] = p99, missed


def ours(seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "state"
        process, _ = start(directory)
        try:
            uvloop.run(measure(Target(directory / "kubeconfig", process.pid), seconds, figures))
        finally:
            stop(process)
        second = Path(folder) / "filled"
        process, _ = start(second, "--no-crds")
        try:
            target = Target(second / "kubeconfig", process.pid)
            uvloop.run(prepare(target))
            figures[MEMORY] = uvloop.run(fill(target))
        finally:
            stop(process)
        third = Path(folder) / "cold"
        stop(start(third, "--no-crds")[0])
        times = []
        for _ in range(3):
            process, took = start(third, "--no-crds")
            times.append(took)
            stop(process)
        figures[COLD_START] = min(times)
    return figures


def real_one(seconds: float) -> dict[str, float]:
    """A real kube-apiserver with etcd; its memory is that of both."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from kube.binaries import build
    from kube.crds import install_crds
    from trainwright.testing.controlplane import RealControlPlane

    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        with RealControlPlane(build, Path(folder) / "loaded", with_parts=(), with_audit_log=False) as plane:
            install_crds(plane)
            uvloop.run(measure(Target(plane.admin_kubeconfig), seconds, figures))
        with RealControlPlane(build, Path(folder) / "filled", with_parts=(), with_audit_log=False) as plane:
            figures[COLD_START] = plane.seconds_to_ready
            target = Target(plane.admin_kubeconfig, *(part.pid for part in plane.parts.values()))
            uvloop.run(prepare(target))
            figures[MEMORY] = uvloop.run(fill(target))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each throughput measurement")
    other_server = parser.add_mutually_exclusive_group()
    other_server.add_argument("--real", action="store_true", help="compare with a kube-apiserver that we start")
    other_server.add_argument("--kubeconfig", type=Path, help="compare with a running one (with JobSet's CRD)")
    arguments = parser.parse_args()
    figures = ours(arguments.seconds)
    real: dict[str, float] = real_one(arguments.seconds) if arguments.real else {}
    if arguments.kubeconfig:
        uvloop.run(measure(Target(arguments.kubeconfig), arguments.seconds, real))
    print(f"{'':<46}{'embedded':>10}{'limit':>10}{'kube-apiserver':>16}   load {os.getloadavg()[0]:.1f}")
    failed = False
    for name, (limit, kind) in LIMITS.items():
        value = figures[name]
        good = value >= limit if kind == "min" else value <= limit
        failed = failed or not good
        other = f"{real[name]:>16.1f}" if name in real else " " * 16
        print(f"{name:<46}{value:>10.1f}{limit:>10}{other}   {'ok' if good else 'MISSED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
