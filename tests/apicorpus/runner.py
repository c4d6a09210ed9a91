"""Plays one scenario against a server and judges, or records, the answer to each step."""

from __future__ import annotations

import concurrent.futures
import copy
import json
import queue
import threading
import time
from typing import Any

import yaml

from apicorpus.connection import BROKEN, Client, Ended, Event, Headers, NoToken, Refusal, Response, Started, Stream
from apicorpus.conversation import Conversation
from apicorpus.judgement import Invariants, Result, compare, priority_of
from apicorpus.normalform import normal_form
from apicorpus.paths import MISSING, lookup, remove
from apicorpus.placeholders import Matcher
from apicorpus.recording import Recorder

Json = dict[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
POLL_SECONDS = 0.1
WATCH_SECONDS = 20
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class Aborted(Exception):
    """The scenario could not begin."""


class Watch:
    """A watch that is being read by a thread."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.first: Started | Event | Refusal | Ended | None = None

    def begin(self, seconds: float) -> Started | Event | Refusal | Ended:
        """The first item, however often it is asked for."""
        self.first = self.first or self.stream.get(timeout=seconds)
        return self.first


class Runner:
    """One run of a scenario. With `record` the steps get new expectations instead of a judgement."""

    def __init__(self, client: Client, scenario: Json, record: bool = False) -> None:
        self._client = client
        self._scenario = scenario
        self._record = record
        self._talk = Conversation()
        self._matcher = Matcher(self._talk.run)
        self._recorder = Recorder(self._talk.run)
        self._invariants = Invariants()
        self._watches: dict[str, Watch] = {}
        self._finalized: set[str] = set()

    def go(self) -> list[Result]:
        """Play all steps, then remove what they left."""
        results: list[Result] = []
        try:
            self._create_namespaces()
            for number, step in enumerate(self._scenario["steps"], 1):
                result = self._judge(number, step)
                if step["method"] != "SLEEP":
                    results.append(result)
        finally:
            self._clean_up()
        return results

    def _judge(self, number: int, step: Json) -> Result:
        result = Result(
            scenario=self._scenario["name"],
            step=number,
            priority=priority_of(self._scenario, step),
            desc=step.get("desc", ""),
            request=f"{step['method']} {step.get('path', '')}",
            id=step.get("id"),
            message_priority=step.get("message_priority", "must"),
        )
        try:
            got, raw = self._execute(step)
        except NoToken as missing:
            result.skip = str(missing)
            return result
        except Exception as error:
            if self._record:
                raise
            result.facets["core"] = [f"request failed: {error!r}"]
            return result
        if self._record:
            step.pop("expect", None)
            if got:
                step["expect"] = self._recorder.expectation(step, got)
        elif got:
            result.facets = compare(step.get("expect"), got, self._matcher)
            self._invariants.check(raw, result.facets["core"])
        return result

    def _execute(self, step: Json) -> tuple[Json, Any]:
        """Run one step: its answer in comparable form, and the documents in it as they came."""
        match step["method"]:
            case "SLEEP":
                time.sleep(step["seconds"])
                return {}, None
            case "WATCH":
                return self._watch(step)
            case "COLLECT":
                return self._collect(self._watches[step["watch"]], step)
            case "PARALLEL":
                return self._send_at_once(step), None
        response = self._send(step)
        body = decode(response)
        if "until" in step:
            deadline = time.monotonic() + step["until"].get("timeout", 60)
            while not self._holds(step["until"], response.status, body) and time.monotonic() <= deadline:
                time.sleep(POLL_SECONDS)
                response = self._send(step)
                body = decode(response)
        if step.get("id"):
            self._talk.remember(step["id"], response.headers, body)
        self._note_finalizers(step, body)
        return self._shaped(step, response, body), body

    def _send(self, step: Json) -> Response:
        talk = self._talk
        who = step.get("as", "admin")
        return self._client.request(step["method"], talk.path(step), talk.payload(step), talk.headers(step), who)

    def _holds(self, until: Json, status: int, body: Any) -> bool:
        if "status" in until and status != until["status"]:
            return False
        if "path" not in until:
            return True
        value = lookup(body, self._talk.filled(until["path"]))
        if "equals" in until:
            return bool(value == self._talk.filled(until["equals"]))
        return bool((value == MISSING) == bool(until.get("missing")))

    def _note_finalizers(self, step: Json, body: Any) -> None:
        metadata = body.get("metadata") if isinstance(body, dict) else None
        writes = step["method"] in ("POST", "PUT", "PATCH")
        if writes and isinstance(metadata, dict) and metadata.get("finalizers"):
            path = self._talk.filled(step["path"])
            self._finalized.add(f"{path}/{metadata.get('name', '')}" if step["method"] == "POST" else path)

    def _shaped(self, step: Json, response: Response, body: Any) -> Json:
        status, headers = response.status, response.headers
        got = head(status, headers)
        checked: Json = {name: "present" if headers.get(name) else "absent" for name in step.get("check_headers") or []}
        if headers.get("Retry-After") is not None:
            checked = {"Retry-After": headers.get("Retry-After"), **checked}
        if checked:
            got["headers"] = checked
        if "extract" in step and status < 300:
            paths = step["extract"].items()
            got["extract"] = {name: normal_form(lookup(body, self._talk.filled(path))) for name, path in paths}
        elif not step.get("no_body"):
            got["body"] = self._without_ignored(step, normal_form(body))
        return got

    def _without_ignored(self, step: Json, body: Any) -> Any:
        body = copy.deepcopy(body)
        for path in [*(self._scenario.get("ignore") or []), *(step.get("ignore") or [])]:
            remove(body, path)
        return body

    def _send_at_once(self, step: Json) -> Json:
        """Send copies of one request at the same time (`{{i}}` is the copy's number); only statuses are compared."""

        def send(number: int) -> int | str:
            request = json.loads(json.dumps(step["request"]).replace("{{i}}", str(number)))
            try:
                return self._send(request).status
            except (NoToken, *BROKEN) as error:
                return repr(error)

        with concurrent.futures.ThreadPoolExecutor(step["count"]) as pool:
            statuses = sorted(pool.map(send, range(step["count"])), key=str)
        return {"status": 0, "contentType": None, "warning": [], "extract": {"statuses": statuses}}

    def _watch(self, step: Json) -> tuple[Json, Any]:
        headers = self._client.headers(step.get("as", "admin"), self._talk.headers(step))
        seconds = step.get("timeout", WATCH_SECONDS)
        watch = Watch(queue.Queue())
        arguments = (self._talk.path(step), headers, step.get("count"), seconds, watch.stream)
        threading.Thread(target=self._client.watch, args=arguments, daemon=True).start()
        if not step.get("background"):
            return self._collect(watch, step)
        self._watches[step["background"]] = watch
        first = watch.begin(30)
        return (head(first.status, first.headers) if isinstance(first, Started) else not_begun(first)), None

    def _collect(self, watch: Watch, step: Json) -> tuple[Json, Any]:
        """Wait for the events that the step asks for."""
        seconds, count = step.get("timeout", WATCH_SECONDS), step.get("count")
        first = watch.begin(seconds + 30)
        if not isinstance(first, Started):
            return not_begun(first), None
        got = {**head(first.status, first.headers), "end": "count"}
        events: list[Any] = []
        deadline = time.monotonic() + seconds + 5
        while count is None or len(events) < count:
            try:
                item = watch.stream.get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                item = Ended("timeout")
            if isinstance(item, Ended):
                got["end"] = item.why
                break
            if isinstance(item, Refusal):
                got["body"] = refusal(item.data)
            elif isinstance(item, Event) and not self._is_skipped(item.value, step):
                events.append(self._comparable_event(item.value, step))
        if step.get("unordered"):
            places = ("object/metadata/namespace", "object/metadata/name")
            events.sort(key=lambda event: json.dumps([event.get("type"), *(lookup(event, path) for path in places)]))
        if got["end"] != "refused":
            got["events"] = events
        return got, [event.get("object") for event in events]

    def _is_skipped(self, event: Any, step: Json) -> bool:
        is_bookmark = isinstance(event, dict) and event.get("type") == "BOOKMARK"
        return is_bookmark and bool(step.get("skip_bookmarks", not step.get("bookmarks")))

    def _comparable_event(self, event: Any, step: Json) -> Any:
        event = normal_form(event)
        if isinstance(event, dict) and "object" in event:
            event["object"] = self._without_ignored(step, event["object"])
        return event

    def _namespaces(self) -> list[str]:
        return [f"{name}-{self._talk.run}" for name in self._scenario.get("namespaces", ["ns"])]

    def _create_namespaces(self) -> None:
        for name in self._namespaces():
            metadata = {"name": name, "labels": {"corpus": "yes"}}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            response = self._client.request("POST", "/api/v1/namespaces", json.dumps(body).encode())
            if response.status not in (200, 201):
                raise Aborted(f"cannot create namespace: {response.status} {response.data[:300]!r}")

    def _clean_up(self) -> None:
        """Remove everything, as far as the server lets us: a scenario that failed may have left anything."""
        namespaces = [f"/api/v1/namespaces/{name}" for name in self._namespaces()]
        for path in sorted(self._finalized):
            if self._try("GET", path).get("metadata"):
                self._try("PATCH", path, b'{"metadata":{"finalizers":null}}', MERGE_PATCH)
        if "Pod" in self._scenario.get("kinds", []):  # without a kubelet nobody else finishes pods with a nodeName
            for namespace in namespaces:
                for pod in self._try("GET", f"{namespace}/pods").get("items") or []:
                    path = f"{namespace}/pods/{lookup(pod, 'metadata/name')}"
                    self._try("DELETE", path, b'{"gracePeriodSeconds":0}')
        for path in [*(self._talk.filled(path) for path in self._scenario.get("cleanup", [])), *namespaces]:
            self._try("DELETE", path, b'{"propagationPolicy":"Background"}')

    def _try(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Json:
        """The object in the answer, or nothing."""
        try:
            response = self._client.request(method, path, body, headers)
        except BROKEN:
            return {}
        found = decode(response)
        return found if response.status == 200 and isinstance(found, dict) else {}


def head(status: int, headers: Headers) -> Json:
    """What is compared of every answer."""
    return {
        "status": status,
        "contentType": headers.get("Content-Type"),
        "warning": sorted(headers.get_all("Warning") or []),
    }


def not_begun(first: object) -> Json:
    """The answer to a watch that got no answer."""
    return {"status": 0, "contentType": None, "warning": [], "body": str(first)}


def refusal(data: bytes) -> Any:
    """The body of a watch that was refused."""
    try:
        return normal_form(json.loads(data))
    except ValueError:
        return data.decode("utf-8", "replace")


def decode(response: Response) -> Any:
    """A body as JSON or YAML where it says so, else as text."""
    kind, data = response.headers.get("Content-Type", "") or "", response.data
    try:
        if "json" in kind or data[:1] == b"{":
            return json.loads(data)
        if "yaml" in kind:
            return yaml.load(data, Loader=LOADER)  # noqa: S506 - one of the safe loaders
    except (ValueError, yaml.YAMLError):
        pass
    return data.decode("utf-8", "replace")
