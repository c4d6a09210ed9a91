"""One TrainJob after the other: what the reconcile reads, decides and writes.

reconciler                    the reconcile: revision → plan → children → status
converged, ending             whether there is anything to write, and what follows the job's end
applier, statuses, scaling    the children, the status, and the size of an elastic job that runs
explaining, queueing          why a job failed or waits
events, keys                  what a user is told besides the status; key material for MPI and Flux
"""
