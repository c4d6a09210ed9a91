"""Pods as processes of this machine.

A pod passes through these modules:

    kubelet       sees pods bound to its node by watch (a controller on `controlloop`) and drives all that follows
    support       refuses what the node cannot do
    launch        resolves the pod to a `PodToRun`, with `environment`, `volumes`, `tokens`, `declarations`, `addresses`
    directories   writes that into the pod's directory and starts its supervisor
    supervisor    a process for each pod; forks a keeper for each `container`
    keeper        enters the Linux namespaces of the node's tier (`tiers`, `syscalls`), mounts volumes (`rootfs`),
                  runs the command
    crilog        writes the command's output; `record` keeps every change of state
    status        turns the record into pod status, which the kubelet writes
    server, logs  read the output back for the API server

`identity` tells a process of ours from another one that got its pid later. `registration` keeps the Node object.

How to use it:

    node = LocalNode(client, NodeConfig(directory=state / "node", token=token, tls=server_side_context))
    await node.run(ready=…)        # until cancelled; pods run on, and the next node adopts them
    await node.end_pods()          # only when the cluster is to end: every pod is ended

from `trainwright.embedded.node.node`. The API server reaches `https://127.0.0.1:<node.port>/containerLogs/…`, as the
Node object says, with `Authorization: Bearer <token>`.

This file imports nothing: every supervisor imports it, and must load the standard library only.
"""
