"""The kubelet of this machine: runs the pods bound to its node as processes and reports their state as pod status.

In: pods of this node by watch, changes of supervisors' records by pipe. Out: supervisors, /etc/hosts files, pod
status, and the final DELETE of a pod whose processes have ended. A reconcile of one pod:

    end orphans of this name → if the pod is being deleted, end and delete it → if it is new, start it → write its
    record as status

Invariants: a pod UID is started at most once; a pod is deleted from the API only when nothing of it runs; the control
plane may die at any line, and the next one continues from the directories.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import CONFIG_MAPS, PODS, SECRETS
from trainwright.api.times import rfc3339, seconds_of
from trainwright.client import Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Done, Key, Outcome, Source
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.node.network.addresses import LOOPBACK, Addresses, PodDomain, PodName, Ports, host_aliases
from trainwright.embedded.node.network.hostsfiles import HostsFiles
from trainwright.embedded.node.pods.directories import HUNG_SECONDS, Observation, PodDirectories
from trainwright.embedded.node.pods.happenings import Happenings
from trainwright.embedded.node.pods.quiet import DEFAULT_SECONDS, Condition, QuietPods
from trainwright.embedded.node.pods.record import PodDirectory, PodRecord, PodToRun
from trainwright.embedded.node.pods.spawning import StartFailed
from trainwright.embedded.node.pods.status import Reporter, with_condition
from trainwright.embedded.node.podspec import launch, support
from trainwright.embedded.node.podspec.declarations import declared
from trainwright.embedded.node.podspec.environment import Facts, Sources, Unresolved, references
from trainwright.embedded.node.podspec.launch import Allocation, Launch
from trainwright.embedded.node.podspec.runs import RunOfPod, Runs
from trainwright.embedded.node.remoteshell.programs import Shell, Shells
from trainwright.embedded.node.resources.allotment import Allotments, NoneLeft
from trainwright.embedded.node.storage import volumes
from trainwright.embedded.node.storage.claimed import ClaimedDirectories, Unbound
from trainwright.embedded.node.storage.claims import claims_of
from trainwright.embedded.node.storage.content import Content
from trainwright.embedded.node.storage.tokens import PodTokens, Token, account_of, token_sources
from trainwright.embedded.node.supervision import cgroups
from trainwright.embedded.node.supervision.cgroups import Delegation
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)


UNRESOLVED_RETRY_SECONDS = 2.0
UNBOUND_RETRY_SECONDS = 0.25
BEGIN_SECONDS = 0.2
"""How long a pod that has been started may go without a status, so that the first one says that it runs."""

LIVENESS_SECONDS = 60.0 if hasattr(os, "pidfd_open") else 2.0
"""How often a running pod is checked. With pidfds this is a safety net; without them it finds dead supervisors."""
ORPHAN_GRACE_SECONDS = 2.0
"""For processes whose pod was deleted by force: its own grace period is gone with the object."""


class Pod(msgspec.Struct, frozen=True):
    """A pod in the store: typed metadata, spec and status as JSON."""

    metadata: ObjectMeta
    spec: Json = {}
    status: Json = {}

    def as_json(self) -> Json:
        return {"metadata": msgspec.to_builtins(self.metadata), "spec": self.spec, "status": self.status}

    @property
    def is_finished(self) -> bool:
        return self.status.get("phase") in ("Succeeded", "Failed")


BY_DOMAIN = "domain"


def pods_of_nodes(names: Sequence[str]) -> Source[Pod]:
    """The pods bound to the node or, if this machine is shown as several, to any: there are no others then."""
    selector = f"spec.nodeName={names[0]}" if len(names) == 1 else "spec.nodeName!="
    return Source(PODS, Pod, field_selector=selector, indexes={BY_DOMAIN: _domain_index})


def _domain(pod: Pod) -> PodDomain:
    return launch.domain_of(pod.as_json())


def _domain_index(pod: Pod) -> list[str]:
    return ["/".join(_domain(pod))]


class Kubelet:
    """The pods of one node. Call `adopt` before the controller calls `reconcile`."""

    def __init__(
        self,
        client: Client,
        pods: Source[Pod],
        directories: PodDirectories,
        *,
        tier: Tier,
        facts: Facts,
        machine: dict[str, str],
        allotments: Allotments,
        hidden: Path | None = None,
        clock: Clock,
        hosts: Mapping[str, str],
        reachable: Sequence[int] = (),
        limits: Delegation | None = None,
        working_directory: Path | None = None,
        runs: Runs | None = None,
        hang_after: float = DEFAULT_SECONDS,
    ) -> None:
        self._client = client
        self._pods = pods
        self._directories = directories
        self._tier = tier
        self._facts = facts
        self._machine = machine
        self._allotments = allotments
        self._hidden = hidden
        self._clock = clock
        self._hosts = hosts
        self._reachable = reachable
        self._limits = limits or cgroups.none("")
        self._working_directory = working_directory
        self._runs = runs
        self._reporter = Reporter(facts.host_address)
        self._events = EventRecorder(client, "trainwright-node", clock)
        self._happenings = Happenings(self._events)
        self._addresses = Addresses(networks=tier.has_networks)
        self._networks = directories.path.parent / "networks"
        self._ports = Ports()
        self._keys: dict[str, Key] = {}
        self._tokens = PodTokens(client, clock)
        self._content = Content(self._sources, directories.in_thread, clock)
        self._claims = ClaimedDirectories(client)
        self._hosts_files = HostsFiles(directories, hosts)
        self._quiet = QuietPods(hang_after, clock.wall)
        self._shells = Shells(directories.path.parent / "remoteshell")

    async def adopt(self) -> list[Key]:
        """Takes over the pods of an earlier node process, with their addresses and ports."""
        for directory, pod in await self._directories.all():
            self._keys[directory.uid] = Key(pod["namespace"], pod["name"])
            if pod["address"] != LOOPBACK:
                self._addresses.taken[directory.uid] = pod["address"]
            if (pod.get("devices") or pod.get("cpus")) and (await self._directories.observe(directory)).alive:
                self._allotments.adopt(directory.uid, pod.get("devices", {}), pod.get("cpus", []))
            domain = (pod["namespace"], pod["subdomain"] or pod["uid"])
            self._ports.taken.setdefault(domain, {}).update(pod["ports"])
        return list(self._keys.values())

    def key_of(self, uid: str) -> Key | None:
        return self._keys.get(uid)

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._pods.store.get(key)
        orphans_left = await self._end_orphans(key, pod)
        if pod is None:
            return After(ORPHAN_GRACE_SECONDS + HUNG_SECONDS + 0.5) if orphans_left else Done()
        directory = self._directories.of(pod.metadata.uid)
        if pod.metadata.is_being_deleted:
            return await self._end(pod, directory)
        if pod.is_finished:
            return Done()
        seen = await self._directories.observe(directory)
        if seen.claimed:
            self._keys.setdefault(pod.metadata.uid, key)  # known already, unless its pod.json was damaged
            return await self._report(pod, directory, seen)
        said = await self._start(pod, directory)
        if not isinstance(said, str):
            return said
        event = self._events.record(PODS, pod.metadata, "Normal", "Started", said)
        outcome, _ = await asyncio.gather(self._report_start(pod, directory), event)  # somebody waits for its status
        return outcome

    async def _report_start(self, pod: Pod, directory: PodDirectory) -> Outcome:
        seen = await self._directories.observe(directory)
        if seen.alive and seen.record is not None and not _has_begun(seen.record):
            return After(BEGIN_SECONDS)  # its first program runs in a moment, and the record's pipe tells of it
        return await self._report(pod, directory, seen)

    async def _end_orphans(self, key: Key, pod: Pod | None) -> bool:
        """Ends processes of a pod of this name that the API does not have any more, or has replaced by another.

        True while some are left.
        """
        left = False
        uid = pod.metadata.uid if pod else None
        for orphan in [uid_ for uid_, key_ in self._keys.items() if key_ == key and uid_ != uid]:
            directory = self._directories.of(orphan)
            if await self._directories.terminate(directory, ORPHAN_GRACE_SECONDS):
                await self._forget(directory)
            else:
                left = True
        return left

    async def _end(self, pod: Pod, directory: PodDirectory) -> Outcome:
        """Ends the processes of a deleted pod, reports how they ended, and deletes the object."""
        grace = pod.metadata.deletion_grace_period_seconds
        if (await self._directories.observe(directory)).claimed:
            over = await self._directories.terminate(directory, 30 if grace is None else grace)
            seen = await self._directories.observe(directory)
            if seen.record is not None and not pod.is_finished:
                await self._write_status(pod, self._status(pod, seen, seen.record))
                await self._happenings.write(pod.metadata, seen.record.get("happenings", []))
            if not over:  # its end wakes us; a supervisor that hangs is killed
                return After((30 if grace is None else grace) + HUNG_SECONDS + 0.5)
        options = DeleteOptions(uid=pod.metadata.uid, grace_period_seconds=0)
        try:
            await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace, options)
        except (NotFound, Conflict):
            pass  # already deleted, or replaced by another pod of the same name
        await self._forget(directory)
        return Done()

    async def _forget(self, directory: PodDirectory) -> None:
        self._keys.pop(directory.uid, None)
        await self._hosts_files.forget(directory.uid)
        await self._directories.remove(directory)
        self._addresses.release(directory.uid)
        self._allotments.release(directory.uid)
        self._tokens.forget(directory.uid)
        self._quiet.forget(directory.uid)
        self._happenings.forget(directory.uid)
        self._content.forget(directory.uid)
        for domain in list(self._ports.taken):
            if not self._pods.store.by(BY_DOMAIN, "/".join(domain)):
                self._ports.release(domain)
                await self._directories.in_thread(self._shells.release, *domain)
                await self._directories.in_thread(shutil.rmtree, self._network(domain), ignore_errors=True)

    def _network(self, domain: PodDomain) -> Path:
        """Where the supervisors of a job's pods find the job's own network."""
        return self._networks / ".".join(domain)

    async def _start(self, pod: Pod, directory: PodDirectory) -> Outcome | str:
        """Starts a pod that was never started. Returns a sentence when it has been started: its state is to be
        reported.
        """
        now = self._now()
        json = pod.as_json()
        if any("running" in status.get("state", {}) for status in pod.status.get("containerStatuses") or ()):
            message = "this node has no record of the pod, which ran before: its files are gone"
            return await self._fail(pod, "SupervisorLost", message)
        refusals = support.refusals(json, self._tier)
        if refusals:
            return await self._fail(pod, "NotSupported", "; ".join(refusals))
        tokens: dict[str, Token] = {}
        try:
            tokens = await self._tokens.fetch(json)
            texts = {key: token.text for key, token in tokens.items()}
            sources = await self._sources(json)
            if any(claims_of(pod.spec, pod.metadata.name)):
                sources = replace(sources, directories=await self._claims.of(json))
            run = None
            if self._runs is not None:
                run = await self._directories.in_thread(self._runs.prepare, json, directory, self._clock.wall())
            shell = await self._shell(pod)
            prepared = Launch(json, self._allocate(pod, directory, run, shell), sources, texts)
            if shell is not None and (hostfile := prepared.hostfile()) is not None:
                await self._directories.in_thread(shell.write_hostfiles, hostfile)
            to_run = self._with_ports(pod, prepared)
            await self._directories.in_thread(_write_volumes, directory, prepared, to_run)
            await self._tokens.remember(directory, tokens)
            self._content.started(directory.uid)
            await self._write_hosts(_domain(pod))
            await self._directories.start(directory, to_run)
        except Unbound as error:
            await self._write_status(pod, self._reporter.of_waiting(json, "ContainerCreating", str(error), now))
            return After(UNBOUND_RETRY_SECONDS)
        except Unresolved as error:
            status = self._reporter.of_waiting(json, "CreateContainerConfigError", str(error), now)
            await self._write_status(pod, status)
            return After(UNRESOLVED_RETRY_SECONDS)
        except NoneLeft as error:  # the scheduler knows less than we do: a finished pod's processes may still run
            self._allotments.release(pod.metadata.uid)
            status = self._reporter.of_waiting(json, "ContainerCreating", str(error), now)
            await self._write_status(pod, status)
            return After(UNRESOLVED_RETRY_SECONDS)
        except (StartFailed, OSError) as error:
            if not (await self._directories.observe(directory)).claimed:
                return await self._fail(pod, "StartError", str(error))
            log.warning("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
        notes = support.notes(json, self._tier, self._limits.controllers)
        for source in token_sources(json):
            if source.key not in tokens:
                account = account_of(json)
                notes.append(f"volume {source.volume} has no token: there is no service account {account}")
        return f"Started as processes: {'; '.join(notes)}"

    def _with_ports(self, pod: Pod, prepared: Launch) -> PodToRun:
        """Gives the pod its job's ports. No await in here, so that two pods of a job agree on them."""
        domain = _domain(pod)
        if not self._has_company(domain, pod):
            self._ports.release(domain)  # the first pod of a new attempt: another process may have the old port by now
        replaced = set() if self._tier.has_networks else prepared.ports()  # in its own network a pod has every port
        to_run = prepared.pod_to_run(self._ports.of(domain, replaced))
        self._keys[pod.metadata.uid] = Key(pod.metadata.namespace, pod.metadata.name)
        return to_run

    def _has_company(self, domain: PodDomain, pod: Pod) -> bool:
        """Whether another pod of the job is started or about to be, so that its ports are in use."""
        return any(
            other.metadata.uid != pod.metadata.uid and not other.is_finished and other.metadata.uid in self._keys
            for other in self._pods.store.by(BY_DOMAIN, "/".join(domain))
        )

    async def _shell(self, pod: Pod) -> Shell | None:
        """The remote shell of a pod that declares one, ready to be used."""
        if not self._tier.isolation["mount"] or not declared(pod.as_json()).remote_shell:
            return None
        shell = self._shells.of(*_domain(pod))
        await self._directories.in_thread(self._shells.prepare, shell)
        return shell

    def _allocate(self, pod: Pod, directory: PodDirectory, run: RunOfPod | None, shell: Shell | None) -> Allocation:
        address = self._address(pod)
        allotted = self._allotments.allot(pod.metadata.uid, pod.spec)
        facts = Facts(address, self._facts.host_address, self._facts.allocatable)
        return Allocation(
            directory=directory,
            tier=self._tier,
            address=address,
            facts=facts,
            machine=self._machine,
            notify=self._directories.notify,
            hosts=self._hosts,
            working_directory=self._working_directory,
            run=run,
            hidden=self._hidden,
            allotted=allotted,
            shown={
                container["name"]: self._allotments.variables(container["name"], allotted)
                for container in (*(pod.spec.get("initContainers") or ()), *pod.spec["containers"])
            },
            shell=shell,
            network=self._network(_domain(pod)) if self._tier.has_networks else None,
            reachable=self._reachable,
            limits=self._limits,
        )

    def _address(self, pod: Pod) -> str:
        return self._addresses.of(pod.metadata.uid) if self._tier.isolation["mount"] else LOOPBACK

    async def _sources(self, pod: Json) -> Sources:
        names = references(pod)
        namespace = pod["metadata"]["namespace"]
        found: list[dict[str, Json]] = []
        for resource, wanted in zip((CONFIG_MAPS, SECRETS), names, strict=True):
            objects = {}
            for name in sorted(wanted):
                try:
                    objects[name] = await self._client.get(resource, name, namespace)
                except NotFound:
                    pass  # an error only where the reference is not optional
            found.append(objects)
        return Sources(found[0], found[1])

    async def _write_hosts(self, domain: PodDomain) -> None:
        """Brings /etc/hosts of every pod of the job up to date."""
        if not self._tier.isolation["mount"]:
            return

        def pods() -> list[Pod]:
            return [pod for pod in self._pods.store.by(BY_DOMAIN, "/".join(domain)) if not pod.is_finished]

        def names() -> Iterable[PodName]:
            found = {}
            # The name of a pod that is being deleted goes to its replacement.
            for pod in sorted(pods(), key=lambda pod: not pod.metadata.is_being_deleted):
                host = launch.hostname_of(pod.as_json())
                found[host] = PodName(domain[0], host, pod.spec.get("subdomain") or "", self._address(pod))
            return found.values()

        def directories() -> Iterable[tuple[PodDirectory, Mapping[str, str]]]:
            for pod in pods():
                if pod.metadata.uid in self._keys:
                    yield self._directories.of(pod.metadata.uid), host_aliases(pod.as_json())

        await self._hosts_files.update(names, directories)

    async def _report(self, pod: Pod, directory: PodDirectory, seen: Observation) -> Outcome:
        await self._write_hosts(_domain(pod))
        record = seen.record
        if record is None:
            return await self._fail(pod, "SupervisorLost", "the pod's supervisor ended before its first record")
        if seen.is_lost:
            await self._directories.terminate(directory, 0)  # kills what it may have left behind
        left = self._seconds_to_deadline(pod, record)
        if left <= 0 and seen.alive:
            await self._directories.terminate(directory, pod.spec.get("terminationGracePeriodSeconds", 30))
            seen = await self._directories.observe(directory)
            record = seen.record or record
        status = self._status(pod, seen, record)
        look_again = float("inf")
        if seen.alive and not record["done"]:
            quiet, look_again = await self._directories.in_thread(self._quiet.look, pod.as_json(), directory, record)
            if quiet is not None:
                status["conditions"] = with_condition(status["conditions"], quiet, self._now())
                await self._tell_of_quiet(pod, quiet)
        await self._write_status(pod, status)
        if happenings := record.get("happenings"):
            await self._happenings.write(pod.metadata, happenings)
        if record["done"] or seen.is_lost:
            self._allotments.release(pod.metadata.uid)
            return Done()
        renewal = await self._tokens.renew(pod.as_json(), directory)
        facts = Facts(self._address(pod), self._facts.host_address, self._facts.allocatable)
        renewal = min(renewal, await self._content.refresh(pod.as_json(), directory, facts))
        return After(min(LIVENESS_SECONDS, max(min(left, renewal, look_again), 0.1)))

    async def _tell_of_quiet(self, pod: Pod, quiet: Condition) -> None:
        """An event when a pod becomes quiet."""
        kind, is_true, why = quiet
        before = next((one for one in pod.status.get("conditions") or () if one["type"] == kind), None)
        if is_true and (before is None or before["status"] != "True"):
            await self._events.record(PODS, pod.metadata, "Warning", "Quiet", str(why["message"])[:1000])

    def _seconds_to_deadline(self, pod: Pod, record: PodRecord) -> float:
        deadline = pod.spec.get("activeDeadlineSeconds")
        if deadline is None:
            return float("inf")
        return float(seconds_of(record["startedAt"]) + deadline - self._clock.wall())

    def _status(self, pod: Pod, seen: Observation, record: PodRecord) -> Json:
        status = self._reporter.of_record(pod.as_json(), record, self._address(pod), self._now(), lost=seen.is_lost)
        ended_by_us = seen.grace_period is not None and not pod.metadata.is_being_deleted
        if status["phase"] == "Failed" and ended_by_us and self._seconds_to_deadline(pod, record) <= 0:
            status["reason"] = "DeadlineExceeded"
            status["message"] = "Pod was active on the node longer than the specified deadline"
        return status

    async def _fail(self, pod: Pod, reason: str, message: str) -> Outcome:
        self._allotments.release(pod.metadata.uid)
        await self._write_status(pod, self._reporter.of_refused(pod.as_json(), reason, message, self._now()))
        await self._events.record(PODS, pod.metadata, "Warning", reason, message)
        return Done()

    async def _write_status(self, pod: Pod, status: Json) -> None:
        if is_stored(status, pod.status):
            return
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        try:
            await self._client.patch(
                PODS, body, name=pod.metadata.name, namespace=pod.metadata.namespace, subresource="status"
            )
        except NotFound:
            pass  # deleted meanwhile; the watch will report it

    def _now(self) -> str:
        return rfc3339(self._clock.wall())


def _has_begun(record: PodRecord) -> bool:
    """Whether a container runs or has run."""
    containers = (*record["initContainers"].values(), *record["containers"].values())
    return any("waiting" not in container["state"] for container in containers)


def is_stored(wanted: Json, stored: Json) -> bool:
    """Whether the stored status is the wanted one already. Fields that we do not write, and nulls, do not count."""
    return all(_without_nulls(stored.get(field)) == value for field, value in wanted.items())


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _write_volumes(directory: PodDirectory, prepared: Launch, to_run: PodToRun) -> None:
    everyone = (*to_run["initContainers"], *to_run["containers"])
    directory.path.mkdir(parents=True, exist_ok=True)
    volumes.write(prepared.volumes, [mount for container in everyone for mount in container["mounts"]])
