"""The scheduler: pods without a node get one that has room, or are told why not.

`fit` is the policy, pure: a pod, a node and what runs there in, reasons against it out. `controller` binds.
"""
