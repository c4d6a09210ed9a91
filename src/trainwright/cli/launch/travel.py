"""What goes along with a run to another cluster, and how the run finds it there.

    --env         a Secret; each variable refers to its key. Nothing else of the caller's environment travels
    --workdir     an immutable ConfigMap with a tar.gz, mounted, and unpacked into an empty volume before training
    output        $TRAINWRIGHT_OUTPUT: a directory of the run on the claim, or an empty volume that goes with the pod

The objects have the run's id as their name. They are created before the TrainJob, which needs them, and then owned by
it. `UNPACK` is all that runs before the program; it needs `sh`, and `tar` with gzip where a directory travels.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from trainwright.api.wellknown import RUN
from trainwright.cli.launch.archive import Archive
from trainwright.schema.jsonobject import Json

CODE, WORK, OUTPUT = "trainwright-code", "trainwright-work", "trainwright-output"
ROOT = "/trainwright"
ARCHIVE = "workdir.tar.gz"
UNPACK = (
    'mkdir -p "$TRAINWRIGHT_OUTPUT" && '
    'if [ -n "$TRAINWRIGHT_CODE" ]; then '
    'tar -xzf "$TRAINWRIGHT_CODE" -C "$TRAINWRIGHT_WORKDIR" && cd "$TRAINWRIGHT_WORKDIR"; fi && '
    'exec "$@"'
)


class Luggage(msgspec.Struct, frozen=True, kw_only=True):
    """All that goes along with one run. `job` and `container` are the runtime's that train."""

    run: str
    job: str
    container: str = "node"
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    archive: Archive | None = None
    output_claim: str | None = None

    @property
    def command(self) -> list[str]:
        """The words before the program's own."""
        return ["sh", "-c", UNPACK, "trainwright"]

    def env(self) -> list[Json]:
        """The variables of the container."""
        output = f"{ROOT}/output/{self.run}" if self.output_claim else f"{ROOT}/output"
        plain = {"TRAINWRIGHT_OUTPUT": output}
        if self.archive is not None:
            plain |= {"TRAINWRIGHT_CODE": f"{ROOT}/code/{ARCHIVE}", "TRAINWRIGHT_WORKDIR": f"{ROOT}/work"}
        secret: list[Json] = [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": self.run, "key": name}}} for name in self.variables
        ]
        return [{"name": name, "value": value} for name, value in plain.items() if name not in self.variables] + secret

    def patch(self) -> Json:
        """The runtime patch that mounts what goes along."""
        claim = {"persistentVolumeClaim": {"claimName": self.output_claim}}
        volumes: list[Json] = [{"name": OUTPUT, **(claim if self.output_claim else {"emptyDir": {}})}]
        mounts: list[Json] = [{"name": OUTPUT, "mountPath": f"{ROOT}/output"}]
        if self.archive is not None:
            volumes += [{"name": CODE, "configMap": {"name": self.run}}, {"name": WORK, "emptyDir": {}}]
            mounts += [
                {"name": CODE, "mountPath": f"{ROOT}/code", "readOnly": True},
                {"name": WORK, "mountPath": f"{ROOT}/work"},
            ]
        pod = {"volumes": volumes, "containers": [{"name": self.container, "volumeMounts": mounts}]}
        jobs = [{"name": self.job, "template": {"spec": {"template": {"spec": pod}}}}]
        return {"manager": RUN, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}

    def objects(self) -> list[Json]:
        """The Secret and the ConfigMap, where there is something for them."""
        metadata: Json = {"name": self.run, "labels": {RUN: self.run}}
        found: list[Json] = []
        if self.variables:
            data = {name: base64.b64encode(value.encode()).decode() for name, value in self.variables.items()}
            found.append({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data, "immutable": True})
        if self.archive is not None:
            content = base64.b64encode(self.archive.content).decode()
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": metadata,
                    "binaryData": {ARCHIVE: content},
                    "immutable": True,
                }
            )
        return found
