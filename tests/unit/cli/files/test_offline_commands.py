"""`render`, `validate` and `explain` as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import trainwright
from trainwright.cli.main import main
from trainwright.version import __version__

JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: demo}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: mine:1
"""
RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  notYetKnown: 7
                  containers:
                    - name: node
                      image: runtime:1
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command on documents, which become `in.yaml`."""
    monkeypatch.chdir(tmp_path)

    def command(name: str, *documents: str, flags: tuple[str, ...] = ()) -> Ran:
        Path("in.yaml").write_text("---".join(textwrap.dedent(text) for text in documents))
        code = main([name, *flags, "-f", "in.yaml"])
        return Ran(code, *capsys.readouterr())

    return command


def test_render_finds_the_runtimes_that_ship(run: Command) -> None:
    ran = run("render", JOB, flags=("-n", "team"))
    assert ran.code == 0
    (jobset,) = yaml.safe_load_all(ran.out)
    assert (jobset["kind"], jobset["metadata"]["name"], jobset["metadata"]["namespace"]) == ("JobSet", "demo", "team")
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2


def test_the_files_own_runtime_comes_before_the_shipped_one(run: Command) -> None:
    ran = run("render", RUNTIME, JOB.replace("    image: mine:1\n", ""))
    assert "image: runtime:1" in ran.out


def test_unknown_fields_of_a_template_survive_with_a_warning(run: Command) -> None:
    ran = run("render", RUNTIME, JOB)
    assert "notYetKnown: 7" in ran.out
    path = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.notYetKnown"
    assert f'warning: in.yaml:16: ClusterTrainingRuntime/torch-distributed: unknown field "{path}" is kept' in ran.err


def test_a_job_of_another_controller_renders_to_nothing(run: Command) -> None:
    ran = run("render", JOB + "  managedBy: kueue.x-k8s.io/multikueue\n")
    assert (ran.code, ran.out) == (0, "")
    assert "managed by kueue.x-k8s.io/multikueue: the operator leaves it alone and writes nothing" in ran.err


def test_render_prints_json(run: Command) -> None:
    assert json.loads(run("render", JOB, flags=("-o", "json")).out)["kind"] == "JobSet"
    many = run("render", JOB, JOB.replace("demo", "other"), flags=("-o", "json"))
    assert [item["metadata"]["name"] for item in json.loads(many.out)["items"]] == ["demo", "other"]


def test_secrets_are_shown_as_generated(run: Command) -> None:
    ran = run("render", JOB.replace("torch-distributed", "deepspeed-distributed"))
    secret = next(item for item in yaml.safe_load_all(ran.out) if item["kind"] == "Secret")
    assert secret["data"] == {"ssh-privatekey": "<generated>", "ssh-publickey": "<generated>"}


SHIPPED = sorted(path.stem for path in (Path(__file__).parents[4] / "manifests" / "runtimes").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_runtime_is_admitted_and_renders(run: Command, name: str) -> None:
    text = (Path(__file__).parents[4] / "manifests" / "runtimes" / f"{name}.yaml").read_text()
    ran = run("validate", text)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 validated, all admitted")
    assert "trainer.kubeflow.org/framework:" in text
    assert run("render", JOB.replace("torch-distributed", name)).code == 0


def test_a_refusal_is_one_message_and_exit_code_1(run: Command) -> None:
    ran = run("render", JOB.replace("numNodes: 2", "numNodes: -1"))
    assert (ran.code, ran.out) == (1, "")
    message = (
        "spec.trainer.numNodes: Invalid value: -1: spec.trainer.numNodes in body should be greater than or equal to 0"
    )
    refused = 'trainwright: in.yaml:2: TrainJob/demo is refused: TrainJob.trainer.kubeflow.org "demo" is invalid'
    assert ran.err == f"{refused}: {message}\n"


@pytest.mark.parametrize("command", ["render", "explain"])
def test_files_without_a_trainjob_are_told(run: Command, command: str) -> None:
    ran = run(command, RUNTIME)
    assert ran.code == 1
    assert f"in.yaml: no TrainJob to {command}" in ran.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("kind: TrainJob", "kind: TrainJobs"), "in.yaml:2: there is no TrainJobs in trainer.kubeflow.org/v1alpha1"),
        (("v1alpha1", "v9"), "in.yaml:2: there is no TrainJob in trainer.kubeflow.org/v9"),
        (("trainer.kubeflow.org/v1alpha1", "kubeflow.org/v1"), "TrainJob has apiVersion trainer.kubeflow.org/v1alpha1"),
        (("name: demo", "name: 5"), "in.yaml:4: metadata.name must be text: write 5 in quotes"),
        (("name: demo", "labels: {}"), "in.yaml:4: the TrainJob has no metadata.name"),
    ],
)
def test_what_no_server_could_read_is_told_with_its_line(run: Command, change: tuple[str, str], words: str) -> None:
    ran = run("validate", JOB.replace(*change))
    assert ran.code == 1
    assert words in ran.err


def test_one_name_twice_is_told(run: Command) -> None:
    assert "TrainJob/demo is given twice, first at in.yaml:2" in run("render", JOB, JOB).err


def test_validate_says_everything_at_once_with_places_and_hints(run: Command) -> None:
    job = JOB.replace("numNodes: 2", "numNodes: -1\n    numNode: 3\n    env: [{name: PET_NNODES, value: x}]")
    ran = run("validate", job)
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0] == "in.yaml: document 1, TrainJob/demo: refused"
    assert "  - in.yaml:9: spec.trainer.numNode: unknown field" in lines
    assert '    hint: did you mean "numNodes"?' in lines
    assert any(line.startswith("  - in.yaml:8: spec.trainer.numNodes: Invalid value: -1") for line in lines)
    reserved = "must not have reserved envs, invalid envs configured: [PET_NNODES]"
    assert (
        f'  - in.yaml:10: spec.trainer.env: Invalid value: [{{"name":"PET_NNODES","value":"x"}}]: {reserved}' in lines
    )
    assert lines[-1] == "1 validated, 1 refused"


def test_validate_suggests_the_runtime_that_was_meant(run: Command) -> None:
    ran = run("validate", JOB.replace("torch-distributed", "torch-distribted"))
    assert '    hint: did you mean "torch-distributed"?' in ran.out


def test_older_spellings_come_with_the_modern_one(run: Command) -> None:
    job = JOB + "    numProcPerNode: auto\n  labels: {a: b}\n  podTemplateOverrides: [{targetJobs: [{name: node}]}]\n"
    ran = run("validate", job)
    assert ran.code == 0, ran.out
    assert (
        "spec.podTemplateOverrides is an older spelling and still works; the modern one is spec.runtimePatches"
        in ran.out
    )
    assert "spec.labels is an older spelling" in ran.out
    assert "spec.trainer.numProcPerNode as a word is an older spelling" in ran.out


def test_a_patch_is_judged_as_an_update(run: Command, tmp_path: Path) -> None:
    update = tmp_path / "update.yaml"
    update.write_text("spec: {trainer: {numNodes: 3}}")
    ran = run("validate", JOB, flags=("--patch", str(update)))
    assert ran.code == 1
    assert 'TrainJob.trainer.kubeflow.org "demo" is invalid: spec.trainer: Invalid value: field is immutable' in ran.out
    update.write_text("spec: {suspend: true}")
    assert run("validate", JOB, flags=("--patch", str(update))).code == 0
    update.write_text("[]")
    ran = run("validate", JOB, flags=("--patch", str(update)))
    assert (ran.code, "a merge patch is one mapping" in ran.err) == (1, True)


PRIORITY = "\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1\n"


def test_what_a_rule_looks_up_comes_from_the_files(run: Command) -> None:
    volcano = RUNTIME.replace("mlPolicy:", "podGroupPolicy: {volcano: {}}\n  mlPolicy:")
    volcano = volcano.replace("notYetKnown: 7", "priorityClassName: high")
    ran = run("validate", volcano, JOB)
    assert ran.code == 1
    assert 'PriorityClass "high" doesn\'t exist: PriorityClass.scheduling.k8s.io "high" not found' in ran.out
    assert run("validate", volcano, JOB, PRIORITY).code == 0


def test_explain_names_the_layer_the_place_and_what_lost(run: Command) -> None:
    image = "spec.replicatedJobs[0].template.spec.template.spec.containers[0].image"
    (found,) = json.loads(run("explain", RUNTIME, JOB, flags=("-o", "json", image)).out)
    (field,) = found["fields"]
    assert (field["path"], field["value"]) == (image, "mine:1")
    origin = field["origin"]
    assert (origin["layer"], origin["field"], origin["file"]) == ("trainjob", "spec.trainer.image", "in.yaml")
    assert JOB.splitlines()[-1].strip() == "image: mine:1"
    (lost,) = field["lost"]
    assert (lost["value"], lost["origin"]["layer"], lost["origin"]["line"]) == ("runtime:1", "runtime", 19)


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("spec.suspend", "default of spec.suspend"),
        ("spec.replicatedJobs[name=node].replicas", "default of ClusterTrainingRuntime"),
        ("JobSet/demo.kind", "plugin JobSet (build)"),
        ("metadata.namespace", "default of metadata.namespace"),
    ],
)
def test_every_layer_has_its_words(run: Command, path: str, origin: str) -> None:
    assert f"← {origin}\n" in run("explain", RUNTIME, JOB, flags=(path,)).out


def test_a_patch_is_named_by_its_manager(run: Command) -> None:
    job = "{name: node, template: {spec: {template: {spec: {nodeSelector: {a: b}}}}}}"
    patch = f"""
  runtimePatches:
    - manager: kueue.x-k8s.io/manager
      trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{job}]}}}}}}
"""
    out = run("explain", RUNTIME, JOB + patch.lstrip("\n")).out
    assert "← patch by kueue.x-k8s.io/manager (in.yaml:" in out


def test_explain_of_a_path_that_is_not_there_says_what_is(run: Command) -> None:
    ran = run("explain", JOB, flags=("spec.nothing",))
    assert (ran.code, ran.err) == (1, "trainwright: no rendered field at spec.nothing; the objects are JobSet/demo\n")


def test_the_configuration_switches_plugins(run: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("plugins: {disabledPlugins: [Torch]}")
    assert "PET_NNODES" not in run("render", JOB, flags=("--config", str(config))).out
    config.write_text("plugins: {disabledPlugins: [Nope]}")
    ran = run("render", JOB, flags=("--config", str(config)))
    assert (ran.code, "plugin Nope: there is no such plugin" in ran.err) == (1, True)
    config.write_text("nonsense: true")
    assert run("render", JOB, flags=("--config", str(config))).code == 2


OLDER_RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template: {spec: {template: {spec: {containers: [{name: node, image: i, resources: {limits: {cpu: 3}}}]}}}}
"""
POD = "nodeSelector: {z: '1'}, volumes: [{name: v, emptyDir: {}}], tolerations: [{key: t}]"
SPELLINGS = {
    "v2.0": f"""
  labels: {{team: a}}
  trainer: {{numNodes: 2, numProcPerNode: "auto"}}
  podSpecOverrides: [{{targetJobs: [{{name: node}}], {POD}}}]
""",
    "v2.1": f"""
  labels: {{team: a}}
  trainer: {{numNodes: 2, numProcPerNode: auto}}
  podTemplateOverrides: [{{targetJobs: [{{name: node}}], spec: {{{POD}}}}}]
""",
    "v2.3": f"""
  trainer: {{numNodes: 2}}
  runtimePatches:
    - manager: a.io/x
      trainingRuntimeSpec:
        template:
          metadata: {{labels: {{team: a}}}}
          spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {{spec: {{{POD}}}}}}}}}}}]}}
""",
}


def test_three_generations_of_one_file_render_to_the_same_bytes(run: Command) -> None:
    head = JOB.split("  trainer:")[0].rstrip()
    rendered = {version: run("render", OLDER_RUNTIME, head + text) for version, text in SPELLINGS.items()}
    assert [ran.code for ran in rendered.values()] == [0, 0, 0]
    assert rendered["v2.0"].out == rendered["v2.1"].out == rendered["v2.3"].out
    assert "name: PET_NPROC_PER_NODE\n                value: '3'\n" in rendered["v2.3"].out


def test_rendering_loads_no_http_crypto_or_terminal_library(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    heavy = (
        "'aiohttp', 'asyncio', 'cryptography', 'email', 'http', 'importlib.metadata', 'rich', 'ssl', 'typer', 'uvloop'"
    )
    code = f"""
import sys
from trainwright.cli.main import main
assert main(["render", "-f", {str(file)!r}]) == 0
print(sorted({{{heavy}}} & sys.modules.keys()), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"


def test_the_version_is_told_without_importing_a_command() -> None:
    code = (
        "import sys; sys.argv = ['trainwright', '--version']\n"
        "from trainwright.cli.entry import main\n"
        "code = main(); print(code, 'argparse' in sys.modules, 'trainwright.cli.main' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(trainwright.__file__).parents[1])},
    )
    assert answer.stdout.splitlines() == [f"trainwright {__version__}", "0 False False"]
