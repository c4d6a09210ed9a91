"""Volumes with the content of ConfigMaps and Secrets: changes reach running pods, as a kubelet brings them.

In: a running pod, and what the ConfigMaps and Secrets that its volumes name hold now. Out: the volume's files, replaced
all at one moment. Looked at every half a minute. Files that a container has mounted one by one (subPath) stay as they
are, as in a cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from trainwright.controlloop import Clock
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec.environment import Facts, Sources, Unresolved
from trainwright.embedded.node.storage import volumes
from trainwright.embedded.node.storage.tokens import token_sources
from trainwright.schema.jsonobject import Json

LOOK_SECONDS = 30.0


class Content:
    """The content of this node's pods' volumes. `fetch` gets the ConfigMaps and Secrets of a pod."""

    def __init__(
        self,
        fetch: Callable[[Json], Awaitable[Sources]],
        in_thread: Callable[..., Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._fetch = fetch
        self._in_thread = in_thread
        self._clock = clock
        self._looked_at: dict[str, float] = {}

    def started(self, uid: str) -> None:
        """The pod has been started with the content of now."""
        self._looked_at[uid] = self._clock.wall()

    def forget(self, uid: str) -> None:
        self._looked_at.pop(uid, None)

    async def refresh(self, pod: Json, directory: PodDirectory, facts: Facts) -> float:
        """Brings the files up to date if it is time to. Returns the seconds until it is again, infinite if never."""
        if not volumes.has_files(pod):
            return float("inf")
        now, uid = self._clock.wall(), directory.uid
        due = self._looked_at.get(uid, 0.0) + LOOK_SECONDS  # one that was adopted is looked at now
        if now < due:
            return due - now
        self._looked_at[uid] = now
        await self._in_thread(_replace_changed, pod, directory.volumes, await self._fetch(pod), facts)
        return LOOK_SECONDS


def _replace_changed(pod: Json, directory: Path, sources: Sources, facts: Facts) -> None:
    # Claims and hostPaths have no files of ours; they need not be there for this.
    with_files = [volume for volume in pod["spec"].get("volumes") or () if volumes.has_own_files(volume)]
    shown = {**pod, "spec": {**pod["spec"], "volumes": with_files}}
    try:
        wanted = volumes.volumes(shown, directory, sources, facts, _present_tokens(shown, directory))
    except Unresolved:
        return  # deleted while the pod runs: it keeps what it has
    for volume in wanted.values():
        if _content(volume.path) != volume.files:
            volumes.replace_files(volume.path, volume.files)


def _content(path: Path) -> dict[str, volumes.File]:
    """The volume's present files."""
    real = (path / volumes.DATA).resolve()
    return {
        str(file.relative_to(real)): volumes.File(file.read_bytes(), file.stat().st_mode & 0o7777)
        for file in real.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


def _present_tokens(pod: Json, directory: Path) -> dict[str, str]:
    """The tokens that are in the pod's volumes now: they are renewed elsewhere."""
    found = {}
    for source in token_sources(pod):
        file = directory / source.volume / source.path
        if file.exists():
            found[source.key] = file.read_text()
    return found
