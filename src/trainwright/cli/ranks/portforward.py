"""`trainwright port-forward`: ports of this machine that lead to ports of a rank."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.ranks.rankpods import pod_of
from trainwright.client.client import Client
from trainwright.client.errors import ClientError
from trainwright.client.streams import forward

READ_BYTES = 32 * 1024
LOOPBACK = "127.0.0.1"


def port_forward(name: str, rank: int | None, ports: list[str], target: Target, namespace: str) -> int:
    return carry_out(_forward(target, namespace, name, rank, [pair_of(port) for port in ports]))


def pair_of(text: str) -> tuple[int, int]:
    """The local and the remote port of `LOCAL:REMOTE`, `:REMOTE` (any free one here) or `PORT` (the same)."""
    local, colon, remote = text.rpartition(":")
    remote_text = remote or ""
    local_text = (local or "0") if colon else remote_text
    if not (local_text.isdecimal() and remote_text.isdecimal()):
        raise Failure(f"{text!r} is no pair of ports: write LOCAL:REMOTE, such as 8080:80, or :80 for any free port", 2)
    if not (0 <= int(local_text) < 65536 and 0 < int(remote_text) < 65536):
        raise Failure(f"{text!r}: a port is a number from 1 to 65535", 2)
    return int(local_text), int(remote_text)


async def _forward(target: Target, namespace: str, name: str, rank: int | None, pairs: list[tuple[int, int]]) -> int:
    async with target.client() as client, AsyncExitStack() as stack:
        pod = (await pod_of(client, target, namespace, name, rank))["metadata"]["name"]
        for local, remote in pairs:
            handler = _handler(client, namespace, pod, remote)
            try:
                server = await asyncio.start_server(handler, LOOPBACK, local, limit=READ_BYTES)
            except OSError as error:
                raise Failure(f"cannot listen on port {local} of this machine: {error.strerror}") from error
            await stack.enter_async_context(server)
            here = server.sockets[0].getsockname()[1]
            print(f"http://{LOOPBACK}:{here} leads to port {remote} of {pod}", flush=True)
        await asyncio.Event().wait()  # until Ctrl-C
    return 0


def _handler(
    client: Client, namespace: str, pod: str, port: int
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with forward(client, namespace, pod, port) as there:

                async def outwards() -> None:
                    while data := await reader.read(READ_BYTES):
                        await there.write(data)

                sending = asyncio.ensure_future(outwards())
                try:
                    while data := await there.read():
                        writer.write(data)
                        await writer.drain()
                    await there.close()
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        except ClientError as error:
            print(f"trainwright: port {port}: {error}", file=sys.stderr)
        except ConnectionError:
            pass  # one side has left
        finally:
            writer.close()

    return handle
