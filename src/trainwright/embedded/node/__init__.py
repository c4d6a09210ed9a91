"""Pods as processes of this machine.

A pod passes through these rooms:

    kubelet        sees pods bound to its node by watch (a controller on `controlloop`) and drives all that follows
    podspec/       `support` refuses what the node cannot do; `launch` resolves the pod to a `PodToRun`, with its
                   `environment`, `declarations`, `handlers` and `users`; `runs` finds the run that it belongs to,
                   where its logs and outputs stay
    network/       `addresses`, names and ports of its own; `hostsfiles` by which pods find each other
    storage/       `volumes` and the `tokens` in them; `content` brings changes of ConfigMaps and Secrets to running
                   pods; `provisioner` binds `claims` to directories of this machine, `claimed` finds them for a pod
    resources/     `allotment` gives it GPUs (`devices`) and CPUs that are its own; `usage` is what it uses of them
    pods/          `directories` writes the `PodToRun` into the pod's directory and has its supervisor started
                   (`spawning`); `record` is what node and supervisor tell each other; `status` turns it into pod
                   status, `happenings` into events, `quiet` says that a pod prints nothing, with its `stacks`;
                   `identity` tells a process of ours from another one that got its pid later
    supervision/   the processes that outlive the control plane. `nursery` forks a `supervisor` for each pod, which
                   runs each `container` by its `restarts` policy, each run an `instance` with a keeper; watches its
                   `health`: `probes`, tried by `attempts` at `checks`; what happens goes into its `journal`. `keeper`
                   enters the Linux namespaces of the node's tier (`tiers`, `syscalls`), mounts volumes (`rootfs`),
                   in a cgroup that keeps its limits (`cgroups`),
                   in a network of the pod's own if that is asked for (`podnetwork`, by `netlink`; `passage` leads out),
                   runs the command; `crilog` writes its output. `execution` runs another command in a container, asked
                   for at `execsocket`
    remoteshell/   ssh and sshd of pods whose launcher starts processes in other pods
    endpoint/      what the API server asks the node: `server` and `logs` for output, `streamserver` for exec, attach
                   and port-forward (`remotecommand`, `execclient`, `portforward`)

`node` wires them; `registration` keeps the Node object, in the `shapes` that the machine is shown as.

How to use it:

    node = LocalNode(client, NodeConfig(directory=state / "node", token=token, tls=server_side_context))
    await node.run(ready=…)        # until cancelled; pods run on, and the next node adopts them
    await node.end_pods()          # only when the cluster is to end: every pod is ended

from `trainwright.embedded.node.node`. The API server reaches `https://127.0.0.1:<node.port>/containerLogs/…`, as the
Node object says, with `Authorization: Bearer <token>`.

This file imports nothing: every supervisor imports it, and must load the standard library only.
"""
