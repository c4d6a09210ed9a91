"""PodMetrics and NodeMetrics: asked of the nodes, and never stored (`operations/usage.py` answers).

In a cluster metrics-server serves them. Here the API server does, where it has a way to its nodes.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.kind import BuiltinKind

METRICS = "metrics.k8s.io"


class _Metrics(BuiltinKind):
    group, version = METRICS, "v1beta1"
    verbs = ("get", "list")


class PodMetrics(_Metrics):
    plural, kind = "pods", "PodMetrics"


class NodeMetrics(_Metrics):
    plural, kind = "nodes", "NodeMetrics"
    namespaced = False


METRICS_KINDS = (NodeMetrics, PodMetrics)
