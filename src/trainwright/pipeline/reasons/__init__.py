"""Why a TrainJob failed or waits, and what to do about it: one sentence, from the objects that are given.

    reason_of(Evidence(job=…, pods=…))   → Reason(code, headline, mend, rank, details, chain), or None

Files:

    cause        Cause, a row of the table; Finding, a cause that was met
    evidence     the objects that a reason is found in
    reason       the function itself, and which finding counts
    chain        TrainJob → JobSet → Job → Pod → node, claim, queue
    jobs         what keeps the operator from going on
    queues       Kueue, Volcano, gangs
    webhooks     what the API server refuses: webhooks, quotas, limits, rights
    scheduling   pods without a node
    volumes      claims and mounts
    images       images that cannot be pulled
    waiting      pods that have a node and do not run well there
    failures     pods that failed
    signals      exit codes and signals
    logs         what a container's lines say; logcauses has the expressions, tracebacks the exceptions
    quiet        hangs and stragglers
    ranks        which rank printed a line
    sentences    what a job does, or waits for, as one sentence
    table        all causes, for the troubleshooting page

The names below are what others use.
"""

from trainwright.pipeline.reasons.cause import Cause as Cause
from trainwright.pipeline.reasons.cause import Finding as Finding
from trainwright.pipeline.reasons.chain import Link as Link
from trainwright.pipeline.reasons.evidence import Evidence as Evidence
from trainwright.pipeline.reasons.reason import Reason as Reason
from trainwright.pipeline.reasons.reason import message_of as message_of
from trainwright.pipeline.reasons.reason import reason_of as reason_of
