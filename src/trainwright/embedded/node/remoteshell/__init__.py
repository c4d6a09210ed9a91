"""ssh and sshd for pods that are processes of one machine: a stand-in for what the images of a cluster bring.

A launcher (`mpirun`, `pdsh`) starts its processes on other nodes by calling `ssh NODE COMMAND`. Pods of the local node
have no capabilities and cannot enter each other's namespaces, so nobody enters any:

    programs   writes the stand-ins `ssh` and `sshd` and puts them on a pod's PATH; keeps a directory for each job
    sshd       runs in the pod that is reached, where the runtime calls sshd: listens on a unix socket in the job's
               directory, and on the port that the readiness probe asks
    ssh        runs in the pod that reaches: hands command and standard streams to the other pod's sshd
    wire       what they say to each other, with file descriptors
    mpirun     stands before the real `mpirun` and fails when it left nodes out
    mpi        the variables by which every MPI finds its nodes here, and its way to them

No process outside the pods takes part, so training outlives the control plane: what must be alive is the pod that is
reached. The other modules are imported by programs inside pods: standard library only.
"""
