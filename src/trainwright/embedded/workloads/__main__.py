"""The workload controllers against any API server: `python -m trainwright.embedded.workloads --kubeconfig FILE`.

`--only jobset` (or job, scheduler, serviceaccounts, autoscaler; may be repeated) leaves the others to somebody else,
such as kube-controller-manager. With `--webhook-port`, `--tls-cert` and `--tls-key` JobSet's admission webhooks are
served on loopback, on JobSet's paths; somebody else registers them. `ready` on standard output says that everything has
been listed. `trainwright up` is the way for users; this is for tests and for looking at one controller by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import ssl
import sys
from pathlib import Path

import uvloop

from trainwright.client import Client, ConfigError
from trainwright.client.kubeconfig import load
from trainwright.controlloop import Manager
from trainwright.embedded.workloads import features
from trainwright.embedded.workloads.controllers import NAMES, workload_controllers
from trainwright.embedded.workloads.jobset.admission import JobSetAdmission
from trainwright.embedded.workloads.webhooks import application
from trainwright.http.server import Server

POLL_SECONDS = 0.01


class _Stopped(Exception):
    """The program was asked to end."""


async def work(arguments: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    async def stop() -> None:
        await stopped.wait()
        raise _Stopped

    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.to(load(arguments.kubeconfig)))
        if arguments.webhook_port is not None:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(arguments.tls_cert, arguments.tls_key)
            webhooks = application(JobSetAdmission(client, arguments.feature_gates))
            await stack.enter_async_context(Server(webhooks, ("127.0.0.1", arguments.webhook_port), tls))
        controllers = workload_controllers(client, only=arguments.only, gates=arguments.feature_gates)
        manager = Manager(client, controllers)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(stop())
                group.create_task(manager.run())
                while not manager.is_synced:  # noqa: ASYNC110 - many sources, one look
                    await asyncio.sleep(POLL_SECONDS)
                print("ready", flush=True)
        except* _Stopped:
            pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trainwright.embedded.workloads", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=NAMES, help="may be repeated; default: all")
    parser.add_argument("--feature-gates", type=_gates, default=features.DEFAULTS, metavar="NAME=true,…")
    parser.add_argument("--webhook-port", type=int, help="serve JobSet's webhooks on this port of loopback")
    parser.add_argument("--tls-cert", type=Path, help="with --webhook-port: the certificate, PEM")
    parser.add_argument("--tls-key", type=Path, help="with --webhook-port: its key, PEM")
    parser.add_argument("--verbose", action="store_true", help="log every step")
    arguments = parser.parse_args()
    if arguments.webhook_port is not None and not (arguments.tls_cert and arguments.tls_key):
        parser.error("--webhook-port needs --tls-cert and --tls-key")
    level = logging.DEBUG if arguments.verbose else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        uvloop.run(work(arguments))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _gates(text: str) -> features.Features:
    try:
        return features.parse(text)
    except features.UnknownGate as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
