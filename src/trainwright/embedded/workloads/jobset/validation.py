"""What JobSet's webhook says about a JobSet, in its words: rules of a new one. Pure.

In: a JobSet with its defaults, the gates, and the claims of its namespace that have the names it would give. Out: field
errors; none means that it is admitted. Rules that JobSet has no field for are errors without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.jobset import volume_claims
from trainwright.schema.errors import ErrorType, FieldError, invalid, required, too_long
from trainwright.schema.gotext import plain_text, quote
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1035_label_faults, dns1123_subdomain_faults, label_value_faults

MAX_INT32 = 2**31 - 1
LONGEST_MANAGER = 63
LONGEST_CLAIM = 63
MOST_REPLICAS_TO_RESTART = 1024
LONGEST_RULE_NAME = 128

_TOO_LONG = "must be no more than 63 characters"
_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)


def faults_of_new(name: str, spec: Json, gates: Features, existing: Mapping[str, Json]) -> list[FieldError]:
    """The faults of a JobSet that is being created. `existing`: specs of claims, by name."""
    found: list[FieldError] = []
    policy = spec.get("failurePolicy")
    if policy and policy.get("restartStrategy") == "InPlaceRestart":
        text = "InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled"
        found.append(_plain(text))
    replicated_jobs: list[Json] = spec.get("replicatedJobs") or []
    if replicated_jobs and replicated_jobs[0].get("dependsOn") is not None:
        found.append(_plain("DependsOn can't be set for the first ReplicatedJob"))
    found += _network(spec.get("network") or {})
    found += _manager(spec.get("managedBy"))
    known: list[str] = []
    for position, replicated in enumerate(replicated_jobs):
        known.append(replicated.get("name", ""))
        found += _replicated_job(name, position, replicated, known)
    for target in (spec.get("successPolicy") or {}).get("targetReplicatedJobs") or ():
        if target not in known:
            found.append(_plain(f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"))
    if policy:
        found += _failure_policy(policy, replicated_jobs, known, gates)
    if spec.get("coordinator") is not None:
        found += _coordinator(name, spec, replicated_jobs)
    found += _claims(name, spec, replicated_jobs, existing)
    return found


def _plain(text: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, "", None, text)


def _network(network: Json) -> list[FieldError]:
    subdomain = network.get("subdomain")
    if not subdomain:
        return []
    where = "spec.network.subdomain"
    long = ".spec.network.subdomain is too long, must be less than 63 characters"
    faults = dns1123_subdomain_faults(subdomain) + _reworded(subdomain, long)
    return [invalid(where, subdomain, fault) for fault in faults]


def _reworded(name: str, too_long_text: str) -> list[str]:
    """The faults of a DNS label, with JobSet's own sentence for one that is too long."""
    return [too_long_text if _TOO_LONG in fault else fault for fault in dns1035_label_faults(name)]


def _manager(manager: str | None) -> list[FieldError]:
    if manager is None:
        return []
    where = "spec.managedBy"
    found = domain_prefixed_path_faults(where, manager)
    if len(manager.encode()) > LONGEST_MANAGER:
        found.append(too_long(where, LONGEST_MANAGER))
    return found


def domain_prefixed_path_faults(where: str, text: str) -> list[FieldError]:
    if not text:
        return [required(where)]
    host, _, path = text.partition("/")
    if not host or not path:
        return [invalid(where, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = [invalid(where, host, fault) for fault in dns1123_subdomain_faults(host)]
    if not re.fullmatch(_PATH, path):
        found.append(invalid(where, path, f"Invalid path (regex used for validation is '{_PATH}')"))
    return found


def _replicated_job(name: str, position: int, replicated: Json, known: list[str]) -> list[FieldError]:
    where = f"spec.replicatedJobs[{position}]"
    own, replicas = replicated.get("name", ""), replicated.get("replicas", 0)
    job = (replicated.get("template") or {}).get("spec") or {}
    parallelism = job.get("parallelism")
    found: list[FieldError] = []
    if (1 if parallelism is None else parallelism) * replicas > MAX_INT32:
        text = f"the product of replicas and parallelism must not exceed {MAX_INT32} for replicatedJob '{own}'"
        found.append(_plain(text))
    group = replicated.get("groupName", "")
    long = ".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
    found += [invalid(f"{where}.groupName", group, fault) for fault in _reworded(group, long)]
    job_name = f"{name}-{own}-{replicas - 1}"
    long = "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
    found += [invalid(f"{where}.name", job_name, fault) for fault in _reworded(job_name, long)]
    completions = job.get("completions")
    if job.get("completionMode") == "Indexed" and completions is not None:
        pod_name = f"{job_name}-{completions - 1}-abcde"
        long = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
        found += [invalid(f"{where}.name", job_name, fault) for fault in _reworded(pod_name, long)]
    for dependency in replicated.get("dependsOn") or ():
        on = dependency.get("name", "")
        if on not in known:
            found.append(_plain(f"replicatedJob: {own} cannot depend on replicatedJob: {on}"))
    return found


def _failure_policy(policy: Json, replicated_jobs: list[Json], known: list[str], gates: Features) -> list[FieldError]:
    rules: list[Json] = policy.get("rules") or []
    found: list[FieldError] = []
    if any(rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts") for rule in rules):
        if not gates.restart_job:
            text = "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when"
            return [_plain(f"{text} RestartJob feature gate is disabled")]
        if any(replicated.get("replicas", 0) > MOST_REPLICAS_TO_RESTART for replicated in replicated_jobs):
            text = "JobSet cannot have a failure policy rule with RestartJob or RestartJobAndIgnoreMaxRestarts action"
            found.append(_plain(f"{text} and a replicated job with replicas > {MOST_REPLICAS_TO_RESTART}"))
    positions: dict[str, list[int]] = {}
    for position, rule in enumerate(rules):
        name = rule.get("name", "")
        positions.setdefault(name, []).append(position)
        found += _rule_name(name)
        for target in rule.get("targetReplicatedJobs") or ():
            if target not in known:
                text = f"invalid replicatedJob name '{target}' in failure policy does not appear in"
                found.append(_plain(f"{text} .spec.ReplicatedJobs"))
        for reason in rule.get("onJobFailureReasons") or ():
            if reason not in _FAILURE_REASONS:
                text = f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason"
                found.append(_plain(text))
    for name, same in positions.items():
        if len(same) > 1:
            text = f"rule names are not unique, rules with indices {plain_text(same)} all have the same name '{name}'"
            found.append(_plain(text))
    return found


def _rule_name(name: str) -> list[FieldError]:
    found = []
    length = len(name.encode())
    if not 1 <= length <= LONGEST_RULE_NAME:
        text = f"invalid failure policy rule name of length {length}, the rule name must be at least 1 characters long"
        found.append(_plain(f"{text} and at most {LONGEST_RULE_NAME} characters long"))
    if not _RULE_NAME.fullmatch(name):
        text = f"invalid failure policy rule name '{name}', a failure policy rule name must start with an alphabetic"
        text += " character, optionally followed by a string of alphanumeric characters or '_,:', and must end with"
        found.append(_plain(f"{text} an alphanumeric character or '_'"))
    return found


def _coordinator(name: str, spec: Json, replicated_jobs: list[Json]) -> list[FieldError]:
    coordinator = spec["coordinator"]
    target = coordinator.get("replicatedJob", "")
    job_index, pod_index = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
    found = []
    fault = _coordinator_place(target, job_index, pod_index, replicated_jobs)
    if fault:
        found.append(_plain(fault))
    subdomain = (spec.get("network") or {}).get("subdomain") or name
    label = f"{name}-{target}-{job_index}-{pod_index}.{subdomain}"
    faults = label_value_faults(label)
    if faults:
        text = f"spec will lead to invalid label value {quote(label)} for coordinator label"
        text += ' "jobset.sigs.k8s.io/coordinator"'
        found.append(_plain(f"{text} (long JobSet / ReplicatedJob / SubDomain name?): {', '.join(faults)}"))
    return found


def _coordinator_place(target: str, job_index: int, pod_index: int, replicated_jobs: list[Json]) -> str | None:
    replicated = next((each for each in replicated_jobs if each.get("name") == target), None)
    if replicated is None:
        return f"coordinator replicatedJob {target} does not exist"
    if not 0 <= job_index < replicated.get("replicas", 0):
        return f"coordinator job index {job_index} is invalid for replicatedJob {target}"
    job = (replicated.get("template") or {}).get("spec") or {}
    completions = job.get("completions")
    if job.get("completionMode") != "Indexed" or completions is None:
        return "job for coordinator pod must be indexed completion mode, and completions number must be set"
    if not 0 <= pod_index < completions:
        return f"coordinator pod index {pod_index} is invalid for replicatedJob {target} job index {job_index}"
    return None


def _claims(name: str, spec: Json, replicated_jobs: list[Json], existing: Mapping[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for number, policy in enumerate(spec.get("volumeClaimPolicies") or ()):
        for position, template in enumerate(policy.get("templates") or ()):
            above = f"spec.volumeClaimPolicies[{number}]"
            where = f"{above}.template[{position}]"
            own = (template.get("metadata") or {}).get("name", "")
            if own in seen:
                found.append(invalid(f"{where}.name", own, "names must be unique for VolumeClaimPolicies template"))
            found += [invalid(f"{where}.name", own, fault) for fault in dns1123_subdomain_faults(own)]
            claim = volume_claims.claim_name(name, template)
            if len(claim.encode()) > LONGEST_CLAIM:
                found.append(invalid(f"{where}.name", own, "VolumeClaimPolicies template name is too long"))
            found += _mounts(replicated_jobs, own)
            if claim in existing:
                found += _existing_claim(above, where, policy, template, claim, existing[claim])
            seen.add(own)
    return found


def _existing_claim(above: str, where: str, policy: Json, template: Json, claim: str, there: Json) -> list[FieldError]:
    found = []
    namespace, spec = there.get("namespace", ""), template.get("spec") or {}
    if there.get("spec") != spec:
        text = f"spec does not match existing PVC {claim} in namespace {namespace}"
        found.append(invalid(f"{where}.spec", {"resources": {}, **spec}, text))
    kept = (policy.get("retentionPolicy") or {}).get("whenDeleted")
    if kept is not None and kept != "Retain":
        text = "retentionPolicy must be retain when PVC exists"
        found.append(invalid(f"{above}.retentionPolicy.whenDeleted", kept, text))
    return found


def _mounts(replicated_jobs: list[Json], claim: str) -> list[FieldError]:
    found: list[FieldError] = []
    mounted = False
    for position, replicated in enumerate(replicated_jobs):
        job = (replicated.get("template") or {}).get("spec") or {}
        pod = (job.get("template") or {}).get("spec") or {}
        for number, volume in enumerate(pod.get("volumes") or ()):
            if volume.get("name") == claim:
                where = f"spec.replicatedJobs[{position}].template.spec.template.spec.volumes[{number}].name"
                text = f"volume name conflicts with VolumeClaimPolicy template name: {claim}"
                found.append(invalid(where, claim, text))
        containers = (pod.get("initContainers") or []) + (pod.get("containers") or [])
        mounted = mounted or any(
            mount.get("name") == claim for container in containers for mount in container.get("volumeMounts") or ()
        )
    if not mounted:
        text = f"replicatedJob containers don't have a matching volumeMount: {claim} from VolumeClaimPolicies"
        found.append(invalid("spec.replicatedJobs", replicated_jobs, text))
    return found
