"""The cluster that a command acts on.

target       the local cluster, or another that a kubeconfig names
directory    the directory of the local one, with all of its state
connection   the asynchronous part of a command, with messages for errors of the API server
diskspace    how much room the local one has
leftbehind   runs that lost their follower: the next command says so
"""
