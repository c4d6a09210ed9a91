"""The real control plane, on which every other test here relies, is what it claims to be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.rest import Refused, Rest


def jobset(name: str, outcome: str) -> Json:
    pod = {
        "metadata": {"annotations": {nodes.OUTCOME_ANNOTATION: outcome}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "none"}]},
    }
    job = {"spec": {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": pod}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": job}]},
    }


def jobsets(namespace: str) -> str:
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"


def condition(kind: str) -> Callable[[Json | None], bool]:
    def holds(found: Json | None) -> bool:
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any(c["type"] == kind and c["status"] == "True" for c in conditions)

    return holds


def test_it_calls_itself_the_pinned_version(plane: RealControlPlane) -> None:
    assert plane.admin.get("/version")["gitVersion"] == "v1.36.4"


def test_a_jobset_completes(plane: RealControlPlane, namespace: str) -> None:
    plane.admin.create(jobsets(namespace), jobset("good", "complete"))
    plane.admin.until(f"{jobsets(namespace)}/good", condition("Completed"), what="Completed")


def test_a_jobset_fails_when_its_pods_are_told_to(plane: RealControlPlane, namespace: str) -> None:
    plane.admin.create(jobsets(namespace), jobset("bad", "fail"))
    plane.admin.until(f"{jobsets(namespace)}/bad", condition("Failed"), what="Failed")


def test_a_pod_that_hangs_runs_until_it_is_deleted_and_shows_its_log(plane: RealControlPlane, namespace: str) -> None:
    plane.admin.create(jobsets(namespace), jobset("long", "hang"))
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def all_running(found: Json | None) -> bool:
        items = (found or {}).get("items", [])
        return len(items) == 2 and all(pod["status"].get("phase") == "Running" for pod in items)

    listed = plane.admin.until(pods, all_running, what="two pods Running")
    assert listed is not None
    name = listed["items"][0]["metadata"]["name"]
    code, text = plane.admin.raw("GET", f"{pods}/{name}/log")
    assert (code, text.decode().splitlines()) == (200, list(nodes.LOG_LINES))
    plane.admin.delete(f"{jobsets(namespace)}/long", propagationPolicy="Foreground")
    plane.admin.until(pods, lambda found: found is not None and not found["items"], what="no pod left")


def test_jobsets_own_webhook_refuses_what_its_schema_lets_pass(plane: RealControlPlane, namespace: str) -> None:
    wrong = jobset("wrong", "complete")
    wrong["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    with pytest.raises(Refused, match="invalid replicatedJob name 'nobody'"):
        plane.admin.create(jobsets(namespace), wrong)


def test_a_service_account_may_do_what_its_roles_grant_and_no_more(plane: RealControlPlane, namespace: str) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    plane.admin.create(f"{rbac}/roles", {"metadata": {"name": "lister"}, "rules": [rule]})
    plane.admin.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "lister"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lister"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        },
    )
    kubeconfig = plane.service_account_kubeconfig(namespace, "default")
    bound = Rest.from_kubeconfig(kubeconfig, plane.directory / "scratch")
    assert [item["metadata"]["name"] for item in bound.items(f"/api/v1/namespaces/{namespace}/configmaps")] == [
        "kube-root-ca.crt"
    ]
    with pytest.raises(Refused, match="cannot list resource"):
        bound.items(f"/api/v1/namespaces/{namespace}/secrets")


def test_the_audit_log_shows_who_was_refused(plane: RealControlPlane, namespace: str) -> None:
    kubeconfig = plane.service_account_kubeconfig(namespace, "default")
    nobody = Rest.from_kubeconfig(kubeconfig, plane.directory / "scratch")
    with pytest.raises(Refused):
        nobody.items(f"/api/v1/namespaces/{namespace}/pods")
    user = f"system:serviceaccount:{namespace}:default"
    refused = [event for event in plane.audit_events() if event["user"]["username"] == user]
    assert [(event["verb"], event["responseStatus"]["code"]) for event in refused] == [("list", 403)]


def test_etcd_can_be_taken_away_and_given_back(plane: RealControlPlane, namespace: str) -> None:
    configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
    plane.admin.create(configmaps, {"metadata": {"name": "before"}})
    plane.parts["etcd"].stop(grace=0)
    assert plane.admin.raw("GET", "/readyz")[0] == 500
    plane.parts["etcd"].start()
    plane.parts["kube-apiserver"].wait_until(plane.is_ready, 30)
    assert plane.admin.get(f"{configmaps}/before")["metadata"]["name"] == "before"
