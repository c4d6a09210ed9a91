"""The JobSet, Job and scheduler controllers of the local cluster, and the one for default service accounts.

Each is an ordinary controller on `controlloop` and a client of the API like any other. Its policy is a pure function
(`job.decision`, `jobset.decision`, `scheduler.decision`), and a thin `controller` carries it out. In a real cluster
none of this runs.

How to use it:

    from trainwright.embedded.workloads.controllers import workload_controllers
    await Manager(client, workload_controllers(client)).run()          # until cancelled

`objects` holds the type by which all of them read objects.
"""
