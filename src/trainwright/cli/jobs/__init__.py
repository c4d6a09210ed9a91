"""The commands for TrainJobs in a cluster; those that follow one from its start are in `run`, `logs` in its own folder.

get        with `getwatch`, `tables`, and `runnable`: which runtimes can run here
describe   all about one object
why        the reason why a job failed or waits
events     what happened to it
wait       with `goals` and `jsonpaths`: what `--for` means
suspend    and resume
delete
chosen     the jobs that `delete`, `suspend` and `resume` act on
"""
