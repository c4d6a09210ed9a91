"""Images that cannot be pulled."""

from __future__ import annotations

from trainwright.pipeline.reasons.cause import Cause

NOT_PULLED = Cause(
    "ImagePull",
    "The image cannot be pulled",
    "The node asked the registry for the image and did not get it: the name or tag is wrong, the registry is private"
    " and the pod has no pull secret, or the registry cannot be reached.",
    "Correct the image's name, or give the pod its pull secret (imagePullSecrets)",
    "`docker pull IMAGE` from another machine tells the first two apart.",
)
INVALID = Cause(
    "ImageNameInvalid",
    "The image's name cannot be read",
    "What is given as the image is no name of an image.",
    "Correct trainer.image of the TrainJob, or the image of the runtime",
)
CAUSES = (NOT_PULLED, INVALID)
_BY_REASON = {
    "ErrImagePull": NOT_PULLED,
    "ImagePullBackOff": NOT_PULLED,
    "ErrImageNeverPull": NOT_PULLED,
    "RegistryUnavailable": NOT_PULLED,
    "ImageInspectError": NOT_PULLED,
    "SignatureValidationFailed": NOT_PULLED,
    "InvalidImageName": INVALID,
}


def cause_of(reason: str) -> Cause | None:
    """The cause, for a container's waiting reason that is about its image."""
    return _BY_REASON.get(reason)
