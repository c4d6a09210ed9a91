"""The API server alone: `python -m trainwright.embedded.apiserver --dir STATE [--port P] [--no-crds]`.

What tests, benchmarks and the recorded corpus run against. `trainwright up` is the way for users.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from trainwright.embedded import manifests
from trainwright.embedded.apiserver import ApiServer, ControllerFailed, StoreError, User
from trainwright.embedded.apiserver.errors import StatusError


async def serve(arguments: argparse.Namespace) -> None:
    users = {token: User(name, groups=tuple(groups)) for token, name, *groups in arguments.user}
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ApiServer(arguments.dir, arguments.port, users=users) as server:
        if arguments.crds:
            await server.install(manifests.crds())
        print(f"{server.url}\nexport KUBECONFIG={server.kubeconfig}", flush=True)
        await stop.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", type=Path, required=True, help="where the state lives")
    parser.add_argument("--port", type=int, default=0, help="default: the one of last time, else any")
    parser.add_argument("--no-crds", dest="crds", action="store_false", help="only built-in kinds")
    parser.add_argument(
        "--user",
        nargs="+",
        action="append",
        default=[],
        metavar="TOKEN NAME GROUP",
        help="a further user: token, name and groups",
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        import uvloop

        uvloop.run(serve(arguments))
    except (StoreError, StatusError, ControllerFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
