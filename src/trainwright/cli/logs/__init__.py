"""The output of ranks: from the pods' logs, or from the directory of a run, to lines on a screen.

lines       all ranks of a live job, merged
kept        the lines of a run that is over
assembly    pieces of a log, put together to lines
selection   which lines are wanted
folding     equal lines of many ranks, once
audience    who hears them: a person, or a program that reads JSON
command     `trainwright logs`
"""
