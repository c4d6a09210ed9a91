"""The tests of this suite that do not hold on the embedded control plane (`--embedded`), each with its reason.

Whole files that are about the real programs are left out; single tests are expected to fail, strictly: when one of them
begins to pass, it leaves this list.
"""

from __future__ import annotations

FILES = {
    "test_controlplane.py": "it is about the real control plane itself",
    "test_embedded_kcm.py": "it compares both servers already",
    "test_fuzz_compare.py": "it compares both servers already",
    "test_jobs_compare.py": "it compares both servers already",
    "test_jobset_admission_live.py": "it asks JobSet's own webhooks",
    "test_jobset_specs.py": "it brings API servers of its own",
    "test_jobsets_compare.py": "it compares both servers already",
    "test_kills.py": "it kills kube-apiserver; tests/embedded/test_interruption.py is its like",
    "test_kubectl_compare.py": "it compares both servers already",
    "test_operator_claims.py": "it needs JobSet's webhooks, which this suite's embedded plane does not register",
    "test_operator_reasons.py": "it is about what only a cluster has; tests/embedded/test_reasons.py is its like",
    "test_scheduling_compare.py": "it asks kube-scheduler",
    "test_podgroups_compare.py": "it compares both servers already",
    "test_run_command.py": "it starts real control planes of its own; tests/embedded/test_run_elsewhere.py is its like",
    "test_operator_zz_privileges.py": "it counts what the audit log of the server shows, and there is none",
}

TESTS = {
    "test_the_api_server_takes_it[dashboard]": "the embedded API server serves no Deployments",
    "test_the_api_server_takes_it[manager]": "the embedded API server serves no Deployments",
    "test_the_api_server_takes_it[progress]": "the embedded API server serves no Deployments",
    "test_client_side_apply_takes_it_too[dashboard]": "the embedded API server serves no Deployments",
    "test_client_side_apply_takes_it_too[manager]": "the embedded API server serves no Deployments",
    "test_client_side_apply_takes_it_too[progress]": "the embedded API server serves no Deployments",
    "test_a_patch_that_jobset_does_not_take_while_suspended_replaces_the_jobset": (
        "this suite's embedded plane does not register JobSet's webhooks, which refuse the patch"
    ),
    "test_who_may_edit_a_namespace_may_edit_its_trainjobs_and_who_may_view_it_may_view_them": (
        "the embedded control plane has neither Kubernetes' roles admin, edit and view nor"
        " the controller that joins roles"
    ),
}
