"""The Kubernetes API over HTTP.

    kubeconfig.load(path) → Connection → HttpTransport → Client
                                          (the seam)      get list watch create update apply patch delete logs raw

`errors` has the tree of errors; `requests` builds requests without I/O; `transport` is the interface that tests
replace.
"""

from trainwright.client.aio import HttpTransport
from trainwright.client.client import Client, ObjectList, WatchEvent
from trainwright.client.errors import (
    AlreadyExists,
    ApiError,
    ClientError,
    ConfigError,
    Conflict,
    DecodeError,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    RequestError,
    TooManyRequests,
    UnknownOutcome,
    Unreachable,
)
from trainwright.client.kubeconfig import Connection
from trainwright.client.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, DeleteOptions
from trainwright.client.transport import Transport

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "AlreadyExists",
    "ApiError",
    "Client",
    "ClientError",
    "ConfigError",
    "Conflict",
    "Connection",
    "DecodeError",
    "DeleteOptions",
    "Expired",
    "Forbidden",
    "HttpTransport",
    "Invalid",
    "NotFound",
    "ObjectList",
    "RequestError",
    "TooManyRequests",
    "Transport",
    "UnknownOutcome",
    "Unreachable",
    "WatchEvent",
]
