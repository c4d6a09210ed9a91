"""Every command of the kubectl surface as data: the command line, its exit code and its output.

In: nothing. Out: `STEPS`, to be run in order against one API server that serves our CRDs and runs no controllers but
garbage collection and namespace deletion. `test_commands.py` judges them on the embedded server by `code` and `shows`;
`tests/kube/test_kubectl_compare.py` runs them on kube-apiserver too and compares exit codes and normalised output.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

NAMESPACE = "surface"


@dataclass(frozen=True)
class Step:
    """`until` marks a command that does not end by itself: it is ended when that pattern was printed, and the commands
    `during` run meanwhile. `apart` says why two servers may rightly print different things; `rows` that of a list only
    the lines which the embedded server prints count.
    """

    id: str
    argv: tuple[str, ...]
    stdin: str = ""
    code: int = 0
    shows: tuple[str, ...] = ()
    until: str = ""
    during: tuple[tuple[str, ...], ...] = ()
    apart: str = ""
    rows: bool = False


def k(id_: str, line: str, *shows: str, **more: object) -> Step:
    during = tuple(tuple(shlex.split(other)) for other in more.pop("during", ()))  # type: ignore[attr-defined]
    return Step(id_, tuple(shlex.split(line)), shows=shows, during=during, **more)  # type: ignore[arg-type]


RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: plain, namespace: surface}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: busybox}]}}}
"""

TRAINJOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: NAME, namespace: surface, labels: {team: blue}}
spec:
  runtimeRef: {name: plain, kind: TrainingRuntime}
  trainer: {numNodes: 2, command: [echo, hello]}
"""


def trainjob(name: str, **changes: str) -> str:
    text = TRAINJOB.replace("NAME", name)
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


CONFIGMAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: surface}
data: {colour: COLOUR}
"""


def configmap(name: str, colour: str) -> str:
    return CONFIGMAP.replace("NAME", name).replace("COLOUR", colour)


GUARDED = CONFIGMAP.replace("NAME", "guarded").replace(
    "namespace: surface", "namespace: surface, finalizers: [example.com/guard]"
)

OWNED = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME
  namespace: surface
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: OWNER, uid: UID, blockOwnerDeletion: true}]
"""

EVENT = """
apiVersion: v1
kind: Event
metadata: {name: first.1, namespace: surface}
involvedObject: {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: first, namespace: surface}
reason: Seen
message: an event for the list
type: Normal
source: {component: tester}
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
count: 1
"""

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: surface}
spec:
  suspend: true
  replicatedJobs:
  - name: node
    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: node, image: busybox}]}}}}
"""

OTHERS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data, namespace: surface}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
- apiVersion: v1
  kind: Service
  metadata: {name: headless, namespace: surface}
  spec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}
- apiVersion: v1
  kind: LimitRange
  metadata: {name: limits, namespace: surface}
  spec: {limits: [{type: Container, default: {cpu: 500m}}]}
- apiVersion: coordination.k8s.io/v1
  kind: Lease
  metadata: {name: leader, namespace: surface}
  spec: {holderIdentity: me, leaseDurationSeconds: 15}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: scaler, namespace: surface}
  spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: batch/v1, kind: Job, name: once}}
- apiVersion: apps/v1
  kind: ControllerRevision
  metadata: {name: revision, namespace: surface}
  revision: 1
  data: {a: b}
- apiVersion: node.k8s.io/v1
  kind: RuntimeClass
  metadata: {name: surface-runtime}
  handler: runc
"""

IN = f"-n {NAMESPACE}"
AS_ROBOT = "--as=system:serviceaccount:surface:robot"

STEPS: tuple[Step, ...] = (
    # -- what is there
    k(
        "version",
        "version",
        r"Client Version: v1\.36\.4",
        r"Server Version: v1\.36",
        apart="the embedded server says what it is",
    ),
    k("cluster-info", "cluster-info", "Kubernetes control plane.* is running at"),
    k(
        "api-versions",
        "api-versions",
        r"trainer\.kubeflow\.org/v1alpha1",
        r"jobset\.x-k8s\.io/v1alpha2",
        "batch/v1",
        rows=True,
    ),
    k("api-resources", "api-resources", r"trainjobs +trainer\.kubeflow\.org/v1alpha1 +true +TrainJob", rows=True),
    k(
        "api-resources-namespaced",
        "api-resources --namespaced=false -o name",
        r"clustertrainingruntimes\.trainer",
        rows=True,
    ),
    k("raw-readyz", "get --raw /readyz", "ok"),
    k("raw-unknown", "get --raw /nothing/here", "NotFound", code=1),
    # -- namespaces, imperative creates (protobuf bodies)
    k("create-namespace", f"create namespace {NAMESPACE}", "namespace/surface created"),
    k("create-namespace-again", f"create namespace {NAMESPACE}", "AlreadyExists", code=1),
    k("create-configmap", f"create configmap cm {IN} --from-literal=a=b", "configmap/cm created"),
    k("create-secret", f"create secret generic sec {IN} --from-literal=password=hunter2", "secret/sec created"),
    k("create-serviceaccount", f"create serviceaccount robot {IN}", "serviceaccount/robot created"),
    k("create-job", f"create job once {IN} --image=busybox -- echo hi", "job.batch/once created"),
    k("create-role", f"create role reader {IN} --verb=get,list --resource=trainjobs", "role.rbac.*reader created"),
    k("create-rolebinding", f"create rolebinding reader {IN} --role=reader --serviceaccount=surface:robot", "created"),
    k("create-clusterrole", "create clusterrole surface-cr --verb=get --resource=nodes", "created"),
    k(
        "create-clusterrolebinding",
        "create clusterrolebinding surface-cr --clusterrole=surface-cr --user=bob",
        "created",
    ),
    k("create-priorityclass", "create priorityclass surface-high --value=1000 --description=high", "created"),
    k(
        "create-quota-dry",
        f"create configmap dry {IN} --from-literal=a=b --dry-run=server",
        r"created \(server dry run\)",
    ),
    k("create-token", f"create token robot {IN}", r"^ey", apart="a token"),
    k("run", f"run lone {IN} --image=busybox --restart=Never -- sleep 1", "pod/lone created"),
    # -- create -f, get
    k("create-runtime", "create -f -", "trainingruntime.trainer.kubeflow.org/plain created", stdin=RUNTIME),
    k("create-trainjob", "create -f -", "trainjob.trainer.kubeflow.org/first created", stdin=trainjob("first")),
    k("create-trainjob-again", "create -f -", "AlreadyExists", stdin=trainjob("first"), code=1),
    k(
        "create-unknown-field",
        "create -f -",
        r'unknown field "spec\.colour"',
        stdin=trainjob("odd") + "  colour: red\n",
        code=1,
    ),
    k("create-invalid", "create -f -", "is invalid", stdin=trainjob("odd", **{"numNodes: 2": "numNodes: -1"}), code=1),
    k("create-wrong-type", "create -f -", stdin=trainjob("odd", **{"numNodes: 2": "numNodes: two"}), code=1),
    k("get", f"get trainjobs {IN}", r"NAME +STATE", "first"),
    k("get-singular", f"get trainjob first {IN}", "first"),
    k("get-wide", f"get trainjobs {IN} -o wide", "first"),
    k("get-all-namespaces", "get trainjobs -A", r"NAMESPACE +NAME", "surface +first"),
    k("get-label", f"get trainjobs {IN} -l team=blue", "first"),
    k("get-label-set", f"get trainjobs {IN} -l 'team in (red,blue),!never'", "first"),
    k("get-label-none", f"get trainjobs {IN} -l team=red", "No resources found in surface namespace"),
    k("get-label-bad", f"get trainjobs {IN} -l 'team in'", code=1),
    k("get-field", f"get trainjobs {IN} --field-selector metadata.name=first", "first"),
    k(
        "get-field-unsupported",
        f"get trainjobs {IN} --field-selector spec.suspend=true",
        "field label not supported",
        code=1,
    ),
    k("get-pods-field", f"get pods {IN} --field-selector status.phase=Pending", "lone"),
    k("get-yaml", f"get trainjob first {IN} -o yaml", "kind: TrainJob", "numNodes: 2"),
    k("get-yaml-managed", f"get trainjob first {IN} -o yaml --show-managed-fields", "manager: kubectl-create"),
    k("get-json", f"get trainjobs {IN} -o json", '"kind": "List"'),
    k("get-jsonpath", f"get trainjobs {IN} -o jsonpath={{.items[*].spec.runtimeRef.name}}", "^plain"),
    k("get-name", f"get trainjobs {IN} -o name", "trainjob.trainer.kubeflow.org/first"),
    k("get-columns", f"get trainjobs {IN} -o custom-columns=N:.metadata.name,R:.spec.runtimeRef.name", "first +plain"),
    k("get-sorted", f"get trainjobs {IN} --sort-by=.metadata.creationTimestamp", "first"),
    k("get-show-labels", f"get trainjobs {IN} --show-labels", "team=blue"),
    k("get-label-column", f"get trainjobs {IN} -L team", "TEAM", "blue"),
    k(
        "get-missing",
        f"get trainjob nobody {IN}",
        'NotFound.*trainjobs.trainer.kubeflow.org "nobody" not found',
        code=1,
    ),
    k("get-unknown-type", f"get spaceships {IN}", "doesn't have a resource type", code=1),
    k(
        "get-several",
        f"get configmaps,secrets,pods,jobs {IN}",
        "configmap/cm",
        "secret/sec",
        "pod/lone",
        "job.batch/once",
    ),
    k("get-pods", f"get pods {IN}", r"NAME +READY +STATUS +RESTARTS +AGE", "lone +0/1 +Pending"),
    k("get-pods-wide", f"get pods {IN} -o wide", "NOMINATED NODE"),
    k("get-pod-yaml", f"get pod lone {IN} -o yaml", "image: busybox"),
    k("get-jobs", f"get jobs {IN}", "COMPLETIONS", "once"),
    k("get-jobs-wide", f"get jobs {IN} -o wide", "SELECTOR"),
    k("get-job-yaml", f"get job once {IN} -o yaml", "backoffLimit: 6"),
    k("get-namespaces", f"get namespace {NAMESPACE}", "Active"),
    k("get-configmaps", f"get configmap cm {IN}", "NAME +DATA +AGE"),
    k("get-secrets", f"get secrets {IN}", "Opaque"),
    k("get-serviceaccounts", f"get serviceaccount robot {IN}", "robot"),
    k("get-roles", f"get role,rolebinding {IN}", "reader"),
    k("get-runtimes", f"get trainingruntimes {IN}", "plain"),
    k("get-jobsets-none", f"get jobsets {IN}", "No resources found"),
    k("get-all", f"get all {IN}", "pod/lone", "job.batch/once"),
    k("get-crd", "get crd trainjobs.trainer.kubeflow.org", "trainjobs.trainer.kubeflow.org"),
    k("get-ignore", f"get trainjob nobody {IN} --ignore-not-found"),
    k("get-chunks", f"get configmaps {IN} --chunk-size=1", "cm"),
    k("get-nowhere", "get trainjobs -n nowhere", "No resources found in nowhere namespace"),
    k("raw-group", "get --raw /apis/trainer.kubeflow.org", '"kind":"APIGroup"'),
    k("raw-list", f"get --raw /apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs", "TrainJobList"),
    k("create-jobset", "create -f -", "jobset.jobset.x-k8s.io/set created", stdin=JOBSET),
    k("get-jobsets", f"get jobsets {IN}", "TERMINALSTATE", "set"),
    k("get-jobset-yaml", f"get jobset set {IN} -o yaml --show-managed-fields", "suspend: true"),
    k("describe-jobset", f"describe jobset set {IN}", "Replicated Jobs"),
    k("delete-jobset", f"delete jobset set {IN}", "deleted"),
    k("create-list", "create -f -", "persistentvolumeclaim/data created", "lease.*leader created", stdin=OTHERS),
    k("get-pvc", f"get pvc {IN}", "data +Pending"),
    k("get-service", f"get service {IN} -o wide", "headless +ClusterIP +None"),
    k("get-limitrange", f"get limitrange {IN}", "limits"),
    k("get-lease", f"get lease {IN}", "leader +me"),
    k("get-hpa", f"get hpa {IN}", "scaler +Job/once"),
    k("get-revision", f"get controllerrevisions {IN}", "revision"),
    k("get-runtimeclass", "get runtimeclass surface-runtime", "runc"),
    k("get-rbac-wide", f"get role,rolebinding {IN} -o wide", "surface/robot"),
    k("get-priorityclass", "get priorityclass surface-high", "1000"),
    k("get-others-yaml", f"get pvc,service,limitrange,lease,hpa,controllerrevision {IN} -o yaml", "storage: 1Gi"),
    k("free-pvc", f'patch pvc data {IN} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'', "patched"),
    k("delete-list", "delete -f -", "runtimeclass.*deleted", stdin=OTHERS),
    # -- watch
    k(
        "get-watch",
        f"get configmaps {IN} -w",
        "watched",
        until="watched +1",
        during=(f"create configmap watched {IN} --from-literal=a=b",),
    ),
    k(
        "get-watch-one",
        f"get configmap watched {IN} -w -o 'jsonpath={{.data}}{{\"\\n\"}}'",
        until="blue",
        during=(f'patch configmap watched {IN} --type=merge -p \'{{"data":{{"a":"blue"}}}}\'',),
    ),
    k(
        "get-watch-only",
        f"get trainjobs {IN} --watch-only --output-watch-events",
        until="second",
        during=(),
        apart="nothing changes while it looks",
        code=1,
    ),
    # -- describe, events
    k("describe-trainjob", f"describe trainjob first {IN}", "Num Nodes: +2", "Events: +<none>"),
    k("create-event", "create -f -", "event/first.1 created", stdin=EVENT),
    k("get-events", f"get events {IN}", "LAST SEEN", "trainjob/first +an event for the list"),
    k("events", f"events {IN}", "an event for the list"),
    k("events-for", f"events {IN} --for trainjob/first", "Seen"),
    k("events-for-none", f"events {IN} --for pod/lone", "No events found"),
    k("events-types", f"events {IN} --types=Warning", "No events found"),
    k("events-watch", f"events {IN} --watch", until="an event for the list"),
    k("get-events-field", f"get events {IN} --field-selector involvedObject.name=first", "Seen"),
    k("describe-pod", f"describe pod lone {IN}", "Image: +busybox"),
    k("describe-secret", f"describe secret sec {IN}", "password: +7 bytes"),
    k("describe-configmap", f"describe configmap cm {IN}", "Data"),
    k("describe-namespace", f"describe namespace {NAMESPACE}", "Status: +Active", apart="ResourceQuota is not served"),
    k("describe-job", f"describe job once {IN}", "Parallelism: +1"),
    k("describe-missing", f"describe trainjob nobody {IN}", "NotFound", code=1),
    # -- client-side apply
    k("apply-new", "apply -f -", "trainjob.trainer.kubeflow.org/applied created", stdin=trainjob("applied")),
    k("apply-unchanged", "apply -f -", "applied unchanged", stdin=trainjob("applied")),
    k("diff-none", "diff -f -", stdin=trainjob("applied")),
    k("diff-some", "diff -f -", r"\+ +team: green", stdin=trainjob("applied", blue="green"), code=1),
    k("apply-changed", "apply -f -", "applied configured", stdin=trainjob("applied", blue="green")),
    k("apply-changed-seen", f"get trainjob applied {IN} -o jsonpath={{.metadata.labels.team}}", "green"),
    k(
        "apply-dry-server",
        "apply -f - --dry-run=server",
        r"configured \(server dry run\)",
        stdin=trainjob("applied", blue="dry"),
    ),
    k(
        "apply-dry-client",
        "apply -f - --dry-run=client",
        r"configured \(dry run\)",
        stdin=trainjob("applied", blue="dry"),
    ),
    k("apply-dry-nothing", f"get trainjob applied {IN} -o jsonpath={{.metadata.labels.team}}", "green"),
    k("apply-configmap-new", "apply -f -", "configmap/paint created", stdin=configmap("paint", "red")),
    k("apply-configmap-changed", "apply -f -", "configmap/paint configured", stdin=configmap("paint", "blue")),
    k("apply-unknown-strict", "apply -f -", "unknown field", stdin=trainjob("lax") + "  colour: red\n", code=1),
    k("apply-unknown-lax", "apply -f - --validate=false", "lax created", stdin=trainjob("lax") + "  colour: red\n"),
    k(
        "apply-unknown-warn",
        "apply -f - --validate=warn",
        "unknown field",
        stdin=trainjob("warned") + "  colour: red\n",
    ),
    k(
        "apply-missing-namespace",
        "apply -f -",
        "namespaces .nowhere. not found",
        stdin=trainjob("x", **{"namespace: surface": "namespace: nowhere"}),
        code=1,
    ),
    k(
        "apply-runtime-missing-kind",
        "apply -f -",
        "no matches for kind",
        stdin=trainjob("x", **{"kind: TrainJob": "kind: Spaceship"}),
        code=1,
    ),
    k("apply-prune-list", f"apply view-last-applied trainjob applied {IN}", "team: green"),
    # -- server-side apply
    k("ssa-new", "apply --server-side -f -", "configmap/served serverside-applied", stdin=configmap("served", "red")),
    k("ssa-again", "apply --server-side -f -", "serverside-applied", stdin=configmap("served", "red")),
    k(
        "ssa-conflict",
        "apply --server-side --field-manager=other -f -",
        "conflict with .kubectl.*",
        stdin=configmap("served", "blue"),
        code=1,
    ),
    k(
        "ssa-force",
        "apply --server-side --field-manager=other --force-conflicts -f -",
        "serverside-applied",
        stdin=configmap("served", "blue"),
    ),
    k("ssa-managed", f"get configmap served {IN} -o yaml --show-managed-fields", "manager: other"),
    k("ssa-migrate", "apply --server-side -f -", "serverside-applied", stdin=configmap("paint", "blue")),
    k("ssa-migrated", f"get configmap paint {IN} -o yaml --show-managed-fields", "operation: Apply"),
    k("ssa-trainjob", "apply --server-side -f -", "serverside-applied", stdin=trainjob("served")),
    k(
        "ssa-dry",
        "apply --server-side --dry-run=server -f -",
        r"\(server dry run\)",
        stdin=trainjob("served", blue="dry"),
    ),
    k("diff-ssa", "diff --server-side -f -", "team: dry", stdin=trainjob("served", blue="dry"), code=1),
    # -- replace, patch, label, annotate, edit
    k("replace", "replace -f -", "configmap/cm replaced", stdin=configmap("cm", "replaced")),
    k("replace-missing", "replace -f -", "NotFound", stdin=configmap("nobody", "x"), code=1),
    k("replace-trainjob", "replace -f -", "replaced", stdin=trainjob("first", blue="purple")),
    k("patch-merge", f'patch trainjob first {IN} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'', "first patched"),
    k(
        "patch-merge-again",
        f'patch trainjob first {IN} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'',
        r"patched \(no change\)",
    ),
    k(
        "patch-json",
        f'patch trainjob first {IN} --type=json -p \'[{{"op":"replace","path":"/spec/suspend","value":false}}]\'',
        "patched",
    ),
    k(
        "patch-json-bad",
        f'patch trainjob first {IN} --type=json -p \'[{{"op":"test","path":"/spec/suspend","value":true}}]\'',
        code=1,
    ),
    k(
        "patch-strategic-custom",
        f'patch trainjob first {IN} -p \'{{"spec":{{"suspend":true}}}}\'',
        "strategic-merge-patch.json is not supported",
        code=1,
    ),
    k("patch-strategic", f'patch configmap cm {IN} -p \'{{"data":{{"x":"y"}}}}\'', "configmap/cm patched"),
    k(
        "patch-invalid",
        f'patch trainjob first {IN} --type=merge -p \'{{"spec":{{"trainer":{{"numNodes":0}}}}}}\'',
        "is invalid",
        code=1,
    ),
    k(
        "patch-immutable",
        f'patch trainjob first {IN} --type=merge -p \'{{"spec":{{"managedBy":"example.com/x"}}}}\'',
        code=1,
    ),
    k(
        "patch-status",
        f"patch trainjob first {IN} --subresource=status --type=merge -p "
        '\'{"status":{"conditions":[{"type":"Complete","status":"True","reason":"Done","message":"done",'
        '"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}\'',
        "first patched",
    ),
    k(
        "get-status",
        f"get trainjob first {IN} --subresource=status -o jsonpath={{.status.conditions[0].reason}}",
        "Done",
    ),
    k("label", f"label trainjob first {IN} tier=one", "first labeled"),
    k("label-again", f"label trainjob first {IN} tier=two", "already has a value", code=1),
    k("label-overwrite", f"label trainjob first {IN} tier=two --overwrite", "labeled"),
    k("label-remove", f"label trainjob first {IN} tier-", "unlabeled"),
    k("label-bad", f"label trainjob first {IN} tier=-bad-", "a valid label must be", code=1),
    k("label-selector", f"label pods -l run=lone {IN} colour=red", "pod/lone labeled"),
    k("annotate", f"annotate trainjob first {IN} note=edit-me", "annotated"),
    k("edit", f"edit trainjob first {IN}", "first edited"),
    k("edited", f"get trainjob first {IN} -o jsonpath={{.metadata.annotations.note}}", "edited"),
    k("edit-nothing", f"edit trainjob first {IN}", "Edit cancelled"),
    k("set-image", f"set image pod/lone {IN} lone=busybox:2", "image updated"),
    k("scale-not-elastic", f"scale trainjob first {IN} --replicas=3", "immutable|elastic", code=1),
    # -- wait
    k("wait-condition", f"wait trainjob/first {IN} --for=condition=Complete --timeout=5s", "condition met"),
    k(
        "wait-jsonpath",
        f"wait trainjob/first {IN} --for=jsonpath={{.spec.suspend}}=false --timeout=5s",
        "condition met",
    ),
    k("wait-timeout", f"wait trainjob/first {IN} --for=condition=Failed --timeout=1s", "timed out", code=1),
    k("wait-create", f"wait configmap/cm {IN} --for=create --timeout=5s", "condition met"),
    k("wait-delete-gone", f"wait trainjob/nobody {IN} --for=delete --timeout=5s"),
    k("wait-missing", f"wait trainjob/nobody {IN} --for=condition=Complete --timeout=1s", "NotFound", code=1),
    # -- explain
    k("explain", "explain trainjob", "KIND: +TrainJob", "spec", apart="Kubernetes' own prose is not ours to ship"),
    k("explain-path", "explain trainjob.spec.trainer", "numNodes"),
    k("explain-recursive", "explain trainjob.spec --recursive", "runtimeRef"),
    k(
        "explain-builtin",
        "explain pod.spec.containers",
        "image",
        apart="descriptions of built-in kinds are not ours to ship",
    ),
    k("explain-missing", "explain trainjob.spec.nothing", "does not exist", code=1),
    # -- logs (no node here: what is said when there is nothing to show)
    k("logs-unscheduled", f"logs lone {IN}"),
    k("logs-missing", f"logs nobody {IN}", "NotFound", code=1),
    k("logs-trainjob", f"logs trainjob/first {IN}", code=1),
    k("logs-selector-none", f"logs {IN} -l never=there", "No resources found"),
    k("logs-job-none", f"logs job/once {IN} --pod-running-timeout=1s", "timed out waiting", code=1),
    # -- who may
    k("can-i", f"auth can-i create trainjobs.trainer.kubeflow.org {IN}", "^yes"),
    k("can-i-subresource", f"auth can-i get pods --subresource=log {IN}", "^yes"),
    k(
        "can-i-as",
        f"auth can-i create trainjobs.trainer.kubeflow.org {IN} --as=system:serviceaccount:surface:robot",
        "^no",
        code=1,
    ),
    k("can-i-as-reader", f"auth can-i list trainjobs {IN} {AS_ROBOT}", "^yes"),
    k("as-may", f"get trainjobs {IN} {AS_ROBOT}", "first"),
    k("as-may-not", f"get pods {IN} {AS_ROBOT}", "Forbidden.*cannot list resource", code=1),
    k("as-may-not-write", f"delete trainjob first {IN} {AS_ROBOT}", "Forbidden.*cannot delete resource", code=1),
    k("role-for-one", f"create role one {IN} --verb=list --resource=configmaps --resource-name=cm", "created"),
    k("bind-for-one", f"create rolebinding one {IN} --role=one --serviceaccount=surface:robot", "created"),
    k("as-may-list-one", f"get configmaps {IN} --field-selector=metadata.name=cm {AS_ROBOT}", "cm"),
    k("as-may-not-list-all", f"get configmaps {IN} {AS_ROBOT}", "Forbidden", code=1),
    k("as-may-not-list-other", f"get cm {IN} --field-selector=metadata.name=x {AS_ROBOT}", "Forbidden", code=1),
    k("as-group", f"get pods {IN} --as=bob --as-group=system:masters", "lone"),
    k("whoami-as", f"auth whoami {AS_ROBOT}", "system:serviceaccounts:surface"),
    k("can-i-list", f"auth can-i --list {IN}", r"\*\.\*", rows=True),
    k("whoami", "auth whoami", "Username", apart="who the kubeconfig's user is differs by design"),
    # -- delete
    k("delete", f"delete trainjob lax {IN}", '"lax" deleted'),
    k("delete-missing", f"delete trainjob lax {IN}", "NotFound", code=1),
    k("delete-ignore", f"delete trainjob lax {IN} --ignore-not-found"),
    k("delete-dry", f"delete trainjob served {IN} --dry-run=server", r"\(server dry run\)"),
    k("delete-selector", f"delete trainjobs {IN} -l team=green", '"applied" deleted'),
    k("delete-guarded-create", "create -f -", "guarded created", stdin=GUARDED),
    k("delete-guarded", f"delete configmap guarded {IN} --wait=false", '"guarded" deleted'),
    k("delete-guarded-seen", f"get configmap guarded {IN} -o jsonpath={{.metadata.deletionTimestamp}}", r"^20"),
    k(
        "delete-guarded-free",
        f'patch configmap guarded {IN} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
        "patched",
    ),
    k("wait-delete", f"wait configmap/guarded {IN} --for=delete --timeout=5s"),
    k("delete-foreground", f"delete configmap served {IN} --cascade=foreground", "deleted"),
    k("delete-orphan", f"delete configmap paint {IN} --cascade=orphan", "deleted"),
    k("delete-force", f"delete pod lone {IN} --grace-period=0 --force", "force deleted"),
    k("delete-all", f"delete trainjobs --all {IN}", '"first" deleted'),
    k("delete-file", "delete -f -", "deleted", stdin=RUNTIME),
    k("delete-job", f"delete job once {IN}", "deleted"),
    k("delete-cluster-scoped", "delete clusterrole,clusterrolebinding surface-cr", "deleted"),
    k("delete-priorityclass", "delete priorityclass surface-high", "deleted"),
    k("delete-namespace", f"delete namespace {NAMESPACE} --timeout=60s", 'namespace "surface" deleted'),
    k("delete-namespace-gone", f"get namespace {NAMESPACE}", "NotFound", code=1),
)
