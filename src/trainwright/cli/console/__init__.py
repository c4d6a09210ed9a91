"""What commands print with. Knows nothing of clusters and jobs.

terminal     lines with a rank in front, phases, rows that change in place
livearea     those rows
output       objects as YAML or JSON
durations    a length of time for people
stopwatch    how long each part of a command took
nearness     `did you mean`
"""
