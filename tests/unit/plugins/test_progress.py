"""The progress plugin: what pods get to report their progress."""

from __future__ import annotations

import pytest

from trainwright.pipeline import Observed, PipelineError
from unit.pipeline.objects import container, env, job_of_runtime, objects, plan, pods, runtime, trainjob

SERVER = "https://server:10443"
STATUS = "trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/tj/status"


def test_every_container_of_the_trainer_can_report() -> None:
    of = runtime(job_of_runtime(containers=[{"name": "node", "image": "i"}, {"name": "side", "image": "i"}]))
    made = objects(plan(trainjob(), of, Observed(ca_certificate="PEM"), progress_server=SERVER))
    for name in ("node", "side"):
        assert env(made["JobSet/tj"], name=name) == {
            "KUBEFLOW_TRAINER_SERVER_URL": f"{SERVER}/apis/{STATUS}",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/var/run/secrets/kubeflow/trainer/ca.crt",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": "/var/run/secrets/kubeflow/trainer/token",
        }
        assert container(made["JobSet/tj"], name=name)["volumeMounts"][0]["readOnly"] is True
    sources = pods(made["JobSet/tj"])["volumes"][0]["projected"]["sources"]
    assert sources[0]["serviceAccountToken"] == {"audience": STATUS, "expirationSeconds": 3600, "path": "token"}
    assert made["ConfigMap/tj-tls-config"]["data"] == {"ca.crt": "PEM"}


def test_without_an_authority_to_trust_nothing_is_built() -> None:
    with pytest.raises(PipelineError, match=r"ca\.crt"):
        plan(trainjob(), runtime(), progress_server=SERVER)


def test_only_the_trainer_reports() -> None:
    of = runtime(job_of_runtime(), job_of_runtime("aux", ""))
    made = objects(plan(trainjob(), of, Observed(ca_certificate="PEM"), progress_server=SERVER))
    assert "env" not in container(made["JobSet/tj"], "aux")
