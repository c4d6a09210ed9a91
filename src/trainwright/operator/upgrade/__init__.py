"""What this version would do with the TrainJobs and runtimes of a cluster, and what cannot go back.

check.py        reads the cluster, and asks the API server by dry runs; changes nothing
returning.py    pure: what Kubeflow Trainer could not go on with
findings.py     the words for what is found
"""
