"""Every cause has a code, a mend, a paragraph in the troubleshooting page, and objects or lines that bring it about."""

from __future__ import annotations

import re
from pathlib import Path

from trainwright.pipeline.reasons.page import page
from trainwright.pipeline.reasons.table import AREAS, CAUSES

ROOT = Path(__file__).parents[4]


def test_there_is_one_row_for_each_code() -> None:
    rows = [cause for _, causes in AREAS for cause in causes]
    assert len(CAUSES) == len(rows) >= 30


def test_every_row_is_whole() -> None:
    for cause in CAUSES.values():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", cause.code), "a code is a Kubernetes reason"
        assert cause.summary[-1:] not in ("", "."), cause.code
        assert cause.meaning.endswith("."), cause.code
        assert cause.mend[-1:] not in ("", "."), cause.code


def test_the_troubleshooting_page_is_current() -> None:
    written = (ROOT / "docs/troubleshooting.md").read_text()
    assert written == page(), "write it anew with: make generate"


def test_every_cause_is_found_in_objects_or_lines_by_a_test() -> None:
    tests = "".join(
        path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_table.py"
    )
    missing = [code for code in CAUSES if f'"{code}"' not in tests]
    assert missing == []


LIVE = ("embedded/test_reasons.py", "embedded/test_causes.py", "kube/test_operator_reasons.py")
"""Where causes are brought about on the local cluster, and on a real control plane."""
OBJECTS = "its objects are written by hand in the tests of this folder: "
NOT_LIVE = {
    "GpuOutOfMemory": "needs a GPU: lines that users of GPUs published (test_logs.py)",
    "NcclError": "needs GPUs: lines that users of GPUs published (test_logs.py)",
    "CollectiveTimeout": "needs GPUs and ten minutes: lines that users of GPUs published (test_logs.py)",
    "SharedMemoryFull": "needs a container with a small /dev/shm; the local node gives each pod the machine's",
    "Straggler": OBJECTS + "two minutes of silence of one rank beside others",
    "TooLittleOfAResource": OBJECTS + "as TooLittleCpu, with another resource",
    "TooManyPods": OBJECTS + "needs a node that is full",
    "TaintNotTolerated": OBJECTS + "a taint on every node would stop the other tests of that control plane",
    "NodesClosed": OBJECTS + "cordoned nodes would stop the other tests of that control plane",
    "NoNodes": OBJECTS + "that control plane has nodes",
    "SchedulerAway": OBJECTS + "half a minute of silence",
    "Unschedulable": OBJECTS + "what a scheduler says that we do not know",
    "ContainerConfigInvalid": OBJECTS + "a kubelet writes it",
    "ImageNameInvalid": OBJECTS + "a kubelet writes it",
    "MountFailed": OBJECTS + "a kubelet writes it",
    "Evicted": OBJECTS + "a kubelet or the eviction API writes it, as NodeLost",
    "Preempted": OBJECTS + "as NodeLost, with another reason",
    "ProcessesLost": "tests/embedded/node: a supervisor is killed",
    "PodFailed": OBJECTS + "a kubelet's reason that we do not know",
    "KueueQueueMissing": OBJECTS + "as KueueQuota, with another condition",
    "KueueEvicted": OBJECTS + "as KueueQuota, with another condition",
    "KueueQueued": OBJECTS + "as KueueQuota, without a condition",
    "GangNeverFits": "tests/unit/embedded/workloads: the local scheduler says it",
    "VolcanoQueue": OBJECTS + "as GangWaits, with another phase",
    "CertificateExpired": OBJECTS + "the API server's words about a certificate of years ago",
    "WebhookRefused": OBJECTS + "the API server's words about a webhook of a stranger",
    "ServiceAccountMissing": OBJECTS + "the API server's words",
    "Forbidden": OBJECTS + "tests/kube/test_operator_credentials.py takes rights away",
    "PodsNotCreated": OBJECTS + "a refusal that we do not know",
    "RuntimeMissing": "tests/kube/test_operator_lifecycle.py: a job whose runtime comes later",
    "RuntimeNotSupported": "tests/unit/operator: admission refuses it before",
    "JobSetNotInstalled": "tests/unit/operator: the kind is not served for a while",
    "NameTaken": "tests/unit/operator/test_train_once.py: a stranger's object",
    "NameTooLong": OBJECTS + "admission refuses it before",
    "RuntimeInvalid": OBJECTS + "admission refuses it before",
    "PluginFailed": "tests/unit/operator: a plugin that raises",
    "WorkloadLost": "tests/unit/operator/test_train_once.py: a JobSet that nobody saw end",
    "OperatorAway": OBJECTS + "nobody acts for a quarter of a minute",
    "JobSetControllerAway": OBJECTS + "nobody acts for ten seconds",
    "NoPodsYet": "tests/kube/test_operator_reasons.py: status.message while why says QuotaExceeded",
    "NotBuilt": OBJECTS + "an error of the operator that we do not know",
}


def test_thirty_causes_and_more_are_brought_about_where_they_happen() -> None:
    tests = "".join((ROOT / "tests" / name).read_text() for name in LIVE)
    tests = tests.replace('"type": "Unschedulable"', "")  # a condition of Volcano
    live = {code for code in CAUSES if f'"{code}"' in tests}
    assert len(live) >= 30
    assert live | NOT_LIVE.keys() == CAUSES.keys(), "a cause has a live test, or a reason why it has none"
    assert sorted(live & NOT_LIVE.keys()) == [], "take its reason out: it has a live test now"
