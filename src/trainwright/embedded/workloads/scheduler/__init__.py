"""The scheduler: binds pods to nodes with enough resources, gangs whole or not at all, or says in their status why not.

`decision.decide` is the policy, pure: waiting pods, a `cluster` and pod groups in, a plan out. `fit` judges one node,
`interpod` the neighbours, `placing` tries placements and evictions in memory, `gangs` knows pod groups. `controller`
carries the plan out.
"""
