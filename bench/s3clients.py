"""S3 clients side by side: what they add to an install, what importing them costs, how fast they fetch.

    python bench/s3clients.py [--size 1024] [--rounds 3]

Each client gets an environment of its own in build/s3clients (uv installs it; the first run needs the network). A
server on loopback answers for one object from memory-backed storage, without checking signatures; each client
writes the object to a file there. Ours is the whole initializer: it also lists, journals, syncs and checks. CPU is
the client's own, the best of the rounds, so that a busy machine matters less. The table in docs/dependencies.md is
this program's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / "build" / "s3clients"
KEYS = "region_name='us-east-1', aws_access_key_id='a', aws_secret_access_key='b'"

CLIENTS = {
    "boto3": (
        f"import boto3\nclient = boto3.client('s3', endpoint_url=URL, {KEYS})",
        "client.download_file('bucket', 'object', OUT)",
    ),
    "aiobotocore": (
        "import asyncio\nfrom aiobotocore.session import get_session\n"
        f"client = get_session().create_client('s3', endpoint_url=URL, {KEYS})",
        """
async def main():
    async with client as s3:
        answer = await s3.get_object(Bucket='bucket', Key='object')
        with open(OUT, 'wb') as file:
            async for piece in answer['Body'].iter_chunks(1 << 20):
                file.write(piece)
asyncio.run(main())""",
    ),
    "minio": (
        "from minio import Minio\n"
        "client = Minio(URL.split('//')[1], access_key='a', secret_key='b', secure=False, region='us-east-1')",
        "client.fget_object(bucket_name='bucket', object_name='object', file_path=OUT)",
    ),
    "obstore": (
        "import obstore\nfrom obstore.store import S3Store\n"
        "client = S3Store('bucket', endpoint=URL, region='us-east-1', access_key_id='a', secret_access_key='b',"
        " client_options={'allow_http': True})",
        """
with open(OUT, 'wb') as file:
    for piece in obstore.get(client, 'object').stream(min_chunk_size=1 << 20):
        file.write(piece)""",
    ),
    "opendal": (
        "import opendal\n"
        "client = opendal.Operator('s3', bucket='bucket', endpoint=URL, region='us-east-1', access_key_id='a',"
        " secret_access_key='b')",
        """
with client.open('object', 'rb') as answer, open(OUT, 'wb') as file:
    while piece := answer.read(1 << 20):
        file.write(piece)""",
    ),
    "ours": (
        "import trainwright.initializers.s3.source, trainwright.cli.operations.initialize",
        """
import os
os.environ.update(ENDPOINT=URL, ACCESS_KEY_ID='a', SECRET_ACCESS_KEY='b', STORAGE_URI='s3://bucket/object')
from pathlib import Path
trainwright.cli.initialize.initialize('dataset', None, Path(OUT).parent / 'ours', 'none', None)
(Path(OUT).parent / 'ours' / 'object').rename(OUT)""",
    ),
}

SERVER = """
import os, sys
from aiohttp import web
path = sys.argv[1]
found = os.stat(path)
ETAG = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'  # as aiohttp makes it; not an MD5, as of an upload in parts
OBJECT = f'<Contents><Key>object</Key><Size>{found.st_size}</Size><ETag>{ETAG}</ETag></Contents>'
LISTING = f'<ListBucketResult>{OBJECT}</ListBucketResult>'
async def listing(request): return web.Response(text=LISTING, content_type='application/xml')
async def content(request): return web.FileResponse(path, chunk_size=1 << 20)
app = web.Application()
app.router.add_get('/bucket', listing)
app.router.add_route('*', '/bucket/object', content)
async def tell(app): print('ready', flush=True)
app.on_startup.append(tell)
web.run_app(app, host='127.0.0.1', port=int(sys.argv[2]), print=None)
"""

MEASURED = """
import json, sys, time
URL, OUT = sys.argv[1:3]
{first}
begun = time.perf_counter()
{second}
taken = time.perf_counter() - begun
print(json.dumps(taken))
"""


def environment(client: str) -> tuple[str, float, int]:
    """The client's Python, how many MB its packages take, and how many they are; of ours, what is added to the base."""
    if client == "ours":
        return sys.executable, 0.0, 0
    directory = ENVIRONMENTS / client
    python = str(directory / "bin" / "python")
    if not directory.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "pip", "install", "-q", "--compile-bytecode", "--python", python, client], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    size = sum(file.lstat().st_size for file in packages.rglob("*") if file.is_file()) / 1e6
    return python, size, len(list(packages.glob("*.dist-info")))


def cpu(command: list[str]) -> tuple[float, str]:
    """Seconds of CPU that a command took, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


@contextmanager
def server(path: Path, port: int) -> Iterator[str]:
    command = [sys.executable, "-c", SERVER, str(path), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size", type=int, default=1024, help="of the object, in MiB")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--port", type=int, default=18_933)
    given = arguments.parse_args()
    size = given.size * 2**20
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        content, out = Path(directory) / "content", Path(directory) / "out"
        content.write_bytes(os.urandom(2**20) * given.size)
        print(f"{'client':12} {'added MB':>8} {'packages':>8} {'import CPU ms':>13} {'MiB/s':>6} {'CPU s/GiB':>9}")
        with server(content, given.port) as url:
            for client, (first, second) in CLIENTS.items():
                python, added, packages = environment(client)
                bare = min(cpu([python, "-c", "pass"])[0] for _ in range(5))
                only = f"URL = 'http://127.0.0.1:1'\n{first}\n"
                importing = min(cpu([python, "-W", "ignore", "-c", only])[0] for _ in range(5)) - bare
                rates, costs = [], []
                for _ in range(given.rounds):
                    out.unlink(missing_ok=True)
                    script = MEASURED.format(first=first, second=second)
                    spent, said = cpu([python, "-W", "ignore", "-c", script, url, str(out)])
                    assert out.stat().st_size == size
                    rates.append(given.size / json.loads(said.splitlines()[-1]))
                    costs.append((spent - importing - bare) * 1024 / given.size)
                figures = f"{added:8.0f} {packages:8} {importing * 1000:13.0f} {max(rates):6.0f} {min(costs):9.2f}"
                print(f"{client:12} {figures}", flush=True)


if __name__ == "__main__":
    main()
