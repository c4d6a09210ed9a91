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

# What a pod tells a node that runs many pods on one machine: lists of names, separated by commas.
PORT_VARIABLES: Final = "trainwright.dev/port-variables"
"""Environment variables that hold a port, or end with `:port`, at which the job's processes meet."""
PORT_FLAGS: Final = "trainwright.dev/port-flags"
"""Command-line flags that are followed by such a port."""
OPTIONAL_VOLUMES: Final = "trainwright.dev/optional-volumes"
"""Volumes that the pod can do without."""

# The Trainer API
RUNTIME_REVISION: Final = "trainer.kubeflow.org/runtime-revision"
WEBHOOK_VALIDATION: Final = "trainer.kubeflow.org/webhook-validation"
