"""The Grafana dashboard: rows of panels, each a title, queries and a unit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 24
TRAINJOB = 'controller=~"trainjob.*"'


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[tuple[str, str], ...]
    """PromQL, and the legend of its series."""
    unit: str = "short"
    stacked: bool = False


def _quantiles(series: str, by: str = "") -> tuple[tuple[str, str], ...]:
    labels = f"le, {by}" if by else "le"
    legend = f" {{{{{by}}}}}" if by else ""
    return tuple(
        (f"histogram_quantile({quantile}, sum by ({labels}) (rate({series}_bucket[$__rate_interval])))", name + legend)
        for quantile, name in ((0.5, "p50"), (0.99, "p99"))
    )


ROWS: dict[str, tuple[Panel, ...]] = {
    "TrainJobs": (
        Panel("TrainJobs by state", (("sum by (state) (trainwright_trainjobs)", "{{state}}"),), stacked=True),
        Panel(
            "Created and ended in an hour",
            (
                ("sum(increase(trainwright_trainjobs_created_total[1h]))", "created"),
                ("sum by (result) (increase(trainwright_trainjobs_finished_total[1h]))", "{{result}}"),
            ),
        ),
        Panel(
            "Failed in an hour, by runtime",
            (
                (
                    'sum by (runtime) (increase(trainwright_trainjobs_finished_total{result="Failed"}[1h]))',
                    "{{runtime}}",
                ),
            ),
        ),
        Panel("Time to running", _quantiles("trainwright_trainjob_time_to_running_seconds", "runtime"), "s"),
        Panel("Time in queue", _quantiles("trainwright_trainjob_queue_seconds", "namespace"), "s"),
        Panel("Time to workload", _quantiles("trainwright_trainjob_time_to_workload_seconds", "runtime"), "s"),
        Panel("Time to first pod", _quantiles("trainwright_trainjob_time_to_first_pod_seconds", "runtime"), "s"),
        Panel("Duration", _quantiles("trainwright_trainjob_duration_seconds", "result"), "s"),
        Panel("GPUs held", (("sum by (namespace) (trainwright_gpus)", "{{namespace}}"),), stacked=True),
        Panel(
            "GPU-hours in a day",
            (("sum by (namespace) (increase(trainwright_gpu_seconds_total[1d])) / 3600", "{{namespace}}"),),
        ),
        Panel(
            "Restarts in an hour",
            (("sum by (runtime) (increase(trainwright_trainjob_restarts_total[1h]))", "{{runtime}}"),),
        ),
    ),
    "The operator": (
        Panel("Leader", (("max by (pod) (leader_election_master_status)", "{{pod}}"),)),
        Panel(
            "Reconciles a second",
            (
                (
                    "sum by (controller, result) (rate(controller_runtime_reconcile_total[$__rate_interval]))",
                    "{{controller}} {{result}}",
                ),
            ),
            "ops",
        ),
        Panel("Time of a reconcile", _quantiles("controller_runtime_reconcile_time_seconds", "controller"), "s"),
        Panel("Waiting keys", (("sum by (name) (workqueue_depth)", "{{name}}"),)),
        Panel("Time a key waits", _quantiles("workqueue_queue_duration_seconds", "name"), "s"),
        Panel(
            "Busy workers",
            (
                ("sum by (controller) (controller_runtime_active_workers)", "{{controller}}"),
                (f"max(controller_runtime_max_concurrent_reconciles{{{TRAINJOB}}})", "at most, for TrainJobs"),
            ),
        ),
        Panel("Memory", (("process_resident_memory_bytes", "{{pod}}"),), "bytes"),
        Panel("CPU", (("rate(process_cpu_seconds_total[$__rate_interval])", "{{pod}}"),)),
    ),
    "Admission and the API server": (
        Panel("Admission reviews: time", _quantiles("controller_runtime_webhook_latency_seconds", "webhook"), "s"),
        Panel(
            "Admission reviews a second",
            (
                (
                    "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total[$__rate_interval]))",
                    "{{webhook}} {{code}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Requests to the API server a second",
            (
                (
                    "sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]))",
                    "{{method}} {{code}}",
                ),
            ),
            "ops",
        ),
    ),
}


def config_map() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "kubeflow-trainer-dashboard",
            "namespace": "kubeflow-system",
            "labels": {"grafana_dashboard": "1"},
        },
        "data": {"trainwright.json": json.dumps(dashboard(), indent=1) + "\n"},
    }


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}, "panels": []})
        y += 1
        for number, panel in enumerate(row):
            place = {
                "x": number * WIDTH % COLUMNS,
                "y": y + number * WIDTH // COLUMNS * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            panels.append(_panel(panel, place))
        y += -(-len(row) * WIDTH // COLUMNS) * HEIGHT
    for number, made in enumerate(panels, start=1):
        made["id"] = number
    variable = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "trainwright",
        "title": "Trainwright",
        "tags": ["training", "kubernetes"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": panels,
    }


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    custom = {"fillOpacity": 20, "stacking": {"mode": "normal"}} if panel.stacked else {}
    return {
        "type": "timeseries",
        "title": panel.title,
        "gridPos": place,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {"refId": chr(65 + number), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }
