"""What runs in a cluster: reconcilers, webhooks, certificates, progress server, metrics, and their manager.

Where things are, in the order a TrainJob meets them:

    webhooks → admission          HTTP, and where the objects are found that the pipeline judges by
    views, kinds                  what is kept in memory of our own kinds, and of those that plugins name
    trainjob                      the reconcile: revision → plan → children → status
    converged, ending             whether there is anything to write, and what follows the job's end
    revisions, applier, statuses  its three kinds of writes; `events` and `keys` beside them
    pruner, guard                 revisions nobody needs any more; runtimes that somebody does
    progress, reports, tokens     what training code reports, and who may
    certificates → rotation       what the Secret should hold, and that it does; `serving` uses it
    metrics, lifecycle, endpoints what is told to Prometheus and to probes
    controllers, servers          what wakes each reconciler; where each HTTP server listens
    reloading                     the plugins in force, and their files when they change
    configfile, settings, manager, run    the file, what follows from it, the wiring, the process
"""
