"""The Job controller: batch/v1 Jobs become pods, pods' fates become Job status.

`decision.decide` is the whole policy, pure: Job and pods in, pods to create and delete and the new status out.
`controller` reads the stores and carries it out. One policy a file: `indexes`, `backoff`, `pod_failure_policy`,
`success_policy`, and `pods` for what a pod looks like.
"""
