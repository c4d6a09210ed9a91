"""The body of a core/v1 Event.

In: an object, a reason, a message and the reporting component. Out: JSON for one `create`. Both timestamps are set,
since clients such as the Kubeflow SDK drop events without a first one. A message that is too long is shortened.
"""

from __future__ import annotations

from typing import Final, Literal

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.schema.jsonobject import Json

EventType = Literal["Normal", "Warning"]

LONGEST_MESSAGE: Final = 1024
LONGEST_NAME: Final = 200
"""How much of the object's name goes into the event's name. The rest of its 253 characters is for a unique suffix."""


def event_body(
    resource: Resource,
    about: ObjectMeta,
    *,
    suffix: str,
    type: EventType,
    reason: str,
    message: str,
    component: str,
    first: str,
    last: str,
    count: int = 1,
    action: str = "",
) -> Json:
    """An event about the object, named after it and `suffix`. Events about cluster-scoped objects are in `default`."""
    body: Json = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": f"{about.name[:LONGEST_NAME]}.{suffix}", "namespace": about.namespace or "default"},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        },
        "type": type,
        "reason": reason,
        "message": cut(message),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": first,
        "lastTimestamp": last,
        "count": count,
    }
    if action:
        body["action"] = action
    return body


def cut(message: str) -> str:
    """The message, shortened with an ellipsis when it is too long for an event."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 4]} ..."
