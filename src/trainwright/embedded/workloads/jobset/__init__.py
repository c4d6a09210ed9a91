"""The JobSet controller: a JobSet becomes a headless service and Jobs, their fates become its status (JobSet v0.12).

`decision.decide` is the checklist, pure: JobSet and Jobs in, what to create, delete, suspend and resume and the new
status out. `controller` carries it out. One policy a file: `failure_policy`, `success_policy`, `startup_policy`,
`depends_on`, `time_to_live`; `children` says what a Job and the service look like, `defaults` what an absent field
means, `conditions` how conditions change.
"""
