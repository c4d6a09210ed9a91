"""Who may only make TrainJobs and runtimes in one namespace reaches no other through the operator (X3).

A tenant of namespace `mine` tries, in forty ways and more, to reach namespace `theirs` or the operator's own. Each way
is refused, or what comes of it stays in `mine`. At the end nothing of the other namespaces has changed, the operator
has written nothing there, and no byte of their secrets is in `mine`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.installation import NAMESPACE as HOME
from kube.installation import Installation
from kube.stories import MPI, TORCH, base, runtime, trainjob, until_state
from kube.test_operator_lifecycle import with_launcher
from kube.test_operator_progress import Reporter, report
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.rest import Rest
from waiting import eventually

CANARY = "canary-of-another-tenant"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "trainer.kubeflow.org"
KINDS = (
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/secrets",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/pods",
    "/apis/apps/v1/namespaces/{}/controllerrevisions",
    "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs",
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainingruntimes",
)


@dataclass
class Scene:
    """`tenant` speaks as the attacker; `victim` is a TrainJob of the other namespace, as it is stored."""

    plane: RealControlPlane
    installed: Installation
    mine: str
    theirs: str
    tenant: Rest
    victim: Json
    count: int = field(default=0)

    def name(self) -> str:
        self.count += 1
        return f"try-{self.count}"

    def job(self, **spec: Any) -> tuple[str, str, Json]:
        """A TrainJob of the attacker's."""
        body = trainjob(self.name(), "it", suspend=True)
        for member, value in spec.items():
            body["spec"][member] = value
        return "POST", f"{base(self.mine)}/trainjobs", body

    def job_with(self, **metadata: Any) -> tuple[str, str, Json]:
        method, path, body = self.job()
        body["metadata"] |= metadata
        return method, path, body

    def job_of(self, **reference: Any) -> tuple[str, str, Json]:
        return self.job(runtimeRef={"name": "it", "kind": "TrainingRuntime", **reference})

    def patched(self, template: Json) -> tuple[str, str, Json]:
        """A TrainJob that patches its runtime's template."""
        patch = {"manager": "example.com/me", "trainingRuntimeSpec": {"template": template}}
        return self.job(runtimePatches=[patch])

    def patched_pod(self, pod: Json, metadata: Json | None = None) -> tuple[str, str, Json]:
        inner = {"template": {"metadata": metadata or {}, "spec": pod}}
        return self.patched({"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": inner}}]}})

    def of_own_runtime(self, change: Callable[[Json], None]) -> Iterator[tuple[str, str, Any]]:
        """A runtime of the attacker's with a change in its template, and a job of it."""
        made = runtime(self.name(), TORCH)
        change(made["spec"]["template"])
        yield "POST", f"{base(self.mine)}/trainingruntimes", made
        yield self.job_of(name=made["metadata"]["name"])


Way = Callable[[Scene], Any]


def their(scene: Scene, more: str = "") -> str:
    return f"{base(scene.theirs)}/trainjobs{more}"


def owner(scene: Scene, **more: Any) -> list[Json]:
    uid = scene.victim["metadata"]["uid"]
    return [{"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrainJob", "name": "victim", "uid": uid, **more}]


def node(template: Json) -> Json:
    found: Json = template["spec"]["replicatedJobs"][0]
    return found


def into(scene: Scene, place: Callable[[Json], Json], **values: Any) -> Iterator[tuple[str, str, Any]]:
    return scene.of_own_runtime(lambda template: place(template).update(values))


WAYS: dict[str, Way] = {
    # Plainly
    "create there": lambda s: ("POST", their(s), trainjob("x", "secret-runtime")),
    "read there": lambda s: ("GET", their(s, "/victim"), None),
    "list there": lambda s: ("GET", their(s), None),
    "list everywhere": lambda s: ("GET", f"/apis/{GROUP}/v1alpha1/trainjobs", None),
    "watch everywhere": lambda s: ("GET", f"/apis/{GROUP}/v1alpha1/trainjobs?watch=1&timeoutSeconds=1", None),
    "change there": lambda s: ("PUT", their(s, "/victim"), {**s.victim, "spec": {"suspend": False}}),
    "delete there": lambda s: ("DELETE", their(s, "/victim"), None),
    "write a status there": lambda s: ("PUT", their(s, "/victim/status"), s.victim),
    "make a cluster's runtime": lambda s: (
        "POST",
        f"/apis/{GROUP}/v1alpha1/clustertrainingruntimes",
        {**runtime("x", TORCH), "kind": "ClusterTrainingRuntime"},
    ),
    "read the operator's certificate": lambda s: (
        "GET",
        f"/api/v1/namespaces/{HOME}/secrets/kubeflow-trainer-webhook-cert",
        None,
    ),
    "another namespace in the body": lambda s: s.job_with(namespace=s.theirs),
    "dots in the path": lambda s: ("GET", f"{base(s.mine)}/trainjobs/../../../namespaces/{s.theirs}/trainjobs", None),
    "encoded dots in the path": lambda s: ("GET", f"{base(s.mine)}/trainjobs/%2e%2e%2f{s.theirs}", None),
    # By the runtime's name
    "their runtime": lambda s: s.job_of(name="secret-runtime"),
    "their runtime, with its namespace": lambda s: s.job_of(name=f"{s.theirs}/secret-runtime"),
    "their runtime, with dots": lambda s: s.job_of(name=f"../{s.theirs}/secret-runtime"),
    "their runtime, encoded": lambda s: s.job_of(name=f"..%2F..%2F{s.theirs}%2Ftrainingruntimes%2Fsecret-runtime"),
    "a namespace in the reference": lambda s: s.job_of(name="secret-runtime", namespace=s.theirs),
    "their runtime as a cluster's": lambda s: s.job_of(name="secret-runtime", kind="ClusterTrainingRuntime"),
    "a Secret as a runtime": lambda s: s.job_of(name="canary", kind="Secret", apiGroup=""),
    "a runtime of another group": lambda s: s.job_of(apiGroup="example.com"),
    "their revision by annotation": lambda s: s.job_with(
        annotations={"trainer.kubeflow.org/runtime-revision": s.victim["status"]["runtimeRevision"]}
    ),
    # By metadata
    "owned by their job": lambda s: s.job_with(ownerReferences=owner(s)),
    "controlled by their job": lambda s: s.job_with(ownerReferences=owner(s, controller=True, blockOwnerDeletion=True)),
    "labelled as their job's": lambda s: s.job_with(
        labels={"jobset.sigs.k8s.io/jobset-name": "victim", f"{GROUP}/trainjob-ancestor-step": "trainer"}
    ),
    "their job's uid": lambda s: s.job_with(uid=s.victim["metadata"]["uid"]),
    "the name of the operator's Secret": lambda s: s.job_with(name="kubeflow-trainer-webhook-cert"),
    "the name of their job": lambda s: s.job_with(name="victim"),
    # By what is patched into the template
    "a namespace of the JobSet": lambda s: s.patched({"metadata": {"namespace": s.theirs, "name": "x"}}),
    "a namespace of the pods": lambda s: s.patched_pod({}, {"namespace": s.theirs}),
    "their account": lambda s: s.patched_pod({"serviceAccountName": f"system:serviceaccount:{s.theirs}:default"}),
    "their account, with dots": lambda s: s.patched_pod({"serviceAccountName": f"../{s.theirs}/default"}),
    "their Secret as a volume": lambda s: s.patched_pod(
        {"volumes": [{"name": "v", "secret": {"secretName": f"{s.theirs}/canary"}}]}
    ),
    "their ConfigMap as a volume": lambda s: s.patched_pod(
        {"volumes": [{"name": "v", "configMap": {"name": f"../{s.theirs}/canary"}}]}
    ),
    "their claim as a volume": lambda s: s.patched_pod(
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"{s.theirs}/claim"}}]}
    ),
    "their pull secret": lambda s: s.patched_pod({"imagePullSecrets": [{"name": f"../{s.theirs}/canary"}]}),
    "overrides of their jobs": lambda s: s.job(
        podTemplateOverrides=[{"targetJobs": [{"name": f"../{s.theirs}/node"}], "spec": {"nodeSelector": {"a": "b"}}}]
    ),
    # By a runtime of one's own
    "a JobSet's namespace": lambda s: into(s, lambda t: t.setdefault("metadata", {}), namespace=s.theirs),
    "a Job's namespace": lambda s: into(s, lambda t: node(t)["template"]["metadata"], namespace=s.theirs),
    "a pod's namespace": lambda s: into(
        s, lambda t: node(t)["template"]["spec"]["template"].setdefault("metadata", {}), namespace=s.theirs
    ),
    "a name in their domain": lambda s: into(s, lambda t: t["spec"], network={"subdomain": f"svc.{s.theirs}"}),
    "a coordinator there": lambda s: into(
        s, lambda t: t["spec"], coordinator={"replicatedJob": f"{s.theirs}/node", "jobIndex": 0, "podIndex": 0}
    ),
    "somebody else's JobSet": lambda s: into(s, lambda t: t["spec"], managedBy="example.com/other"),
    # By variables and initializers
    "their Secret as a variable": lambda s: s.job(
        trainer={
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": f"{s.theirs}/canary", "key": "key"}}}],
            "numNodes": 1,
        }
    ),
    "their Secret for the dataset": lambda s: s.job(
        initializer={"dataset": {"storageUri": "s3://a/b", "secretRef": {"name": f"{s.theirs}/canary"}}}
    ),
    "a namespace beside that": lambda s: s.job(
        initializer={"model": {"storageUri": "hf://a", "secretRef": {"name": "canary", "namespace": s.theirs}}}
    ),
    "a file of the operator": lambda s: s.job(initializer={"dataset": {"storageUri": "file:///var/run/secrets"}}),
}


@pytest.fixture(scope="module")
def scene(plane: RealControlPlane) -> Iterator[Scene]:
    with Installation(plane) as installed:
        mine, theirs = plane.namespace("mine"), plane.namespace("theirs")
        secret = {"metadata": {"name": "canary"}, "stringData": {"key": CANARY}}
        plane.admin.create(f"/api/v1/namespaces/{theirs}/secrets", secret)
        config = {"metadata": {"name": "canary"}, "data": {"key": CANARY}}
        plane.admin.create(f"/api/v1/namespaces/{theirs}/configmaps", config)
        secret_runtime = runtime("secret-runtime", TORCH)
        [it] = secret_runtime["spec"]["template"]["spec"]["replicatedJobs"]
        it["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "KEY", "value": CANARY}]
        plane.admin.create(f"{base(theirs)}/trainingruntimes", secret_runtime)
        plane.admin.create(f"{base(theirs)}/trainjobs", trainjob("victim", "secret-runtime", suspend=True))
        until_state(plane.admin, theirs, "Suspended", "victim")
        victim = plane.admin.get(f"{base(theirs)}/trainjobs/victim")
        for own in (runtime("it", TORCH), with_launcher(runtime("mpi", MPI))):
            plane.admin.create(f"{base(mine)}/trainingruntimes", own)
        tenant = Rest.from_kubeconfig(_tenant(plane, mine), plane.directory / "tenant")
        yield Scene(plane, installed, mine, theirs, tenant, victim)
        for namespace in (mine, theirs):  # jobs that cannot be built would be tried again under the next operator
            plane.admin.delete(f"/api/v1/namespaces/{namespace}")
        for namespace in (mine, theirs):
            plane.admin.until(f"/api/v1/namespaces/{namespace}", lambda found: found is None, what="namespace gone")


def _tenant(plane: RealControlPlane, namespace: str) -> Any:
    """The kubeconfig of an account that may do everything with TrainJobs and runtimes, in one namespace."""
    account = {"metadata": {"name": "tenant"}}
    plane.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    rules = [{"apiGroups": [GROUP], "resources": ["trainjobs", "trainingruntimes"], "verbs": ["*"]}]
    plane.admin.create(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": "tenant"}, "rules": rules})
    binding = {
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
    }
    plane.admin.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    return plane.service_account_kubeconfig(namespace, "tenant")


def things(scene: Scene, namespace: str) -> dict[str, str]:
    """What is in a namespace, by version."""
    return {
        f"{path}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for path in KINDS
        for item in scene.plane.admin.items(path.format(namespace))
    }


def at_rest(scene: Scene) -> dict[str, dict[str, str]]:
    """What is in the other namespaces, once it has not changed for three seconds."""
    seen: list[dict[str, dict[str, str]]] = []

    def is_still() -> bool:
        seen.append({space: things(scene, space) for space in (scene.theirs, HOME)})
        time.sleep(1)
        return len(seen) > 3 and seen[-1] == seen[-4]

    eventually("what there is comes to rest", is_still, 60)
    return seen[-1]


def test_nobody_reaches_another_namespace_through_a_trainjob(scene: Scene) -> None:
    assert len(WAYS) >= 40
    before = at_rest(scene)
    begin = scene.plane.audit_position()
    answers: dict[str, list[int]] = {}
    for name, way in WAYS.items():
        asked = way(scene)
        for method, path, body in [asked] if isinstance(asked, tuple) else asked:
            code, text = scene.tenant.raw(method, path, body)
            answers.setdefault(name, []).append(code)
            assert code < 500, (name, code, text[:300])
            assert CANARY.encode() not in text, (name, text)
    plainly = list(WAYS)[: list(WAYS).index("their runtime")]
    assert {name: codes for name, codes in answers.items() if name in plainly and min(codes) < 400} == {}
    by_name = [name for name in WAYS if "runtime" in name and name.startswith(("their", "a Secret", "a runtime of"))]
    assert {name: answers[name] for name in by_name if min(answers[name]) < 400} == {}
    last = trainjob("last", "it", suspend=True)
    assert scene.tenant.raw("POST", f"{base(scene.mine)}/trainjobs", last)[0] == 201
    until_state(scene.plane.admin, scene.mine, "Suspended", "last")
    assert {space: things(scene, space) for space in (scene.theirs, HOME)} == before
    written = [
        str(request)
        for request in requests(scene.plane.audit_events(begin), agent="trainwright")
        if request.is_write and request.namespace not in (scene.mine, "") and request.resource != "leases"
    ]
    assert [text for text in written if scene.theirs in text or HOME in text] == []
    for path in KINDS:
        listed = scene.plane.admin.items(path.format(scene.mine))
        assert CANARY not in json.dumps(listed)
        assert {item["metadata"]["namespace"] for item in listed} <= {scene.mine}
    refused = sum(min(codes) >= 400 or max(codes) >= 400 for codes in answers.values())
    print(f"{len(WAYS)} ways: {refused} refused, {len(WAYS) - refused} confined")


def test_a_token_of_one_namespace_reports_no_progress_of_another(scene: Scene) -> None:
    """With the audience of their job, which anybody may ask a token for; and by dots in the path."""
    audience = f"{GROUP}/v1alpha1/namespaces/{scene.theirs}/trainjobs/victim/status"
    token = scene.plane.token(scene.mine, "default", seconds=3600, audiences=(audience,))
    scene.plane.admin.until(
        f"/api/v1/namespaces/{scene.theirs}/configmaps/victim-tls-config", bool, what="the CA of the progress server"
    )
    reporter = Reporter(scene.installed, scene.theirs, "victim")
    mine = f"{base(scene.mine)}/trainjobs/last/status"
    for path in (reporter.path, mine.replace(scene.mine, f"{scene.mine}/../{scene.theirs}")):
        assert reporter.post(report(progressPercentage=99), token, path=path)[0] in (401, 403, 404)
    stored = scene.plane.admin.get(f"{base(scene.theirs)}/trainjobs/victim")
    assert "trainerStatus" not in stored["status"]
