"""Build the image: `make image`, with docker, podman or buildah, whichever works here.

In: the Dockerfile. Out: an image named trainwright/trainwright:VERSION. Where no container registry can be reached,
`--base debian` makes the Dockerfile's base from Debian's packages first (mmdebstrap, buildah). Files carry the time
of the last commit (SOURCE_DATE_EPOCH), so that two builds of one commit differ only by what the base has.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trainwright.version import __version__

ROOT = Path(__file__).resolve().parents[1]
IMAGE = f"trainwright/trainwright:{__version__}"
BASE = "localhost/trainwright-base:debian"
BUILDAH = ["buildah", "--storage-driver", "vfs"]
CERTIFICATES = "/etc/ssl/certs"
PACKAGES = "python3,python3-venv,ca-certificates"
DEBIAN = """\
FROM scratch
ADD base.tar /
RUN ln -s python3 /usr/bin/python
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the image of the operator.")
    parser.add_argument("--tag", default=IMAGE, help=f"default: {IMAGE}")
    parser.add_argument("--python", help="the base image, best with its digest (default: the Dockerfile's)")
    parser.add_argument("--base", choices=("registry", "debian"), default="registry", help="where the base comes from")
    given = parser.parse_args()
    if given.base == "debian":
        debian_base()
        given.python = BASE
    run([*command(), *arguments(given.tag, given.python), str(ROOT)])
    print(given.tag)
    return 0


def command() -> list[str]:
    """The first of docker, podman and buildah that works here; docker needs its daemon too."""
    if works("docker", "info"):
        return ["docker", "build"]
    if works("podman", "info"):
        return ["podman", "build"]
    if shutil.which("buildah"):
        trust = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        bundle = ["--env", f"PIP_CERT={CERTIFICATES}/ca-certificates.crt"]
        return [
            *BUILDAH,
            "build",
            "--isolation",
            "chroot",
            "--pull-never",
            "--timestamp",
            commit_time(),
            *trust,
            *bundle,
        ]
    raise SystemExit("make image needs docker with its daemon, podman, or buildah; none of them works here")


def arguments(tag: str, python: str | None) -> list[str]:
    return ["--tag", tag, *(["--build-arg", f"PYTHON={python}"] if python else [])]


def debian_base() -> None:
    for program in ("mmdebstrap", "buildah"):
        if shutil.which(program) is None:
            raise SystemExit(f"--base debian needs {program}: apt-get install mmdebstrap buildah")
    with tempfile.TemporaryDirectory() as folder:
        tar = Path(folder) / "base.tar"
        run(["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(tar)])
        (Path(folder) / "Dockerfile").write_text(DEBIAN)
        run([*BUILDAH, "build", "--isolation", "chroot", "--tag", BASE, folder])


def commit_time() -> str:
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "0"


def works(program: str, *words: str) -> bool:
    if shutil.which(program) is None:
        return False
    return subprocess.run([program, *words], capture_output=True, check=False, timeout=30).returncode == 0


def run(words: list[str]) -> None:
    print("==", " ".join(words), file=sys.stderr, flush=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), "DOCKER_BUILDKIT": "1"}
    if code := subprocess.run(words, env=environment, check=False).returncode:
        raise SystemExit(f"{words[0]} ended with exit code {code}")


if __name__ == "__main__":
    sys.exit(main())
