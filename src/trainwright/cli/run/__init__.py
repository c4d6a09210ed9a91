"""`trainwright run`: from what was typed to the end of the job.

command        checks what was typed, chooses or starts a cluster
making         creates the objects that `launch` prepared, records the run, and follows it
following      phases, lines, and how it ended
attempts       the attempts of a job that is started again after a failure
interruption   Ctrl-C and a closed terminal
recording      the record of the run
"""
