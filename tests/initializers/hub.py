"""A Hugging Face hub for one test, after the hub's documented API: revision, tree in pages, resolve, error codes.

Small files are in Git and named by their blob id. Large ones are LFS files: `resolve` sends the client to another
origin, where they lie under their sha256, as the real hub does.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from initializers.fileserver import Answer, FileServer, Request

COMMIT = "c0ffee" + "0" * 34
PAGE = 3
LFS_BYTES = 1000


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Repository:
    files: dict[str, bytes]
    token: str | None = None
    """Who has this one may see it."""
    is_gated: bool = False
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})


class Hub:
    """Answers for `api`, and puts LFS files on `storage`."""

    def __init__(self, api: FileServer, storage: FileServer) -> None:
        self.url = api.url
        self.api = api
        self.storage = storage
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.broken: list[Answer] = []
        """Answers that come instead, one for each request."""
        api.routes.append(self._answer)

    def add(self, kind: str, name: str, files: dict[str, bytes], **how: object) -> Repository:
        """A repository of `models` or `datasets`."""
        repository = Repository(files, **how)  # type: ignore[arg-type]
        self.repositories[kind, name] = repository
        for content in files.values():
            if len(content) >= LFS_BYTES:
                self.storage.put(f"/lfs/{sha256(content)}", content)
        return repository

    def _answer(self, request: Request) -> Answer | None:
        if self.broken:
            return self.broken.pop(0)
        if found := re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+|[^/]+)/(revision|tree)/(.+)", request.path):
            kind, name, what, revision = found.groups()
        elif found := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+|[^/]+)/resolve/([^/]+)/(.+)", request.path):
            kind, name, revision, what = "datasets" if found[1] else "models", found[2], found[3], found[4]
        else:
            return None
        repository = self.repositories.get((kind, name))
        if refusal := _refusal(repository, request):
            return refusal
        assert repository is not None
        commit = repository.revisions.get(revision, revision if revision in repository.revisions.values() else "")
        if not commit:
            return Answer(404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"})
        if what == "revision":
            return _json({"id": name, "sha": commit, "siblings": [{"rfilename": path} for path in repository.files]})
        if what == "tree":
            return self._tree(request, repository)
        return self._resolve(request, repository, what)

    def _tree(self, request: Request, repository: Repository) -> Answer:
        assert parse_qs(request.query)["recursive"][0].lower() == "true"
        first = int(parse_qs(request.query).get("cursor", ["0"])[0])
        entries = [_entry(path, content) for path, content in repository.files.items()]
        entries.insert(0, {"type": "directory", "oid": "0" * 40, "size": 0, "path": "a-directory"})
        more = {}
        if first + PAGE < len(entries):
            address = f"{self.url}{request.path}?recursive=True&cursor={first + PAGE}"
            more = {"Link": f'<{address}>; rel="next"'}
        return _json(entries[first : first + PAGE], more)

    def _resolve(self, request: Request, repository: Repository, path: str) -> Answer | None:
        content = repository.files[path]
        if len(content) >= LFS_BYTES:
            linked = {"X-Linked-Etag": f'"{sha256(content)}"', "X-Linked-Size": str(len(content))}
            location = f"{self.storage.url}/lfs/{sha256(content)}?Signature=secret"
            return Answer(302, {"Location": location, "X-Repo-Commit": COMMIT, **linked})
        if request.path not in self.api.files:
            self.api.put(request.path, content, headers={"X-Repo-Commit": COMMIT})
        return None  # a file like any other


def _refusal(repository: Repository | None, request: Request) -> Answer | None:
    token = request.headers.get("Authorization", request.headers.get("authorization", "")).removeprefix("Bearer ")
    if token and not token.startswith("hf_"):
        return Answer(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
    if repository is None or (repository.token not in (None, token) and not repository.is_gated):
        message = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        return Answer(404 if token else 401, message)
    if repository.token not in (None, token):
        return Answer(403 if token else 401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
    return None


def _entry(path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "oid": blob_id(content), "size": len(content), "path": path}
    if len(content) >= LFS_BYTES:
        entry["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 134}
        entry["oid"] = blob_id(b"version https://git-lfs.github.com/spec/v1")
    return entry


def _json(value: object, headers: dict[str, str] | None = None) -> Answer:
    return Answer(200, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode())
