"""Random runtimes and TrainJobs that an API server would admit."""

from __future__ import annotations

from hypothesis import strategies as st

from trainwright.schema.jsonobject import Json

ROLE = "trainer.kubeflow.org/trainjob-ancestor-step"

names = st.sampled_from(["A", "B", "C", "FLUX_QUEUE_POLICY", "KUBEFLOW_TRAINER_SERVER_URL", "JAX_PROCESS_ID"])
env = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": names, "value": st.sampled_from(["", "1", "$(A)/x"])}),
        st.fixed_dictionaries({"name": names, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})}),
    ),
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)
resources = st.fixed_dictionaries(
    {},
    optional={
        "limits": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from(["2", "1500m", 3]), "nvidia.com/gpu": st.integers(0, 4)}
        ),
        "requests": st.fixed_dictionaries(
            {}, optional={"cpu": st.just("250m"), "memory": st.sampled_from(["1Gi", "1024Mi"])}
        ),
    },
)
mounts = st.lists(
    st.fixed_dictionaries({"name": st.just("v0"), "mountPath": st.sampled_from(["/a", "/b", "/etc/mpi"])}),
    max_size=2,
    unique_by=lambda item: item["mountPath"],
)
words = st.lists(st.sampled_from(["python", "train.py", "-x", "output_dir=/o"]), min_size=1, max_size=3)


def container(name: str) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"name": st.just(name), "image": st.sampled_from(["img:1", "img:2"])},
        optional={
            "env": env,
            "command": words,
            "args": words,
            "resources": resources,
            "volumeMounts": mounts,
            "ports": st.just([{"containerPort": 8080}, {"containerPort": 9090, "name": "web"}]),
        },
    )


@st.composite
def replicated_job(draw: st.DrawFn, name: str, role: str) -> Json:
    main = role if role.endswith("initializer") else "node"
    containers = [draw(container(main))]
    if draw(st.booleans()):
        containers.append(draw(container("side")))
    pod: Json = {"containers": containers, "volumes": [{"name": "v0", "emptyDir": {}}]}
    if draw(st.booleans()):
        pod["initContainers"] = [draw(container("pre"))]
    pod |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "nodeSelector": st.just({"a": "b"}),
                "tolerations": st.just([{"key": "old", "operator": "Exists"}]),
                "restartPolicy": st.just("Never"),
            },
        )
    )
    spec: Json = {"template": {"spec": pod}}
    spec |= draw(st.fixed_dictionaries({}, optional={"parallelism": st.integers(1, 4), "backoffLimit": st.just(0)}))
    template: Json = {"spec": spec}
    if role:
        template["metadata"] = {"labels": {ROLE: role}}
    return {"name": name, "template": template}


policies: st.SearchStrategy[Json] = st.sampled_from(
    [
        {},
        {"torch": {}},
        {"torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["pre"]}]}}},
        {"torch": {"numProcPerNode": "cpu"}},
        {"mpi": {"runLauncherAsNode": True}},
        {"mpi": {"mpiImplementation": "Intel", "numProcPerNode": 2}},
        {"jax": {}},
        {"xgboost": {}},
        {"flux": {}},
    ]
)


@st.composite
def runtimes(draw: st.DrawFn) -> Json:
    policy = draw(policies)
    jobs = []
    if draw(st.booleans()):
        jobs.append(draw(replicated_job("dataset-initializer", "dataset-initializer")))
    labelled = draw(st.booleans())
    if "mpi" in policy:
        jobs += [draw(replicated_job("node", "")), draw(replicated_job("launcher", "trainer"))]
    else:
        jobs.append(draw(replicated_job("node", "trainer" if labelled else "")))
    if policy.get("torch", {}).get("envInjection"):
        jobs[-1]["template"]["spec"]["template"]["spec"]["initContainers"] = [{"name": "pre", "image": "p"}]
    spec: Json = {"template": {"spec": {"replicatedJobs": jobs}}}
    if draw(st.booleans()) or policy:
        spec["mlPolicy"] = {"numNodes": draw(st.integers(1, 3)), **policy}
    if draw(st.booleans()):
        spec["podGroupPolicy"] = draw(st.sampled_from([{"coscheduling": {}}, {"volcano": {}}]))
    if draw(st.booleans()):
        spec["template"]["metadata"] = {"labels": {"l": "rt"}, "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": spec,
    }


pod_patches = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.sampled_from([{"a": "c"}, {"z": "1"}]),
        "tolerations": st.just([{"key": "new", "operator": "Exists"}]),
        "serviceAccountName": st.sampled_from(["one", "two"]),
        "volumes": st.just([{"name": "v9", "emptyDir": {}}, {"name": "v0", "secret": {"secretName": "s"}}]),
        "schedulingGates": st.just([{"name": "g"}]),
    },
)


@st.composite
def train_jobs(draw: st.DrawFn) -> Json:
    spec: Json = {"runtimeRef": {"name": "r"}}
    if draw(st.booleans()):
        spec["trainer"] = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "image": st.sampled_from(["mine:1", "img:1"]),
                    "command": words,
                    "args": words,
                    "env": env,
                    "numNodes": st.integers(0, 4),
                    "numProcPerNode": st.integers(1, 3),
                    "resourcesPerNode": resources,
                },
            )
        )
    patches = []
    for manager in draw(st.lists(st.sampled_from(["a.io/x", "b.io/y"]), max_size=2, unique=True)):
        job = {"name": "node", "template": {"spec": {"template": {"spec": draw(pod_patches)}}}}
        template: Json = {"spec": {"replicatedJobs": [job]}}
        if draw(st.booleans()):
            template["metadata"] = {"labels": {"l": manager.split("/")[1]}}
        patches.append({"manager": manager, "trainingRuntimeSpec": {"template": template}})
    if patches:
        spec["runtimePatches"] = patches
    if draw(st.booleans()):
        spec["podTemplateOverrides"] = [{"targetJobs": [{"name": "node"}], "spec": draw(pod_patches)}]
    spec |= draw(st.fixed_dictionaries({}, optional={"suspend": st.booleans()}))
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tj", "namespace": "ns", "uid": "u1"},
        "spec": spec,
    }
