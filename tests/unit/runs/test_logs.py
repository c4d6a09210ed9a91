"""The output of runs, read back from their directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.runs import Record, RunDirectory, RunsHome
from trainwright.runs.logs import LogWriter, log_files, merged, read
from trainwright.runs.pods import read_pod, write_pod
from trainwright.schema.jsonobject import Json


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunsHome(tmp_path).create(Record(id="a"))


def pod(name: str, uid: str, index: int = 0) -> Json:
    labels = {
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    return {"metadata": {"name": name, "uid": uid, "labels": labels}, "spec": {"containers": [{"name": "node"}]}}


def stamp(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}.000000000Z"


def write(run: RunDirectory, of: Json, restart: int, text: str, container: str = "node") -> Path:
    logs = run.logs_of(of["metadata"]["name"], of["metadata"]["uid"])
    path = logs / container / f"{restart}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_pod(logs, of)
    path.write_text(text)
    return path


def test_parts_become_lines_and_the_last_one_needs_no_end(run: RunDirectory) -> None:
    text = f"{stamp(1)} stdout F one\n{stamp(2)} stderr P tw\n{stamp(3)} stderr F o\n{stamp(4)} stdout P thr"
    write(run, pod("p", "u"), 0, text + "ee\n")
    [source] = log_files(run)
    lines = [(line.time, line.stream, line.text) for line in read(source)]
    assert lines == [(stamp(1), "stdout", "one"), (stamp(2), "stderr", "two"), (stamp(4), "stdout", "three")]


def test_files_that_were_rotated_are_read_oldest_first(run: RunDirectory) -> None:
    path = write(run, pod("p", "u"), 0, f"{stamp(12)} stdout F c\n")
    path.with_name("0.log.1").write_text(f"{stamp(11)} stdout F b\n")
    path.with_name("0.log.2").write_text(f"{stamp(10)} stdout F a\n")
    [source] = log_files(run)
    assert [line.text for line in read(source)] == ["a", "b", "c"]


def test_restarts_and_pods_that_took_the_place_of_others_are_attempts(run: RunDirectory) -> None:
    write(run, pod("n-0-abc", "u1"), 0, f"{stamp(1)} stdout F first\n")
    write(run, pod("n-0-abc", "u1"), 1, f"{stamp(2)} stdout F second\n")
    write(run, pod("n-0-xyz", "u2"), 0, f"{stamp(3)} stdout F third\n")
    write(run, pod("n-1-abc", "u3", index=1), 0, f"{stamp(1)} stdout F other\n")
    found = {line.text: source.attempt for source in log_files(run) for line in read(source)}
    assert found == {"first": 1, "second": 2, "third": 3, "other": 1}


def test_lines_of_many_pods_are_merged_by_time_and_keep_their_order(run: RunDirectory) -> None:
    write(run, pod("n-0", "u1"), 0, "".join(f"{stamp(2 * n)} stdout F a{n}\n" for n in range(5)))
    write(run, pod("n-1", "u2", 1), 0, "".join(f"{stamp(2 * n + 1)} stdout F b{n}\n" for n in range(5)))
    texts = [line.text for line in merged(log_files(run))]
    assert texts == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]


@pytest.mark.parametrize("garbage", ["", "no record\n", "\n\n", "x y\n"])
def test_what_is_no_record_is_left_out(run: RunDirectory, garbage: str) -> None:
    write(run, pod("p", "u"), 0, f"{garbage}{stamp(1)} stdout F good\n")
    assert [line.text for line in merged(log_files(run))][-1:] == ["good"]


def test_a_pod_without_a_file_has_a_name(run: RunDirectory) -> None:
    path = write(run, pod("n-0", "12345678-9"), 0, "")
    (path.parents[1] / "pod.json").write_text("[]")
    assert read_pod(path.parents[1])["metadata"]["name"] == "n-0"


def test_values_from_secrets_are_not_kept_with_a_pod(run: RunDirectory) -> None:
    of = pod("p", "u")
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    of["spec"]["containers"][0]["env"] = [{"name": "PET_NPROC_PER_NODE", "value": "2"}, secret]
    path = write(run, of, 0, "")
    [container] = read_pod(path.parents[1])["spec"]["containers"]
    assert container["env"] == [{"name": "PET_NPROC_PER_NODE", "value": "2"}]


def test_lines_seen_from_afar_are_read_back_like_those_of_a_node(run: RunDirectory) -> None:
    with LogWriter(run) as writer:
        writer.append(pod("p", "u"), "node", 0, stamp(1), "one")
        writer.append(pod("p", "u"), "node", 0, stamp(2), "two with spaces")
        writer.append(pod("q", "v", 1), "node", 0, stamp(3), "three")
        assert [line.text for line in merged(log_files(run))] == ["one", "two with spaces", "three"]


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden"])
def test_no_name_leads_out_of_the_logs(run: RunDirectory, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name"):
        run.logs_of(name, "u")
    with LogWriter(run) as writer, pytest.raises(ValueError, match="cannot name"):
        writer.append(pod("p", "u"), "../../x", 0, stamp(1), "one")
