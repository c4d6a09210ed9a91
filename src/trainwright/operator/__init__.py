"""What runs in a cluster: reconcilers, webhooks, certificates, progress server, metrics, and their manager.

Where things are, in the order a TrainJob meets them; each folder's `__init__.py` says what is in it:

    admission/             its webhooks, and the decisions behind them
    stores/                what is kept in memory of our own kinds, and of those that plugins name
    trainjobs/             the reconcile: revision → plan → children → status
    runtimes/              runtimes as they were; those that nobody needs any more, and those that somebody does
    progress/              what training code reports
    certificates/          what the webhooks' Secret should hold, and that it does
    figures/               what is told to Prometheus
    logs, tracing          lines or JSON; spans of a reconcile
    serving/               what the HTTP servers share; probes; stacks and profiles; who may ask
    controllers, servers   what wakes each reconciler; where each HTTP server listens
    reloading              the plugins in force, and their files when they change
    configfile, settings, manager, run    the file, what follows from it, the wiring, the process
    incumbent, memory      another operator in the same cluster; memory that goes back after a burst
    upgrade/               what another version would do with the TrainJobs of a cluster
    fieldmanager           the name under which the operator writes
"""
