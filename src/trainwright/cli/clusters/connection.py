"""The asynchronous part of a command, with messages for errors of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from trainwright.cli.failure import Failure
from trainwright.client.errors import ApiError, ClientError, Unreachable

T = TypeVar("T")


def carry_out(work: Coroutine[Any, Any, T]) -> T:
    """Runs the asynchronous part of a command. An error of the API server becomes the command's message."""
    try:
        return asyncio.run(work)
    except Unreachable as error:
        raise Failure(f"the cluster does not answer: {error}") from error
    except ApiError as error:
        raise Failure(f"the API server refused the request: {error}") from error
    except ClientError as error:
        raise Failure(str(error)) from error
