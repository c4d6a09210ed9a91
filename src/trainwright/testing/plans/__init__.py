"""Fault plans: a workload, a seed and the faults it meets, as one line; run in virtual time and judged by one oracle.

    python -m trainwright.testing.plans 'W4 0 unheard@3'        run one plan
    python -m trainwright.testing.plans --all                   run all, and print a table

`plan` is the line, `workloads` what users do, `stage` the server and the operators it is played on, `cast` whoever else
acts in a cluster, `lens` what an operator sees of it, `play` runs a plan, `verdict` judges it against an undisturbed
run, `window` knows the one window in which a job may train twice, `generator` makes the plans of a workload from
its writes.
"""
