"""The Job controller: creates the pods of batch/v1 Jobs, counts them, and keeps the Jobs' status.

`decision.decide` is the whole policy, pure: Job and pods in, pods to create and delete and the new status out. It is
made of `facts`, `ending` (with `pod_failure_policy` and `success_policy`), `population` (with `backoff`, `surplus` and
`indexes`) and `accounting`. `controller` reads the stores and carries it out, `orphans` frees pods that no Job counts;
`pods` builds a pod.
"""
