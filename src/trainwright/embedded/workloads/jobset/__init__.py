"""The JobSet controller: creates a JobSet's headless service and Jobs and keeps its status, as JobSet v0.12 does.

`decision.decide` is the checklist, pure: JobSet and Jobs in, what to create, delete, suspend and resume and the new
status out. `controller` carries it out. Each policy has a file: `failure_policy`, `success_policy`, `startup_policy`,
`depends_on`, `time_to_live`. `children` builds Jobs and the service, `defaults` fills in absent fields, `conditions`
sets conditions.
"""
