"""What of this suite does not hold on the embedded control plane (`--embedded`), each with its reason.

Whole files that are about the real programs are left out; single tests are expected to fail, strictly: when one of them
begins to pass, it leaves this list.
"""

from __future__ import annotations

FILES = {
    "test_controlplane.py": "it is about the real control plane itself",
    "test_embedded_kcm.py": "it compares both servers already",
    "test_kubectl_compare.py": "it compares both servers already",
}

TESTS = {
    "test_a_patch_that_jobset_does_not_take_while_suspended_replaces_the_jobset": (
        "the embedded JobSet has no webhook of its own that refuses the patch"
    ),
}
