"""The local cluster of this machine: started, stopped, saved; and the runs that are kept here.

up             starts and shows the control plane; `down` stops it
controlplane   the control plane, wired
nodes          the nodes that it shows this machine as
shipped        the CRDs and runtimes that it installs
keptport       sockets that are bound before their servers run
upkeep         what it does now and then
backup         its state as one file, and back
runs           `trainwright runs`
"""
