"""Pods as processes of this machine.

The way of a pod: the scheduler binds it → `kubelet` (a controller on `controlloop`) sees it by watch → `support`
refuses what cannot be done here → `launch` resolves it, with `environment`, `volumes`, `tokens` and `addresses`, to a
`PodToRun` → `directories` writes that to the pod's directory and starts its `supervisor`, a process of its own → the
supervisor forks a `keeper` for each `container`, which enters the `namespaces` of the node's tier (`tiers`), shows the
volumes (`rootfs`) and runs the command → output goes to `crilog`, every change to `record` → `kubelet` turns the record
into pod `status` → `server` and `logs` read the output back. `identity` is why a reused pid is never taken for a
process of ours, `registration` keeps the Node object.

How to use it:

    node = LocalNode(client, NodeConfig(directory=state / "node", token=token, tls=server_side_context))
    await node.run(ready=…)        # until cancelled; pods run on, and the next node adopts them
    await node.end_pods()          # only when the cluster is to end: every pod is ended

from `trainwright.embedded.node.node`. The API server reaches `https://127.0.0.1:<node.port>/containerLogs/…`, as the
Node object says, with `Authorization: Bearer <token>`.

This file imports nothing: the supervisor passes through it, and a pod's start should cost the standard library only.
"""
