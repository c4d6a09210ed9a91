"""What a platform team sees of a running operator: metrics, dashboard, alerts, log, stacks. It is a process of its own,
with the shipped roles and the component `metrics-auth`, and is asked over HTTPS as Prometheus asks.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import dashboard
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, NAMESPACE, Installation
from kube.stories import TORCH, base, create, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.processes import Process, free_port
from waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OF_PROMETHEUS = {"le", "pod", "job", "instance"}
"""Labels that are not the operator's to give."""


class Observed(msgspec.Struct):
    plane: RealControlPlane
    process: Process
    log: Path
    port: int
    ca: str

    def ask(self, path: str, account: str = "scraper") -> tuple[int, str]:
        token = self.plane.token(NAMESPACE, account)
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}")
        request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, context=ssl.create_default_context(cadata=self.ca)) as answer:  # noqa: S310 - https
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    directory, port = tmp_path_factory.mktemp("operator"), free_port()
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane")) as plane:
        install_crds(plane)
        plane.admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for item in documents((MANIFESTS / "components/metrics-auth/cluster_role.yaml").read_text()):
            plane.admin.create(f"{RBAC}/{item['kind'].lower()}s", item)
        for account, paths in (("scraper", ["/metrics"]), ("platform", ["/debug/stacks", "/debug/profile"])):
            allow(plane, account, paths)
        installation = Installation(plane, overlay="manager")
        installation.install()
        text = installation.configuration().replace('"127.0.0.1:0"', f'"127.0.0.1:{port}", auth: {{enabled: true}}', 1)
        config = directory / "config.yaml"
        config.write_text(f"{text}logging: {{format: json, level: info}}\n")
        script = Path(__file__).parents[1] / "kube" / "operatorprocess.py"
        log = directory / "operator.log"
        process = Process("operator", [sys.executable, script, config, installation.kubeconfig], log)
        process.start()
        try:
            secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert"
            found = plane.admin.until(secret, lambda it: bool(it and it.get("data")), what="certificate", seconds=60)
            assert found is not None
            ca = base64.b64decode(found["data"]["ca.crt"]).decode()
            running = Observed(plane, process, log, port, ca)
            process.wait_until(lambda: running.ask("/metrics")[0] == 200, 60)
            yield running
        finally:
            process.stop(grace=10)
            installation.uninstall()


def allow(plane: RealControlPlane, account: str, paths: list[str]) -> None:
    plane.admin.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": account}})
    rule = {"nonResourceURLs": paths, "verbs": ["get"]}
    plane.admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": account}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    plane.admin.create(f"{RBAC}/clusterrolebindings", binding)


@pytest.fixture(scope="module")
def lived(observed: Observed) -> str:
    """A namespace in which one of everything has happened: a queue, a start, GPUs, a restart, a failure, an end."""
    plane = observed.plane
    here = plane.namespace()
    body = runtime("it", TORCH)
    body["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
    (node,) = body["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
    create(plane.admin, here, body, trainjob("long", "it", "hang", suspend=True), trainjob("bad", "it", "fail"))
    create(plane.admin, here, trainjob("good", "it", "complete"))
    until_state(plane.admin, here, "Suspended", "long")
    plane.admin.patch(f"{base(here)}/trainjobs/long", {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running", "long")
    until_state(plane.admin, here, "Failed", "bad")
    until_state(plane.admin, here, "Complete", "good")
    eventually("the end is counted", lambda: 'result="Complete"' in observed.ask("/metrics")[1], 30)
    return here


def series(observed: Observed) -> dict[str, set[str]]:
    """Every series of a scrape, and the names of its labels."""
    found: dict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(observed.ask("/metrics")[1]):
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    return found


def expressions() -> Iterator[str]:
    for panel in dashboard.dashboard()["panels"]:
        for target in panel.get("targets") or ():
            yield target["expr"]


def alerts() -> Iterator[str]:
    text = (MANIFESTS / "components/prometheus-rule/prometheus_rule.yaml").read_text()
    for group in yaml.safe_load(text)["spec"]["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def named_in(expression: str) -> set[str]:
    words = re.sub(r'"[^"]*"|\$__\w+|by \([^)]*\)|\{[^}]*\}', "", expression)
    return {word for word in re.findall(r"[a-z]\w*_\w+", words) if word != "histogram_quantile"}


def labels_in(expression: str) -> set[str]:
    grouped = {name.strip() for part in re.findall(r"by \(([^)]*)\)", expression) for name in part.split(",")}
    chosen = {name for part in re.findall(r"\{([^}]*)\}", expression) for name in re.findall(r"(\w+)\s*[=!]", part)}
    return (grouped | chosen) - OF_PROMETHEUS


def test_the_dashboard_names_only_series_and_labels_that_a_scrape_has(observed: Observed, lived: str) -> None:
    found = series(observed)
    asked = {name for expression in expressions() for name in named_in(expression)}
    assert len(asked) > 15
    assert sorted(asked - set(found)) == []
    for expression in expressions():
        have = set().union(*(found[name] for name in named_in(expression)))
        assert labels_in(expression) <= have, expression


def test_the_alerts_name_only_series_and_labels_that_a_scrape_has(observed: Observed, lived: str) -> None:
    found = series(observed)
    for expression in alerts():
        names = named_in(expression) - {"trainwright_plugins_broken"}  # there is none while no file is broken
        assert names <= set(found), expression
        if names:
            assert labels_in(expression) <= set().union(*(found[name] for name in names)), expression


def test_the_life_of_each_job_is_in_the_figures(observed: Observed, lived: str) -> None:
    samples: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(observed.ask("/metrics")[1]):
        for sample in family.samples:
            if sample.labels.get("namespace") == lived and "le" not in sample.labels:
                key = sample.labels.get("result") or sample.labels.get("resource") or ""
                samples[f"{sample.name.removeprefix('trainwright_')} {key}".strip()] += sample.value
    assert samples["trainjobs_created_total"] == 3
    assert samples["trainjobs_finished_total Complete"] == samples["trainjobs_finished_total Failed"] == 1
    assert samples["trainjob_restarts_total"] == 1
    assert samples["trainjob_queue_seconds_count"] == 1
    assert samples["trainjob_time_to_workload_seconds_count"] == 3
    assert samples["trainjob_duration_seconds_count Complete"] == 1
    assert samples["gpus nvidia.com/gpu"] == 4, "two nodes with two each"
    assert samples["gpu_seconds_total nvidia.com/gpu"] > 0


def test_every_line_of_the_log_is_json_with_its_level(observed: Observed, lived: str) -> None:
    lines = observed.lines
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert "info" in {line["level"] for line in lines}


def test_stacks_and_profiles_are_for_those_who_may(observed: Observed) -> None:
    assert observed.ask("/debug/stacks", "scraper")[0] == 403
    code, told = observed.ask("/debug/stacks", "platform")
    assert code == 200
    assert "task trainjob_controller-0" in told
    code, told = observed.ask("/debug/profile?seconds=1", "platform")
    assert code == 200
    assert re.fullmatch(r".+ \d+", told.splitlines()[0])


def test_sigusr1_writes_the_stacks_into_the_log_and_the_operator_goes_on(observed: Observed) -> None:
    os.kill(observed.process.pid, signal.SIGUSR1)
    eventually("stacks in the log", lambda: "task trainjob_controller-0" in observed.log.read_text(), 10)
    assert observed.process.is_alive()
    assert observed.ask("/metrics")[0] == 200
