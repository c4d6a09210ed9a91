"""Well-known names that more than one package uses: a namespace, labels and annotations.

A name that one module alone reads and writes stays in that module. Annotations of our own begin with
`trainwright.dev/`, unless the Trainer API already has a name for them.
"""

from __future__ import annotations

from typing import Final

SYSTEM_NAMESPACE: Final = "kubeflow-system"
"""The operator's namespace by default, as in the reference."""

# Kubernetes
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"

# JobSet
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"

# Elastic jobs
ELASTIC: Final = "trainwright.dev/elastic"
"""On a workload, an annotation: the fewest and the most nodes, as `2:4`. On the Job of its nodes and on their pods, a
label: `true`.
"""

# What a pod tells a node that runs many pods on one machine: lists of names, separated by commas.
PORT_VARIABLES: Final = "trainwright.dev/port-variables"
"""Environment variables that hold a port, or end with `:port`, at which the job's processes meet."""
PEER_VARIABLES: Final = "trainwright.dev/peer-variables"
"""Environment variables that name the job's pods as `host:port`, each with the port at which that pod listens."""
PORT_FLAGS: Final = "trainwright.dev/port-flags"
"""Command-line flags that are followed by such a port."""
OPTIONAL_VOLUMES: Final = "trainwright.dev/optional-volumes"
"""Volumes that the pod can do without."""
REMOTE_SHELL: Final = "trainwright.dev/remote-shell"
"""Containers that reach the job's other pods by ssh, or are reached by sshd."""
MPI_HOSTFILE: Final = "trainwright.dev/mpi-hostfile"
"""The path, in such a container, of the hostfile by which an MPI finds the job's nodes; one path, not a list."""

# What a pod of the local cluster says about the run it belongs to
RUN: Final = "trainwright.dev/run"
"""The run's id. On a TrainJob: the one that `trainwright run` chose."""
RUN_TRAINJOB: Final = "trainwright.dev/run-trainjob"
"""Name and uid of the pod's TrainJob, separated by a slash."""
WORKDIR: Final = "trainwright.dev/workdir"
"""The directory of this machine in which the local node starts the processes. On a TrainJob: for its pods."""

# What the local node says about a pod that prints nothing
QUIET: Final = "trainwright.dev/Quiet"
"""A condition of a pod: it has printed nothing for a while. The message says for how long, then where its ranks are."""
HANG_AFTER: Final = "trainwright.dev/hang-after"
"""After how many seconds without output a pod is quiet; 0 for never. On a TrainJob: for its pods."""

# The Trainer API
RUNTIME_REVISION: Final = "trainer.kubeflow.org/runtime-revision"
WEBHOOK_VALIDATION: Final = "trainer.kubeflow.org/webhook-validation"
