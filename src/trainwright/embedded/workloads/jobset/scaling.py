"""Elastic scaling (gate ElasticJobSet): running Jobs follow parallelism and completions of the JobSet's template."""

from __future__ import annotations

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


def patch(job: ApiObject, replicated: Json) -> Json | None:
    """The merge patch that scales the Job; None when it is in step, or when the template asks for what no elastic Job
    can be: parallelism and completions that differ.
    """
    wanted = {field: replicated["template"]["spec"].get(field) for field in ("parallelism", "completions")}
    if wanted["parallelism"] != wanted["completions"]:
        return None
    if all(job.spec.get(field) == value for field, value in wanted.items()):
        return None
    return {"metadata": {"resourceVersion": job.metadata.resource_version}, "spec": wanted}
