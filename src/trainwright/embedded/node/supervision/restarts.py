"""Whether an ended container is restarted, and when: a kubelet's rules.

In: restart policies, exit codes, how long the container ran. Out: decisions. Pure. Standard library only: the
supervisor imports this.
"""

from __future__ import annotations

from trainwright.embedded.node.pods.record import ContainerToRun

FIRST_BACK_OFF_SECONDS = 10.0
LONGEST_BACK_OFF_SECONDS = 300.0
FORGIVEN_AFTER_SECONDS = 2 * LONGEST_BACK_OFF_SECONDS
"""A container that ran this long begins with no back-off again."""


def is_sidecar(container: ContainerToRun, *, init: bool) -> bool:
    return init and container.get("restartPolicy") == "Always"


def is_restarted(container: ContainerToRun, pod_policy: str, exit_code: int, *, init: bool) -> bool:
    """Whether a container that ended with this code runs again. Its own rules come first, then its own policy, then
    the pod's. An init container that succeeded is finished under every policy, unless it is a sidecar.
    """
    for operator, codes in container.get("restartOnExitCodes", ()):
        if (exit_code in codes) == (operator == "In"):
            return True
    policy = container.get("restartPolicy", pod_policy)
    if policy == "Always" and init and not is_sidecar(container, init=init):
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


class BackOff:
    """The waits before a container's restarts: none before the first, then ten seconds, doubling up to five minutes."""

    def __init__(self) -> None:
        self._next = 0.0

    def seconds(self, ran: float) -> float:
        """The wait after a run of this many seconds."""
        if ran > FORGIVEN_AFTER_SECONDS:
            self._next = 0.0
        wait = self._next
        self._next = min(2 * wait, LONGEST_BACK_OFF_SECONDS) if wait else FIRST_BACK_OFF_SECONDS
        return wait
