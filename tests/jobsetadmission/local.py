"""Our API server with our JobSet webhooks, over HTTPS as on a laptop, to be asked about JobSets."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trainwright.client import Client
from trainwright.client.kubeconfig import load
from trainwright.embedded import manifests
from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.workloads import webhooks
from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.jobset.admission import JobSetAdmission
from trainwright.http.server import Server
from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Rest


class Asked:
    """The REST client as `asking` wants it: patches are merge patches."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def raw(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        code, answer = self._rest.raw(method, path, body, content_type=content)
        return code, msgspec.json.decode(answer)


@contextmanager
def served(directory: Path, gates: Features) -> Iterator[Asked]:
    """The server runs in a thread of its own until the block ends."""
    ready, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with ApiServer(directory) as server:
            await server.install(crd for crd in manifests.crds() if crd["spec"]["group"] == "jobset.x-k8s.io")
            certificate = server.issue_certificate("jobset", ["127.0.0.1"])
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(certificate.cert, certificate.key)
            bundle = base64.b64encode(Path(server.ca_file).read_bytes()).decode()
            async with Client.to(load(server.kubeconfig)) as client:
                application = webhooks.application(JobSetAdmission(client, gates))
                async with Server(application, ("127.0.0.1", 0), tls) as admission:

                    def where(path: str) -> Json:
                        return {"url": f"https://127.0.0.1:{admission.port}{path}", "caBundle": bundle}

                    await server.install(webhooks.configurations(where))
                    ready.set()
                    await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="jobset admission")
    thread.start()
    try:
        assert ready.wait(30), "the API server did not start"
        yield Asked(Rest.from_kubeconfig(directory / "kubeconfig", directory / "scratch"))
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(30)
