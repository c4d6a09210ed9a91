"""The Job controller: creates the pods of batch/v1 Jobs and keeps the Jobs' status.

`decision.decide` is the whole policy, pure: Job and pods in, pods to create and delete and the new status out.
`controller` reads the stores and carries it out. Each part of the policy has a file: `indexes`, `backoff`,
`pod_failure_policy`, `success_policy`; `pods` builds a pod.
"""
