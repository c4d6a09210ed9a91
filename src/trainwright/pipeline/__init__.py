"""The pure core: `TrainJob + runtime + what exists → desired objects + status`. No I/O, no clock, no randomness.

Three functions drive the operator:

    workload = workload_of(job, found, framework)              # which object runs the job, and what became of it
    plan = build(job, runtime, observed, framework, keys)      # the objects to write, in order
    update = status(job, workload.status, now, …)              # TrainJob.status, and when to look again

`job` and `runtime` are the typed objects of `trainwright.api`, as the API server defaulted them; neither is ever
changed. `found` are the objects of the TrainJob's name, `observed` is what exists (`Observed`), `framework` the
ordered plugins (`trainwright.plugins.load`), `keys` the source of secrets (`KeyMaterial`). All three raise
`PipelineError` only, whose text is for the user; `runtime_kind(ref)` says which kind of runtime a TrainJob names, or
raises.

Files, in the order a TrainJob meets them:

    mutation      what admission changes before it judges
    validation    the rules between a TrainJob and its runtime, in the reference's words
    admission     all of an API server's answer, offline
    generations   podSpecOverrides, podTemplateOverrides and runtimePatches as one kind of patch, and how it merges
    sparse        a template as its typed object would be written
    info          the state of one build: template, pod sets, counts, resources
    podset        views into the template: replicatedJobs and containers
    resources     how many devices a node has, how much a pod asks for
    framework     the eight extension points, and the phases of a build
    steps         what the TrainJob says of its trainer and initializers, for the plugin that builds the workload
    build         the whole way from TrainJob to plan
    plan          Observed and KeyMaterial in, Plan out
    ownership     what makes an object a TrainJob's
    workload      the object that runs the pods, in general terms: Watch, WorkloadStatus
    observation   which object is the workload, and which plugin reports it
    status        WorkloadStatus → TrainJob.status
    provenance    who set which field
    explanation   every field of the rendered objects with its origin
    typed         values inside messages, as the reference prints them
"""

from trainwright.pipeline.build import build as build
from trainwright.pipeline.build import runtime_kind as runtime_kind
from trainwright.pipeline.errors import NameTaken as NameTaken
from trainwright.pipeline.errors import PipelineError as PipelineError
from trainwright.pipeline.errors import PluginFailed as PluginFailed
from trainwright.pipeline.errors import RuntimeNotFound as RuntimeNotFound
from trainwright.pipeline.errors import RuntimeNotSupported as RuntimeNotSupported
from trainwright.pipeline.errors import TemplateInvalid as TemplateInvalid
from trainwright.pipeline.errors import TwoWorkloads as TwoWorkloads
from trainwright.pipeline.errors import WorkloadLost as WorkloadLost
from trainwright.pipeline.errors import WorkloadUnknown as WorkloadUnknown
from trainwright.pipeline.framework import Framework as Framework
from trainwright.pipeline.framework import NamedWatch as NamedWatch
from trainwright.pipeline.observation import workload_of as workload_of
from trainwright.pipeline.ownership import owner_reference as owner_reference
from trainwright.pipeline.plan import Apply as Apply
from trainwright.pipeline.plan import CreateOnce as CreateOnce
from trainwright.pipeline.plan import KeyMaterial as KeyMaterial
from trainwright.pipeline.plan import MaskedKeys as MaskedKeys
from trainwright.pipeline.plan import ObjectName as ObjectName
from trainwright.pipeline.plan import Observed as Observed
from trainwright.pipeline.plan import Plan as Plan
from trainwright.pipeline.plan import Repair as Repair
from trainwright.pipeline.status import StatusUpdate as StatusUpdate
from trainwright.pipeline.status import status as status
from trainwright.pipeline.workload import Watch as Watch
from trainwright.pipeline.workload import Workload as Workload
from trainwright.pipeline.workload import WorkloadStatus as WorkloadStatus
from trainwright.pipeline.workload import end_of as end_of
