"""Required and preferred affinity and anti-affinity between pods, and topology spread. Pure.

In: a pod and the cluster. Out: a `Neighbourhood`, computed once for the pod, that says of each node whether the rules
hold there, in kube-scheduler's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler.cluster import Cluster, NodeState
from trainwright.schema.jsonobject import Json
from trainwright.schema.selectors import LabelSelector, SelectorError, selector_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = f"{SPREAD} (missing required label)"

Domain = tuple[str, str]


class Term:
    """One affinity term of a pod: which pods it means, and in which topology."""

    def __init__(self, owner: ApiObject, term: Json, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self.key: str = term.get("topologyKey", "")
        selector = term.get("labelSelector")
        self._selector = _selector(with_keys(selector, term, owner)) if selector is not None else None
        self._names = set(term.get("namespaces") or ())
        by_label = term.get("namespaceSelector")
        self._by_label = _selector(by_label) if by_label is not None else None
        if not self._names and by_label is None:
            self._names = {owner.metadata.namespace}
        self._namespaces = namespaces

    def means(self, pod: ApiObject) -> bool:
        namespace = pod.metadata.namespace
        if namespace not in self._names:
            if self._by_label is None:
                return False
            if not self._by_label.everything and not self._by_label.matches(self._namespaces.get(namespace, {})):
                return False
        return self._selector is not None and self._selector.matches(pod.metadata.labels or {})


def _selector(value: Json) -> LabelSelector | None:
    try:
        return selector_of(value)
    except SelectorError:
        return None


def with_keys(selector: Json, term: Json, owner: ApiObject) -> Json:
    """The selector with the labels that `matchLabelKeys` take from the pod itself."""
    labels = owner.metadata.labels or {}
    more = [
        {"key": key, "operator": "In", "values": [labels[key]]}
        for key in term.get("matchLabelKeys") or ()
        if key in labels
    ]
    more += [
        {"key": key, "operator": "NotIn", "values": [labels[key]]}
        for key in term.get("mismatchLabelKeys") or ()
        if key in labels
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *more]} if more else selector


def terms(pod: ApiObject, kind: str, cluster: Cluster) -> list[Term]:
    rules = ((pod.spec.get("affinity") or {}).get(kind) or {}).get(REQUIRED) or ()
    return [Term(pod, term, cluster.namespaces) for term in rules]


def preferred(pod: ApiObject, cluster: Cluster) -> list[tuple[int, Term]]:
    """Terms that the pod would like, with their weights; negative for those that it would rather avoid."""
    found = []
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        rules = ((pod.spec.get("affinity") or {}).get(kind) or {}).get(PREFERRED) or ()
        for rule in rules:
            term = Term(pod, rule.get("podAffinityTerm") or {}, cluster.namespaces)
            found.append((sign * int(rule.get("weight", 0)), term))
    return found


class Neighbourhood:
    """Where other pods let this one go."""

    def __init__(self, pod: ApiObject, cluster: Cluster, eligible: Iterable[str]) -> None:
        self._near = terms(pod, "podAffinity", cluster)
        self._away = terms(pod, "podAntiAffinity", cluster)
        self._near_domains: set[Domain] = set()
        self._away_domains: set[Domain] = set()
        self._kept_out: set[Domain] = set()
        self._scores: dict[Domain, int] = {}
        liked = preferred(pod, cluster)
        for state, other in cluster.pods():
            if self._near and all(term.means(other) for term in self._near):
                self._near_domains |= _domains(state, self._near)
            self._away_domains |= _domains(state, [term for term in self._away if term.means(other)])
            if "affinity" in other.spec:
                theirs = [term for term in terms(other, "podAntiAffinity", cluster) if term.means(pod)]
                self._kept_out |= _domains(state, theirs)
            for weight, term in liked:
                if term.means(other):
                    for domain in _domains(state, [term]):
                        self._scores[domain] = self._scores.get(domain, 0) + weight
        # The first pod of a group that is to stay together has nobody to stay with.
        self._is_first = not self._near_domains and all(term.means(pod) for term in self._near)
        self._spread = [
            _Constraint(pod, constraint, cluster, eligible)
            for constraint in pod.spec.get("topologySpreadConstraints") or ()
        ]

    def reason_against(self, state: NodeState) -> tuple[str, bool] | None:
        """Why the node will not do, and whether that would be the same without the pods there."""
        for constraint in self._spread:
            if constraint.hard and constraint.key not in state.labels:
                return SPREAD_LABEL, True
        if any(constraint.hard and constraint.skew(state) > constraint.most for constraint in self._spread):
            return SPREAD, False
        for term in self._near:
            value = state.labels.get(term.key)
            if value is None or not (self._is_first or (term.key, value) in self._near_domains):
                return AFFINITY, True
        if _domains(state, self._away) & self._away_domains:
            return ANTI_AFFINITY, False
        if any((key, value) in self._kept_out for key, value in state.labels.items()):
            return EXISTING_ANTI_AFFINITY, False
        return None

    def score(self, state: NodeState) -> int:
        liked = sum(self._scores.get(domain, 0) for domain in state.labels.items()) if self._scores else 0
        soft = [constraint for constraint in self._spread if not constraint.hard]
        return liked - sum(constraint.skew(state) for constraint in soft if constraint.key in state.labels)


def _domains(state: NodeState, found: Iterable[Term]) -> set[Domain]:
    return {(term.key, state.labels[term.key]) for term in found if term.key in state.labels}


class _Constraint:
    """One topology spread constraint: how many pods it counts in each domain."""

    def __init__(self, pod: ApiObject, constraint: Json, cluster: Cluster, eligible: Iterable[str]) -> None:
        self.key: str = constraint.get("topologyKey", "")
        self.most = int(constraint.get("maxSkew", 1))
        self.hard = constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        selector = _selector(with_keys(constraint.get("labelSelector") or {}, constraint, pod))
        counts_none = constraint.get("labelSelector") is None or selector is None
        self._counts: dict[str, int] = {}
        honours = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        allowed = set(eligible) if honours else set(cluster.nodes)
        for state in cluster.nodes.values():
            value = state.labels.get(self.key)
            if value is None or state.name not in allowed:
                continue
            here = 0
            if not counts_none and selector is not None:
                here = sum(
                    other.metadata.namespace == pod.metadata.namespace
                    and not other.is_being_deleted
                    and selector.matches(other.metadata.labels or {})
                    for other in state.pods.values()
                )
            self._counts[value] = self._counts.get(value, 0) + here
        enough = len(self._counts) >= int(constraint.get("minDomains", 1))
        self._least = min(self._counts.values(), default=0) if enough else 0
        counts_itself = not counts_none and selector is not None and selector.matches(pod.metadata.labels or {})
        self._itself = int(counts_itself)

    def skew(self, state: NodeState) -> int:
        return self._counts.get(state.labels.get(self.key, ""), 0) + self._itself - self._least
