"""`run`, `get`, `why` and the kept record say the same of a job that fails or does not go on: which rank, why, and what
to do, within 15 seconds of the moment when the user pressed Enter.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from commandline import CommandLine, plain_job
from waiting import eventually

SECONDS = 15.0


def script(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(text)
    return folder


def why(shared: CommandLine, name: str) -> dict[str, Any]:
    told: dict[str, Any] = shared.parsed("why", name, "-o", "json")
    return told


def said_by_all(shared: CommandLine, name: str, *words: str, cwd: Path | None = None) -> dict[str, Any]:
    """What `why` says of a job that has failed by the end of `run` with these words, once it is sure that `run`, `get`
    and the record say the same, and all of it within the time."""
    begun = time.monotonic()
    output = shared("run", *words, code=1, cwd=cwd)
    told = why(shared, name)
    sentence = f"{told['headline']}. {told['mend']}"
    assert sentence in output, "run"
    assert sentence in shared("get", name), "get"
    took = time.monotonic() - begun
    assert took < SECONDS, f"{took:.1f} s"
    assert sentence in shared("runs", "describe", name), "the record"
    return told


def test_i_see_which_rank_raised_and_where(shared: CommandLine, tmp_path: Path) -> None:
    folder = script(
        tmp_path,
        """import os, time
if os.environ["JOB_COMPLETION_INDEX"] == "1":
    raise ValueError("the loss is nan")
time.sleep(60)
""",
    )
    told = said_by_all(shared, "raises", "train.py", "--nodes", "2", "--name", "raises", cwd=folder)
    assert (told["code"], told["rank"]) == ("Exception", 1)
    assert told["headline"] == "rank 1 failed: ValueError: the loss is nan (train.py:3)"
    assert [link["kind"] for link in told["chain"]] == ["TrainJob", "JobSet", "Job", "Pod", "Node"]


def test_i_see_which_file_is_missing(shared: CommandLine, tmp_path: Path) -> None:
    folder = script(tmp_path, "open('data.csv')\n")
    told = said_by_all(shared, "nofile", "train.py", "--name", "nofile", cwd=folder)
    assert (told["code"], told["rank"]) == ("FileMissing", 0)
    assert "No such file or directory: 'data.csv' (train.py:1)" in told["headline"]
    shared("delete", "nofile")
    assert told["headline"] in shared("why", "nofile"), "its record says it when the job is gone"


def test_i_see_that_a_kill_means_memory(shared: CommandLine, tmp_path: Path) -> None:
    folder = script(tmp_path, "import os\nprint('step 1', flush=True)\nos.kill(os.getpid(), 9)\n")
    told = said_by_all(shared, "killed", "train.py", "--name", "killed", cwd=folder)
    assert (told["code"], told["rank"]) == ("OutOfMemory", 0)
    assert "memory" in told["headline"]
    assert "--memory" in told["mend"]


def test_i_see_that_my_rank_used_more_memory_than_it_may(shared: CommandLine, tmp_path: Path) -> None:
    hungry = "import time\nheld = bytearray(400 << 20)\nheld[::4096] = bytes(len(held) // 4096)\ntime.sleep(60)\n"
    folder = script(tmp_path, hungry)
    told = said_by_all(shared, "hungry", "train.py", "--name", "hungry", "--memory", "200Mi", cwd=folder)
    assert (told["code"], told["rank"]) == ("OutOfMemory", 0)
    assert "200" in told["headline"], "with the limit"
    assert "--memory" in told["mend"]


def test_i_see_that_the_machine_is_too_small(shared: CommandLine, tmp_path: Path) -> None:
    folder = script(tmp_path, "pass\n")
    told = said_by_all(shared, "large", "train.py", "--name", "large", "--cpus", "999", cwd=folder)
    assert told["code"] == "TooLittleCpu"
    assert "requested: 999" in told["headline"]
    assert told["mend"].startswith("Ask for less (--cpus")


def test_i_see_that_it_hangs_and_where(shared: CommandLine, tmp_path: Path) -> None:
    folder = script(tmp_path, "import time\ndef load():\n    time.sleep(600)\nprint('step 1', flush=True)\nload()\n")
    begun = time.monotonic()
    following = shared.start("run", str(folder / "train.py"), "--name", "hangs", "--hang-after", "5")
    try:
        eventually("get says that it hangs", lambda: "rank 0 hangs at" in shared("get", code=None), SECONDS)
        told = why(shared, "hangs")
        assert (told["code"], told["rank"]) == ("Hang", 0)
        assert told["headline"] == "rank 0 hangs at train.py:3 in load: no output and no progress for 5 s"
        assert f"{told['headline']}. {told['mend']}" in shared("get", "hangs")
        assert time.monotonic() - begun < SECONDS
    finally:
        following.send_signal(signal.SIGTERM)
        output, _ = following.communicate(timeout=60)
    assert f"{told['headline']}. {told['mend']}" in output, "run says it while it hangs"


def test_i_see_why_the_node_refuses_my_pod(shared: CommandLine, tmp_path: Path) -> None:
    job = plain_job("refused", "pass")
    assert job.count("image: ") == 1
    (tmp_path / "job.yaml").write_text(job.replace("image: ", "tty: true\n                      image: "))
    told = said_by_all(shared, "refused", str(tmp_path / "job.yaml"))
    assert told["code"] == "PodRefused"
    assert "terminals are not supported by the local node yet" in told["headline"]
