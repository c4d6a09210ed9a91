"""Pods as processes of this machine.

A pod passes through these modules:

    kubelet       sees pods bound to its node by watch (a controller on `controlloop`) and drives all that follows
    support       refuses what the node cannot do
    launch        resolves the pod to a `PodToRun`, with `environment`, `volumes`, `tokens`, `declarations`,
                  `addresses`, `handlers`
    allotment     gives it GPUs (`devices`) and CPUs that are its own
    runs          finds the run that the pod belongs to, where its logs and outputs stay
    directories   writes that into the pod's directory and starts its supervisor
    remoteshell   ssh and sshd of pods whose launcher starts processes in other pods
    nursery       the process from which supervisors are forked; `spawning` is the node's side of it
    supervisor    a process for each pod; runs each `container` by its `restarts` policy, each run an `instance` with a
                  keeper; watches its `health`: `probes`, tried by `attempts` at `checks`; what happens goes into its
                  `journal`, which `happenings` writes as events
    keeper        enters the Linux namespaces of the node's tier (`tiers`, `syscalls`), mounts volumes (`rootfs`),
                  runs the command
    execution     runs another command in a container; `execsocket` is where the node asks for it, `execclient` how
    crilog        writes the command's output; `record` keeps every change of state
    status        turns the record into pod status, which the kubelet writes
    provisioner   binds `claims` to directories of this machine; `claimed` finds them for a pod
    content       brings changes of ConfigMaps and Secrets to running pods
    server, logs  read the output back for the API server
    streamserver  exec, attach and port-forward for the API server: `remotecommand`, `portforward`
    usage         what containers use of CPU, memory and GPUs

`identity` tells a process of ours from another one that got its pid later. `registration` keeps the Node object.

How to use it:

    node = LocalNode(client, NodeConfig(directory=state / "node", token=token, tls=server_side_context))
    await node.run(ready=…)        # until cancelled; pods run on, and the next node adopts them
    await node.end_pods()          # only when the cluster is to end: every pod is ended

from `trainwright.embedded.node.node`. The API server reaches `https://127.0.0.1:<node.port>/containerLogs/…`, as the
Node object says, with `Authorization: Bearer <token>`.

This file imports nothing: every supervisor imports it, and must load the standard library only.
"""
