"""What runs in a cluster: reconcilers, webhooks, certificates, progress server, metrics, and their manager.

Where things are, in the order a TrainJob meets them:

    webhooks → admission          HTTP, and what is decided
    views                         what is kept in memory of each kind
    trainjob                      the reconcile: revision → plan → children → status
    revisions, applier, statuses  its three kinds of writes; `events` and `keys` beside them
    pruner, guard                 revisions nobody needs any more; runtimes that somebody does
    progress, tokens              reports of training code, and who may send them
    certificates → rotation       what the Secret should hold, and that it does; `serving` uses it
    metrics, lifecycle, endpoints what is told to Prometheus and to probes
    configuration, manager, run   the file, the wiring, the process
"""
