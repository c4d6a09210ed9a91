"""A cluster made of files, for `render`, `validate` and `explain`.

In: documents, a namespace, a configuration file and feature gates. Out: the runtimes and TrainJobs among them, the
runtime that a TrainJob names (from the files, else from those that ship), and the answer that an API server with our
webhooks would give to each document.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.schema import schema_for
from trainwright.api.times import rfc3339
from trainwright.api.trainjob import RuntimeRef
from trainwright.cli.failure import Failure
from trainwright.cli.files.configured import framework_of
from trainwright.cli.files.documents import Document, parse, read
from trainwright.pipeline import Framework, Observed
from trainwright.pipeline.admission import Answer, Lookup, admit_runtime, admit_trainjob
from trainwright.pipeline.plan import MASK
from trainwright.schema.jsonobject import Json

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
TRAIN_JOB = "TrainJob"
RUNTIME_KINDS = ("TrainingRuntime", "ClusterTrainingRuntime")
V1 = "kubeflow.org/v1"
V1_KINDS = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob")
SHIPPED = Path(__file__).parent.parent.parent / "manifests" / "runtimes"


class Offline:
    """The objects of some files, and the rules to validate them by."""

    def __init__(self, documents: Sequence[Document], namespace: str, framework: Framework) -> None:
        self.framework = framework
        self.runtimes: list[Document] = []
        self.train_jobs: list[Document] = []
        self.ignored: list[Document] = []
        priority_classes = set()
        for document in documents:
            _check_version(document)
            if document.kind == TRAIN_JOB:
                self.train_jobs.append(_in_namespace(document, namespace))
            elif document.kind in RUNTIME_KINDS:
                in_namespace = document.kind == "TrainingRuntime"
                self.runtimes.append(_in_namespace(document, namespace) if in_namespace else document)
            elif document.kind == "PriorityClass":
                priority_classes.add(document.name)
            else:
                self.ignored.append(document)
        _check_unique([*self.runtimes, *self.train_jobs])
        self.observed = Observed(ca_certificate=MASK, priority_classes=frozenset(priority_classes))
        self.now = rfc3339(time.time())
        self._answers: dict[int, Answer] = {}

    @classmethod
    def of(
        cls,
        files: Sequence[str],
        namespace: str | None = None,
        config: str | None = None,
        feature_gates: str | None = None,
    ) -> Offline:
        """Reads all files."""
        return cls(read(files), namespace or "default", framework_of(config, feature_gates))

    def find_runtime(self, ref: RuntimeRef, namespace: str) -> Document | None:
        """The runtime that a TrainJob names: from the files, else from those that ship."""
        home = namespace if ref.kind == "TrainingRuntime" else ""
        for document in self.runtimes:
            place = document.value["metadata"].get("namespace", "") if home else ""
            if (document.kind, document.name, place) == (ref.kind, ref.name, home):
                return document
        return shipped_runtime(ref.name) if ref.kind == "ClusterTrainingRuntime" else None

    def answer_runtime(self, document: Document) -> Answer:
        """The answer of an API server to a runtime."""
        if id(document.value) not in self._answers:
            self._answers[id(document.value)] = admit_runtime(document.value, schema_for(document.kind))
        return self._answers[id(document.value)]

    def answer_train_job(self, document: Document, value: Json | None = None, old: Json | None = None) -> Answer:
        """The answer of an API server to a TrainJob, or to `value` as an update of `old`."""
        lookup = Lookup(self._typed_runtime, self.observed)
        new = document.value if value is None else value
        return admit_trainjob(new, old, schema_for(TRAIN_JOB), lookup, self.framework, self.now)

    def _typed_runtime(self, ref: RuntimeRef, namespace: str) -> TrainingRuntime | None:
        document = self.find_runtime(ref, namespace)
        if document is None:
            return None
        answer = self.answer_runtime(document)
        # A runtime that would be refused does not exist for a TrainJob. The reason is reported with the runtime.
        return None if answer.messages else runtime_from(answer.value)


def shipped_runtime(name: str) -> Document | None:
    """The shipped runtime of this name, which is also its file's name."""
    if name not in shipped_runtime_names():
        return None
    file = f"trainwright/manifests/runtimes/{name}.yaml"
    ((value, place),) = parse((SHIPPED / f"{name}.yaml").read_bytes(), file)
    return Document(file, 1, value, place)


def shipped_runtime_names() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _check_version(document: Document) -> None:
    """Refuses objects of our group that have an unknown kind or version. Objects of other groups pass."""
    version, where = document.value["apiVersion"], f"{document.file}:{document.place.line}"
    known = (TRAIN_JOB, *RUNTIME_KINDS)
    if version == V1 and document.kind in V1_KINDS:
        raise Failure(
            f"{where}: {document.title} is a job of Training Operator v1; make a TrainJob of it with: "
            f"trainwright convert {shlex.quote(document.file)}"
        )
    if version.split("/")[0] == GROUP and (version != API_VERSION or document.kind not in known):
        raise Failure(f"{where}: there is no {document.kind} in {version}; {API_VERSION} has {', '.join(known)}")
    if version.split("/")[0] != GROUP and document.kind in known:
        raise Failure(f"{where}: {document.kind} has apiVersion {API_VERSION}, not {version}")
    if document.kind in known:
        _check_metadata(document)


def _check_metadata(document: Document) -> None:
    """Refuses metadata that is not text. YAML reads unquoted numbers and booleans so, and no server can decode them."""
    metadata = document.value.get("metadata") or {}
    if not metadata.get("name"):
        raise Failure(f"{document.file}:{document.line('metadata')}: the {document.kind} has no metadata.name")
    texts = {f"metadata.{field}": metadata[field] for field in ("name", "namespace") if field in metadata}
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        if not isinstance(values, dict):
            raise Failure(f"{document.file}:{document.line(f'metadata.{field}')}: metadata.{field} must be a mapping")
        texts |= {f"metadata.{field}[{key}]": value for key, value in values.items()}
    for field, value in texts.items():
        if not isinstance(value, str):
            raise Failure(f"{document.file}:{document.line(field)}: {field} must be text: write {value!r} in quotes")


def _check_unique(documents: Sequence[Document]) -> None:
    seen: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        key = (document.kind, document.value["metadata"].get("namespace", ""), document.name)
        if key in seen:
            first = seen[key]
            raise Failure(
                f"{document.file}:{document.place.line}: {document.title} is given twice, "
                f"first at {first.file}:{first.place.line}"
            )
        seen[key] = document


def _in_namespace(document: Document, namespace: str) -> Document:
    metadata = document.value["metadata"]
    if metadata.get("namespace"):
        return document
    return document._replace(value={**document.value, "metadata": {**metadata, "namespace": namespace}})
