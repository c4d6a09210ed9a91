"""A controller engine that knows nothing about training.

The path of an event: the API server sends a line on a watch → the `Informer` of its `Source` puts the object into the
`Store` and publishes the `Delta` → each `Controller` that `Watches` the source maps old and new object to `Key`s and
adds them to its `WorkQueue` → a worker takes the key and calls the reconcile function, which reads stores, acts
through the client, and returns `Done()` or `After(seconds)`. If it raises, it is called again with back-off. The
`Manager` runs all of it as one TaskGroup.

How to use it:

    class View(msgspec.Struct, frozen=True, gc=False):  # thin: only the fields you decide on
        metadata: ObjectMeta
        spec: dict[str, Any] = {}

    job_sets = Source(JOB_SETS, View)
    jobs = Source(JOBS, View, indexes={"owner": lambda job: [o.uid for o in job.metadata.owner_references or ()]})

    async def reconcile(key: Key) -> Outcome:
        job_set = job_sets.store.get(key)
        if job_set is None:
            return Done()  # deleted: the garbage collector does the rest
        owned = jobs.store.by("owner", job_set.metadata.uid)
        ...  # await client.create(...), client.apply(...)
        return After(30.0)  # or Done()

    watches = [Watches(job_sets), Watches(jobs, controlled_by("JobSet"))]
    controller = Controller("jobset", reconcile, watches, workers=2)
    async with Client.to(kubeconfig.load(path)) as client:
        await Manager(client, [controller]).run()  # until cancelled

Rules: a `Source` whose type is not served (CRD missing) counts as synced and empty, `source.trouble` says so, and it
is listed as soon as the type is served. Share one `Source` among controllers. Stores lag behind your own writes: make
writes that can be repeated (apply, create with a fixed name, delete with a uid), never ones that depend on having seen
the last event. In tests pass a `VirtualClock`.
"""

from trainwright.clock import Clock, SystemClock, VirtualClock
from trainwright.controlloop.controller import Controller
from trainwright.controlloop.manager import Manager
from trainwright.controlloop.metrics import Metrics, NoMetrics
from trainwright.controlloop.outcome import After, Done, Key, NotYet, Outcome, Reconcile
from trainwright.controlloop.ownwrites import OwnWrites
from trainwright.controlloop.queue import WorkQueue
from trainwright.controlloop.source import Source, Watches, controlled_by, itself
from trainwright.controlloop.store import Delta, Store, key_of

__all__ = [
    "After",
    "Clock",
    "Controller",
    "Delta",
    "Done",
    "Key",
    "Manager",
    "Metrics",
    "NoMetrics",
    "NotYet",
    "Outcome",
    "OwnWrites",
    "Reconcile",
    "Source",
    "Store",
    "SystemClock",
    "VirtualClock",
    "Watches",
    "WorkQueue",
    "controlled_by",
    "itself",
    "key_of",
]
