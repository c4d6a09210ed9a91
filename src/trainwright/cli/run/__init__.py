"""`trainwright run`: from what was typed to the end of the job.

command        checks what was typed, chooses or starts a cluster
making         creates the objects that `launch` prepared, records the run, and follows it
following      phases, lines, and how it ended
attempts       the attempts of a job that is started again after a failure
interruption   Ctrl-C and a closed terminal
recording      the record of the run
submit         `trainwright submit`, and `trainwright.submit` in Python
handingover    a run goes into the outbox, and to its cluster if that answers
lastseen       the runtimes of a cluster that may be away
delivering     what waits in the outbox goes to its cluster, each once, in order
"""
