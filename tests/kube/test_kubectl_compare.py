"""kubectl cannot tell our API server from the real one: the same commands, the same exit codes, the same output."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from commandline import command_line
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kubectl import transcript
from kubectl.kubectl import Kubectl, Result
from kubectl.steps import STEPS, Step
from trainwright.testing.controlplane import CLEANERS, RealControlPlane

pytestmark = pytest.mark.timeout(900)  # the first test plays all steps on both servers

Pair = tuple[transcript.Transcript, transcript.Transcript]


@pytest.fixture(scope="module")
def said(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The transcripts of our server and of the real one, which serve the same CRDs and only run their cleaners."""
    directory = tmp_path_factory.mktemp("compare")
    program = programs.program("kubectl")
    real = RealControlPlane(
        programs,
        directory / "plane",
        with_parts=("kube-controller-manager",),
        controllers=CLEANERS,
        without_admission=("ServiceAccount",),
        feature_gates=("GenericWorkload", "GangScheduling"),  # PodGroups, which our server has
        served=("scheduling.k8s.io/v1alpha2",),
    )
    with real, command_line(directory / "state") as line, ThreadPoolExecutor(2) as both:
        install_crds(real)
        line("up", "--detach", "--api-only")
        ours = both.submit(transcript.run, Kubectl(program, line.kubeconfig, directory / "ours"), STEPS)
        theirs = both.submit(transcript.run, Kubectl(program, real.admin_kubeconfig, directory / "real"), STEPS)
        return ours.result(), theirs.result()


def without_metrics(result: Result) -> Result:
    """What our server says without metrics.k8s.io, which it serves itself: a cluster has it from metrics-server."""
    lines = result.out.splitlines(keepends=True)
    return replace(result, out="".join(line for line in lines if "metrics.k8s.io" not in line))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.id)
def test_the_real_server_agrees_with_what_the_step_expects(said: Pair, step: Step) -> None:
    problem = transcript.wrong(step, said[1][step.id])
    assert not problem, problem


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.id)
def test_both_servers_say_the_same(said: Pair, step: Step) -> None:
    found = transcript.difference(step, without_metrics(said[0][step.id]), said[1][step.id])
    assert not found, f"$ kubectl {' '.join(step.argv)}\n{found}"
