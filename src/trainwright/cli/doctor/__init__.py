"""`trainwright doctor`: is this machine, or a cluster, ready for training? Each finding comes with what mends it.

finding    one line: what was looked at, how it is, and what to do
machine    Python, isolation, ports, disk, memory, GPUs of this machine
cluster    CRDs, rights, webhooks and their certificates, operator, JobSet, nodes of a cluster
command    the command
"""
