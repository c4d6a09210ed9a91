"""The recorder: keeps the records of the local cluster's runs true.

An ordinary controller and client of the API. A TrainJob passes through these modules:

    objects     the parts of TrainJobs, JobSets, pods and events that a record is made of
    judgement   pure: what the record of a run says, given its TrainJob, its restarts and its pods
    chronicle   which Kubernetes events belong to a run, each written once
    bars        pure: what the progress bars of common libraries say
    barreader   reads them in the logs of running jobs, and reports what they say as the training code would
    recorder    the controller: follows, writes, and settles at its start what happened while it was away

Invariants: a record never says more than the API showed; an end is written once and stays; the control plane may die at
any line, and the next recorder arrives at the same records.
"""
