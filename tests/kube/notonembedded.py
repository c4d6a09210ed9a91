"""What of this suite does not hold on the embedded control plane (`--embedded`), each with its reason.

Whole files that are about the real programs are left out; single tests are expected to fail, strictly: when one of them
begins to pass, it leaves this list.
"""

from __future__ import annotations

FILES = {
    "test_controlplane.py": "it is about the real control plane itself",
    "test_embedded_kcm.py": "it compares both servers already",
    "test_fuzz_compare.py": "it compares both servers already",
    "test_kubectl_compare.py": "it compares both servers already",
    "test_operator_claims.py": "the embedded JobSet takes no volumeClaimPolicies",
    "test_operator_zz_privileges.py": "it counts what the audit log of the server shows, and there is none",
}

TESTS = {
    "test_the_api_server_takes_it[manager]": "the embedded API server serves no Deployments",
    "test_the_api_server_takes_it[progress]": "the embedded API server serves no Deployments",
    "test_client_side_apply_takes_it_too[manager]": "the embedded API server serves no Deployments",
    "test_client_side_apply_takes_it_too[progress]": "the embedded API server serves no Deployments",
    "test_a_patch_that_jobset_does_not_take_while_suspended_replaces_the_jobset": (
        "the embedded JobSet has no webhook of its own that refuses the patch"
    ),
}
