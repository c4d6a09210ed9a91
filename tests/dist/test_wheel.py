"""The wheel that `make dist` built, installed by pip into an empty environment, as a stranger would."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from trainwright.version import __version__

ROOT = Path(__file__).parents[2]

SCRIPT = """\
import os
from pathlib import Path
import helper
print("hello from", os.environ["JOB_COMPLETION_INDEX"], helper.WORD, flush=True)
Path(os.environ["TRAINWRIGHT_OUTPUT"], "result.txt").write_text("done")
"""


class Installed:
    """The command of the wheel, with a home of its own and nothing of the source tree in sight."""

    def __init__(self, environment: Path, home: Path) -> None:
        self.bin = environment / "bin"
        self.home = home

    def __call__(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [self.bin / "trainwright", *arguments],
            capture_output=True,
            text=True,
            cwd=cwd or self.home,
            env={"HOME": str(self.home), "PATH": f"{self.bin}{os.pathsep}/usr/bin:/bin"},
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    [wheel] = (ROOT / "dist").glob(f"trainwright-{__version__}-*.whl")
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    return Installed(environment, tmp_path_factory.mktemp("home"))


def test_it_knows_its_version(installed: Installed) -> None:
    assert installed("--version").strip() == f"trainwright {__version__}"


def test_it_renders_offline_with_what_it_ships(installed: Installed) -> None:
    example = ROOT / "examples" / "torch-ddp" / "trainjob.yaml"
    assert "kind: JobSet" in installed("render", "-f", str(example))


def test_it_trains_on_this_machine(installed: Installed) -> None:
    project = installed.home / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / "helper.py").write_text("WORD = 'there'\n")
    said = installed("run", "train.py", "--nodes", "2", "--name", "first", cwd=project)
    assert {"[rank 0] hello from 0 there", "[rank 1] hello from 1 there"} <= set(said.splitlines())
    runs = installed.home / ".local" / "state" / "trainwright" / "runs"
    assert [file.read_text() for file in runs.glob("first-*/output/result.txt")] == ["done"]
    assert "Complete" in installed("runs")


def test_the_wheel_holds_no_tests_and_no_bytecode(installed: Installed) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = installed.bin.parent / "lib" / version / "site-packages"
    installed_files = (package / f"trainwright-{__version__}.dist-info" / "RECORD").read_text()
    shipped = {line.partition("/")[0] for line in installed_files.splitlines() if not line.startswith("..")}
    assert shipped == {"trainwright", f"trainwright-{__version__}.dist-info"}
