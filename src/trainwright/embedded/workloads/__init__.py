"""JobSets become Jobs, Jobs become pods, pods get a node: what a cluster's own controllers do, for one machine.

Each is an ordinary controller on `controlloop` and a client of the API like any other. Each has its policy as a pure
function (`job.decision`, `jobset.decision`, `scheduler.fit`) and a thin `controller` that carries it out. In a real
cluster none of this runs.

How to use it:

    from trainwright.embedded.workloads.controllers import workload_controllers
    await Manager(client, workload_controllers(client)).run()          # until cancelled

`objects` is how all of them see objects.
"""
