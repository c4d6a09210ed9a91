"""Commands as one who knows kubectl types them: get, describe, events, wait, suspend, resume and delete of several."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from commandline import COMMAND, CommandLine, in_process
from pseudoterminal import on_terminal
from waiting import eventually

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: {name}
  labels: {{team: {team}}}
spec:
  runtimeRef: {{name: plain}}
  trainer:
    numNodes: {nodes}
    command: [python3, -u, -c, "{code}"]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """One cluster for this file: `done` is complete, `broken` has failed, `long` runs."""
    directory = tmp_path_factory.mktemp("manners")
    with in_process(directory / "state") as line:
        line("up", "--detach")
        for name, nodes, code in (
            ("done", 2, "print('hello')"),
            ("broken", 1, "raise SystemExit('no data')"),
            ("long", 2, "import time; time.sleep(600)"),
        ):
            start(line, directory / f"{name}.yaml", name, nodes=nodes, code=code)
        line("wait", "done", "--quiet")
        line("wait", "broken", "--for", "Failed", "--timeout", "1m")
        line("wait", "long", "--for", "Running", "--timeout", "1m")
        yield line


def start(line: CommandLine, file: Path, name: str, *, nodes: int = 1, code: str = "pass", team: str = "ours") -> None:
    file.write_text(JOB.format(name=name, nodes=nodes, code=code, team=team))
    line("run", "-f", str(file), "--detach")


def test_one_trainjob_is_shown_by_its_name_alone_or_with_its_kind(cluster: CommandLine) -> None:
    by_name = cluster("get", "done")
    assert "Complete" in by_name
    assert "long" not in by_name
    for words in (["tj", "done"], ["trainjob", "done"], ["trainjobs", "done"], ["tj/done"]):
        assert cluster("get", *words).split()[:10] == by_name.split()[:10]
    assert len(cluster("get", "done", "long").splitlines()) == 3


def test_objects_come_as_programs_want_them(cluster: CommandLine) -> None:
    listed = cluster.parsed("get", "-o", "json")
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert {item["kind"] for item in listed["items"]} == {"TrainJob"}
    one = yaml.safe_load(cluster("get", "done", "-o", "yaml"))
    assert one["kind"] == "TrainJob"
    assert "managedFields" not in one["metadata"]
    assert one == next(item for item in listed["items"] if item["metadata"]["name"] == "done")
    assert cluster("get", "done", "-o", "name") == "trainjob.trainer.kubeflow.org/done\n"
    assert cluster("get", "rt/plain", "-o", "name") == "clustertrainingruntime.trainer.kubeflow.org/plain\n"
    assert cluster.parsed("get", "pods", "-l", "a=b", "-o", "json")["items"] == []


def test_labels_and_namespaces_select(cluster: CommandLine) -> None:
    assert "long" in cluster("get", "-l", "team=ours")
    assert "no trainjobs" in cluster("get", "-l", "team=theirs")
    everywhere = cluster("get", "-A")
    assert everywhere.startswith("NAMESPACE")
    assert re.search(r"default +long +Running", everywhere)
    assert "no trainjobs in namespace elsewhere" in cluster("get", "-n", "elsewhere")
    wide = cluster("get", "pods", "-o", "wide")
    assert re.search(r"long-node-0-0-\w+ +long +node-0 +Running +0 +local +127\.", wide)


def test_a_typo_is_told_what_was_meant(cluster: CommandLine) -> None:
    assert 'no TrainJob named "lnog" in namespace default; did you mean long?' in cluster("get", "lnog", code=1)
    assert "did you mean trainjobs?" in cluster("get", "tranjobs", code=1)
    assert "did you mean plain?" in cluster("describe", "runtime", "plian", code=1)
    for command in ("logs", "suspend", "resume", "delete", "wait", "describe", "events"):
        assert "did you mean long?" in cluster(command, "lnog", code=1)
    assert "there is one in namespace default: -n default" in cluster("describe", "long", "-n", "other", code=1)


def test_every_change_of_a_watched_trainjob_is_a_line(cluster: CommandLine, tmp_path: Path) -> None:
    with cluster.start("get", "-w") as watch:
        assert watch.stdout is not None
        seen = [watch.stdout.readline() for _ in range(4)]
        assert seen[0].startswith("NAME")
        start(cluster, tmp_path / "watched.yaml", "watched")
        states = []
        for line in watch.stdout:
            assert line.startswith("watched "), "nothing else has changed"
            states.append(line.split()[1])
            if states[-1] == "Complete":
                break
        cluster("delete", "watched")
        assert watch.stdout.readline().split()[:2] == ["watched", "Deleted"]
        watch.terminate()
    assert states == sorted(states, key=["Pending", "Running", "Complete"].index)


def test_runtimes_say_whether_they_run_on_this_machine(cluster: CommandLine) -> None:
    rows = {line.split()[0]: line for line in cluster("get", "runtimes").splitlines()}
    assert rows["plain"].endswith("yes")
    assert re.search(r"no: .*(not supported|not installed|not on this machine)", rows["mlx-distributed"])
    assert "Runs here:  yes" in cluster("describe", "rt", "plain")


def test_describe_shows_pods_by_rank_children_and_events(cluster: CommandLine) -> None:
    page = cluster("describe", "broken")
    assert re.search(r"State: +Failed", page)
    assert re.search(r" 0 +node-0 +broken-node-0-0-\w+ +Failed .*exited with code 1", page)
    assert re.search(r"JobSet +broken", page)
    assert re.search(r"Warning +\w+ +job/broken-node-0", page)
    ranks = re.findall(r"^  (\d) +node-(\d) +long-", cluster("describe", "long"), re.MULTILINE)
    assert ranks == [("0", "0"), ("1", "1")]
    assert re.search(r"TrainJobs: .*default/long", cluster("describe", "runtime", "plain"))


def test_events_are_those_of_the_job_and_its_parts(cluster: CommandLine) -> None:
    told = cluster("events", "broken")
    assert "job/broken-node-0" in told
    assert "pod/broken-node-0-0" in told
    assert "long" not in told
    warnings = cluster.parsed("events", "--types", "warning", "-o", "json")["items"]
    assert {event["type"] for event in warnings} == {"Warning"}


def test_wait_waits_for_what_it_is_told(cluster: CommandLine) -> None:
    cluster("wait", "done", "--for", "condition=Complete")
    cluster("wait", "done", "--for", "jsonpath={.status.state}=Complete")
    cluster("wait", "broken", code=1)
    never = cluster("wait", "broken", "--for", "Complete", code=1)
    assert "will never be Complete" in never
    late = cluster("wait", "long", "done", "--timeout", "0.3", code=124)
    assert "TrainJob long has not ended after 0.3 s; it is Running" in late
    assert "TrainJob done" not in late
    assert "did you mean Running?" in cluster("wait", "long", "--for", "runing", code=2)


def test_several_are_suspended_resumed_and_deleted_at_once(cluster: CommandLine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        start(cluster, tmp_path / f"{name}.yaml", name, code="import time; time.sleep(600)", team="pair")
    cluster("wait", "one", "two", "--for", "Running", "--timeout", "1m")
    assert "TrainJob two is suspended" in cluster("suspend", "one", "two")
    cluster("wait", "one", "two", "--for", "Suspended", "--timeout", "10")
    cluster("resume", "-l", "team=pair", "--quiet")
    cluster("wait", "one", "two", "--for", "Running", "--timeout", "1m")
    assert cluster("delete", "-f", str(tmp_path / "one.yaml"), "two", "-q") == ""
    assert cluster("delete", "one", "--ignore-not-found") == ""
    cluster("wait", "one", "--for", "delete", "--timeout", "10")


def test_delete_all_asks_first(cluster: CommandLine, tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    job = JOB.format(name="extra\n  namespace: spare", nodes=1, code="pass", team="x")
    space.write_text(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: spare}}\n---\n{job}")
    cluster("run", str(space), "--detach")
    assert "give --yes" in cluster("delete", "--all", "-n", "spare", code=1)
    command = cluster.command("delete", "--all", "-n", "spare")
    with on_terminal(command) as asked:
        asked.wait_for("Delete 1 TrainJob of namespace spare: extra? [y/N]")
        asked.type("\n")
        assert asked.wait() == 1
        assert "Nothing is deleted." in asked.screen
    with on_terminal(command) as asked:
        asked.wait_for("[y/N]")
        asked.type("y\n")
        assert asked.wait() == 0
    eventually("it to be gone", lambda: "no trainjobs" in cluster("get", "-n", "spare"))


def test_diff_says_what_applying_a_file_would_change_in_the_cluster(cluster: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.format(name="long", nodes=2, code="import time; time.sleep(600)", team="ours"))
    assert cluster("diff", "-f", str(file)) == ""
    file.write_text(file.read_text().replace("{team: ours}", "{team: theirs}"))
    assert "+    team: theirs" in cluster("diff", "-f", str(file), code=1)
    file.write_text(file.read_text().replace("numNodes: 2", "numNodes: 3"))
    refused = cluster("diff", "-f", str(file), code=2)
    assert "+        parallelism: 3" in refused, "what would change, and that it cannot"
    assert "field is immutable" in refused
    file.write_text(file.read_text().replace("name: long", "name: new"))
    assert re.search(r"^\+kind: JobSet", cluster("diff", str(file), code=1), re.MULTILINE)


def test_what_init_writes_trains(cluster: CommandLine, tmp_path: Path) -> None:
    written = subprocess.run(
        [*COMMAND, "init", "plain", "-", "--with-runtime"], capture_output=True, text=True, check=True
    ).stdout
    output = cluster("run", "-", stdin=written)
    assert "[rank 1] node 1: step 3" in output
    assert "Complete" in output


def test_run_says_what_was_meant_in_a_file(cluster: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text(JOB.format(name="typo", nodes=1, code="pass", team="x").replace("numNodes", "numNode"))
    assert 'spec.trainer.numNode: did you mean "numNodes"?' in cluster("run", str(file), code=1)
    file.write_text(JOB.format(name="typo", nodes=1, code="pass", team="x").replace("name: plain", "name: plian"))
    refused = cluster("run", str(file), code=1)
    assert 'no ClusterTrainingRuntime named "plian"; did you mean plain?' in refused
    assert "torch-distributed" in refused, "and all there are"
