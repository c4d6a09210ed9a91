"""The scheduler: binds pods to a node with enough resources, or says in their status why it cannot.

`fit` is the policy, pure: a pod, a node and the pods on it in, reasons against it out. `controller` binds.
"""
