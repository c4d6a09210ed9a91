"""The command line: the only package that reads flags, files and the environment, and wires objects together.

`entry` and `main` find the command that was typed: `commands` has the table, `arguments` the parser, `completion` what
shells ask. `main` imports a command's module only when it is called, so that `trainwright render` loads no HTTP client.
Each folder's docstring lists its modules:

run          runs something to its end          launch    makes a TrainJob of a script or a file
jobs         get, describe, why, wait …         logs      the output of ranks
ranks        top, exec, cp, port-forward        files     render, validate, explain …
machine      up, down, runs, backup             doctor    is this machine, or this cluster, ready?
operations   plugins, initialize, operator

jobview, clusters and console are what commands are made of: a job's state in words, the cluster they act on, and the
screen. Exit codes: 0 success, 1 refused or failed, 2 wrong usage.
"""
