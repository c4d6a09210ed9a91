"""How a command reaches the local cluster: by the kubeconfig in its directory, with messages for errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, ClientError, Unreachable

T = TypeVar("T")


@asynccontextmanager
async def connected(
    cluster: ClusterDirectory, on_warning: Callable[[str], None] | None = None
) -> AsyncIterator[Client]:
    """A client of the local cluster. The server's warnings go to `on_warning`."""
    if cluster.running_pid() is None:
        raise Failure(
            f"no local cluster is running on {cluster.path}; start one with: trainwright up --detach{cluster.flag()}"
        )
    async with Client.to(kubeconfig.load(cluster.kubeconfig), on_warning=on_warning) as client:
        yield client


def carry_out(work: Coroutine[Any, Any, T]) -> T:
    """Runs the asynchronous part of a command. An error of the API server becomes the command's message."""
    try:
        return asyncio.run(work)
    except Unreachable as error:
        raise Failure(f"the local cluster does not answer: {error}") from error
    except ApiError as error:
        raise Failure(f"the API server refused the request: {error}") from error
    except ClientError as error:
        raise Failure(str(error)) from error
