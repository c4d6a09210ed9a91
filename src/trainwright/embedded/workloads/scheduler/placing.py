"""Places pods on nodes in memory: where one fits best, whether a gang fits as a whole, whom to evict for it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler import fit
from trainwright.embedded.workloads.scheduler.cluster import Amounts, Cluster, NodeState, priority, requests
from trainwright.embedded.workloads.scheduler.fit import Against
from trainwright.embedded.workloads.scheduler.interpod import Neighbourhood


@dataclass(slots=True)
class Tried:
    """A try to place one pod: its node, or what was against each."""

    node: NodeState | None
    against: dict[str, Against]


def place(pod: ApiObject, cluster: Cluster, asked: Amounts | None = None) -> Tried:
    """The best node for the pod now. The cluster is not changed."""
    asked = asked if asked is not None else requests(pod)
    against: dict[str, Against] = {}
    candidates: list[NodeState] = []
    for state in cluster.nodes.values():
        found = fit.against(pod, asked, state)
        if found is None:
            candidates.append(state)
        else:
            against[state.name] = found
    if not candidates:
        return Tried(None, against)
    around = neighbourhood(pod, cluster)
    if around is not None:
        for state in list(candidates):
            reason = around.reason_against(state)
            if reason is not None:
                against[state.name] = Against((reason[0],), reason[1])
                candidates.remove(state)
    if not candidates:
        return Tried(None, against)
    best = max(candidates, key=lambda state: (_liking(pod, state, around), _room_after(state, asked)))
    return Tried(best, against)


def neighbourhood(pod: ApiObject, cluster: Cluster) -> Neighbourhood | None:
    """None when no pod has an opinion about its neighbours, which is how it usually is."""
    affinity = pod.spec.get("affinity") or {}
    cares = "podAffinity" in affinity or "podAntiAffinity" in affinity or pod.spec.get("topologySpreadConstraints")
    if not cares and not any("podAntiAffinity" in (other.spec.get("affinity") or {}) for _, other in cluster.pods()):
        return None
    eligible = [name for name, state in cluster.nodes.items() if fit.matches_labels(pod, state.node)]
    return Neighbourhood(pod, cluster, eligible)


def _liking(pod: ApiObject, state: NodeState, around: Neighbourhood | None) -> int:
    return fit.liking(pod, state.node) + (around.score(state) if around is not None else 0)


def _room_after(state: NodeState, asked: Amounts) -> float:
    """The share of the node that is left, as kube-scheduler prefers the least used one."""
    shares = [
        (state.free.get(name, 0) - asked.get(name, 0)) / state.allocatable[name]
        for name in ("cpu", "memory", "pods")
        if state.allocatable.get(name)
    ]
    return sum(shares) / len(shares) if shares else 0.0


def place_all(pods: list[ApiObject], cluster: Cluster) -> tuple[list[tuple[ApiObject, str]], dict[str, Tried]]:
    """Places pods one after the other into the cluster. Out: where each went, and the tries of those that did not."""
    placed: list[tuple[ApiObject, str]] = []
    left: dict[str, Tried] = {}
    for pod in pods:
        asked = requests(pod)
        tried = place(pod, cluster, asked)
        if tried.node is None:
            left[pod.metadata.uid] = tried
        else:
            tried.node.add(pod, asked)
            placed.append((pod, tried.node.name))
    return placed, left


def victims_for(pod: ApiObject, cluster: Cluster, tried: Tried) -> tuple[str, list[ApiObject]] | None:
    """The node where evicting the least makes room for the pod, and whom."""
    choices: list[tuple[tuple[int, int, int, str], str, list[ApiObject]]] = []
    for name, found in tried.against.items():
        if found.lasting:
            continue
        lower = [other for other in cluster.nodes[name].pods.values() if priority(other) < priority(pod)]
        if not lower:
            continue
        trial = cluster.copy()
        state = trial.nodes[name]
        for other in lower:
            state.remove(other)
        if not _fits(pod, trial, state):
            continue
        victims = []
        for other in sorted(lower, key=lambda other: (-priority(other), other.metadata.creation_timestamp or "")):
            state.add(other)
            if not _fits(pod, trial, state):
                state.remove(other)
                victims.append(other)
        ranks = [priority(victim) for victim in victims]
        choices.append(((max(ranks), sum(ranks), len(ranks), name), name, victims))
    if not choices:
        return None
    _, name, victims = min(choices, key=lambda choice: choice[0])
    return name, victims


def _fits(pod: ApiObject, cluster: Cluster, state: NodeState) -> bool:
    if fit.against(pod, requests(pod), state) is not None:
        return False
    around = neighbourhood(pod, cluster)
    return around is None or around.reason_against(state) is None


def victims_for_gang(pods: list[ApiObject], needed: int, rank: int, cluster: Cluster) -> list[ApiObject] | None:
    """The pods of lower priority to evict so that `needed` of these fit; None when no eviction helps."""
    lower = sorted(
        (other for _, other in cluster.pods() if priority(other) < rank),
        key=lambda other: (priority(other), _reverse(other.metadata.creation_timestamp or "")),
    )
    evicted: list[ApiObject] = []
    for other in lower:
        evicted.append(other)
        if _room_without(pods, needed, cluster, evicted):
            break
    else:
        return None
    for other in list(evicted):  # those whose going turned out not to be needed stay
        rest = [each for each in evicted if each is not other]
        if rest and _room_without(pods, needed, cluster, rest):
            evicted = rest
    return evicted


def _room_without(pods: list[ApiObject], needed: int, cluster: Cluster, gone: list[ApiObject]) -> bool:
    trial = cluster.copy()
    for state in trial.nodes.values():
        for other in gone:
            state.remove(other)
    placed, _ = place_all(pods, trial)
    return len(placed) >= needed


def _reverse(text: str) -> tuple[int, ...]:
    return tuple(-ord(char) for char in text)
