"""Trainwright: distributed ML training on Kubernetes or on a laptop, from the same YAML.

Training code uses one name of it, `progress`; programs hand over TrainJobs with `submit`. Start with
``docs/architecture.md``, which follows one TrainJob through these packages.
"""

TYPE_CHECKING = False
"""A type checker takes it for true. To import `typing` for it would cost every pod some milliseconds."""

if TYPE_CHECKING:
    from trainwright.cli.run.submit import submit_trainjob as submit
    from trainwright.reporting import progress as progress

__all__ = ["progress", "submit"]


def __getattr__(name: str) -> object:
    """`progress` is imported when it is asked for: whoever imports a part of Trainwright does not pay for it."""
    if name == "progress":
        from trainwright.reporting import progress

        return progress
    if name == "submit":
        from trainwright.cli.run.submit import submit_trainjob

        return submit_trainjob
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
