"""The runtimes of TrainJobs: kept as they were (`revisions`), pruned when unneeded (`pruner`), guarded while needed."""
