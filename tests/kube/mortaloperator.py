"""An operator that is killed at one of its writes: `mortaloperator.py KUBECONFIG NAMESPACE NTH before|after`.

It sends itself SIGKILL instead of its nth write to the namespace, or when that has been answered. With 0 it lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from trainwright.client import Client, HttpTransport
from trainwright.client.kubeconfig import load
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.operator.manager import Operator
from trainwright.testing.plans.stage import is_counted


class Mortal(HttpTransport):
    def __init__(self, kubeconfig: Path, namespace: str, nth: int, when: str) -> None:
        super().__init__(load(kubeconfig))
        self._here = f"/namespaces/{namespace}/"
        self._left = nth
        self._when = when

    async def send(self, request: Request, *, deadline: float) -> Answer:
        is_last = False
        if is_counted(request) and self._here in request.path:
            self._left -= 1
            is_last = self._left == 0
        if is_last and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await super().send(request, deadline=deadline)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


async def main(kubeconfig: str, namespace: str, nth: str, when: str) -> None:
    async with Client(Mortal(Path(kubeconfig), namespace, int(nth), when)) as client:
        await Operator(client).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
