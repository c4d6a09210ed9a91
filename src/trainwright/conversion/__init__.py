"""Jobs of Training Operator v1 become TrainJobs, with a proof that their pods mean the same.

    v1job       reads a PyTorchJob, TFJob, MPIJob, XGBoostJob or JAXJob, with v1's defaults and rules
    v1pods      the pods that v1 would create for it
    layout      where each v1 pod goes: which replicated job, which index, under which host name
    conversion  the TrainJob and, where no shipped runtime can say it, a TrainingRuntime
    pods        the pods that the converted job gets, from the objects that the pipeline renders
    proof       both lists of pods compared: equal, means the same, or differs

Everything here is pure. What cannot be kept is a `Finding` that differs; the caller refuses the job unless the user
accepts it by name.
"""

from __future__ import annotations
