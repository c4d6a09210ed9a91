"""The live page: jobs, curves, topology, logs and history in a browser. A client of the API and of `runs`.

    site        one request: who asks, may the browser send this, which answer
    guard       Host, Origin, CSRF, and the sessions of viewers
    viewer      one viewer's connection: what the page shows is what the viewer may read
    picture     the TrainJobs, JobSets and pods of a viewer, kept current by three watches
    rows, jobpage, runtimes, clusterpage, history, objects   pure: objects and records → what a view shows
    evidence    what a user may read about one TrainJob, for its reason
    curves      the metrics of runs over time
    loglines    the output of a TrainJob's ranks, as it is written
    sse         server-sent events
    actions     suspend, resume, delete
    static/     the page itself: no build, two vendored libraries, one file for each view

Invariant: nothing is shown that the viewer's own credentials cannot read, and nothing changes without a CSRF token.
This file imports nothing, so that a command pays only for the modules it uses.
"""
