"""`hf://org/name`: a repository of the Hugging Face hub, or of the server that HF_ENDPOINT names.

huggingface_hub finds the token, lists the repository at one commit and names the addresses; the bytes are fetched
as every source's are, with resume and checksum, where the library compares sizes only. As in the reference, a
dataset's URI may go on with a path that is not looked at here, and of a model only configuration, tokenizer and
safe weights are fetched. New: `hf://org/name@revision`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import unquote

from trainwright.initializers.digests import GIT_BLOB, Digest
from trainwright.initializers.errors import (
    Changed,
    InitializerError,
    Misconfigured,
    Missing,
    NotPermitted,
    Transient,
    Unreachable,
)
from trainwright.initializers.http import Http, Refused, check_range, pieces, range_header
from trainwright.initializers.names import printable
from trainwright.initializers.settings import ACCESS_TOKEN, Settings
from trainwright.initializers.source import Item

MODEL_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.gguf"]


class HuggingFace:
    """A repository at the commit that its revision names when it is listed."""

    is_cached = True

    def __init__(self, settings: Settings, http: Http) -> None:
        self._type = settings.step
        self._repository, self._revision = _repository(settings.uri, settings.step)
        self._ignore = list(settings.ignore) or None
        self._http = http
        self._token = settings.variables.get(ACCESS_TOKEN)
        self._hub = _library()
        self._endpoint = (settings.variables.get("HF_ENDPOINT") or self._hub.constants.ENDPOINT).rstrip("/")
        self._headers: dict[str, str] = self._hub.utils.build_hf_headers(token=self._token)
        self._headers = {name: value for name, value in self._headers.items() if name.lower() == "authorization"}
        self.uri = f"hf://{self._repository}"

    async def items(self) -> list[Item]:
        return await asyncio.to_thread(self._items)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        try:
            wanted = range_header(start, end, item.size)
            async with self._http.ask(item.location, wanted, private=self._headers) as response:
                check_range(response, start, item.size, f"{self.uri}: {printable(item.name)}")
                async for piece in pieces(response):
                    yield piece
        except Refused as refused:
            raise self._sentence(refused.status, printable(item.name)) from None

    async def digest(self, item: Item) -> Digest | None:
        return item.digest

    def _items(self) -> list[Item]:
        hub = self._hub
        api = hub.HfApi(endpoint=self._endpoint, token=self._token)
        about = {"repo_id": self._repository, "repo_type": self._type}
        try:
            commit = api.repo_info(revision=self._revision, **about).sha
            tree = [
                entry
                for entry in api.list_repo_tree(recursive=True, revision=commit, **about)
                if isinstance(entry, hub.hf_api.RepoFile)
            ]
        except hub.errors.GatedRepoError as error:
            raise NotPermitted(
                f"{self.uri}: it is gated: accept its conditions at {self._endpoint}/{self._repository}, and set "
                f"{ACCESS_TOKEN} to a token of that account"
            ) from error
        except hub.errors.RevisionNotFoundError as error:
            raise Missing(f"{self.uri}: there is no revision {printable(self._revision)}") from error
        except hub.errors.RepositoryNotFoundError as error:
            how = f"{ACCESS_TOKEN} may not see it" if self._headers else f"set {ACCESS_TOKEN} if it is private"
            raise Missing(
                f"{self.uri}: there is no such {self._type} on {self._endpoint}: check the name, and {how}"
            ) from error
        except hub.errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status == 429 or status >= 500:
                raise Transient(f"{self._endpoint} answered {status}") from error
            raise self._sentence(status, "the list of files") from error
        except hub.errors.OfflineModeIsEnabled as error:
            raise Misconfigured(f"{self.uri}: HF_HUB_OFFLINE is set: unset it to fetch from the hub") from error
        except hub.errors.HFValidationError as error:
            raise Misconfigured(f"{self.uri} is not a repository's name: {printable(str(error))}") from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:  # the library takes the answer for granted
            raise self._no_hub() from error
        except hub.errors.HTTPError as error:  # the base class of its HTTP library's errors: nobody answered
            raise Transient(f"{self._endpoint}: {printable(str(error))}") from error
        allowed = MODEL_PATTERNS if self._type == "model" else None
        chosen = hub.utils.filter_repo_objects(
            tree, allow_patterns=allowed, ignore_patterns=self._ignore, key=lambda entry: entry.path
        )
        return [self._item(entry, commit) for entry in chosen]

    def _item(self, entry: Any, commit: str) -> Item:
        size = entry.lfs.size if entry.lfs else entry.size
        try:
            digest = Digest("sha256", entry.lfs.sha256) if entry.lfs else Digest(GIT_BLOB, entry.blob_id)
        except (TypeError, ValueError) as error:
            raise self._no_hub() from error
        if not isinstance(entry.path, str) or not isinstance(size, int) or size < 0:
            raise self._no_hub()
        url = self._hub.hf_hub_url(
            self._repository, entry.path, repo_type=self._type, revision=commit, endpoint=self._endpoint
        )
        return Item(entry.path, size, f"{digest.algorithm}:{digest.value}", url, digest)

    def _no_hub(self) -> Unreachable:
        return Unreachable(f"{self.uri}: {self._endpoint} does not answer as a hub does: see HF_ENDPOINT")

    def _sentence(self, status: int, what: str) -> InitializerError:
        if status in (401, 403):
            how = f"{ACCESS_TOKEN} was not accepted" if self._headers else f"set {ACCESS_TOKEN}"
            return NotPermitted(f"{self.uri}: {what} is refused ({status}): {how}")
        if status in (404, 416):
            return Changed(f"{self.uri}: {what} is no longer there ({status})")
        return Unreachable(f"{self.uri}: {self._endpoint} answered {status} for {what}: see HF_ENDPOINT")


def _repository(uri: str, step: str) -> tuple[str, str]:
    """The repository and its revision. What follows a dataset's name is for whoever reads the files, not for us."""
    address, at, tail = uri.removeprefix("hf://").partition("@")
    words = [word for word in address.split("/") if word]
    revision = unquote(tail.partition("/")[0] if step == "dataset" else tail)
    if not words or (at and not revision):
        raise Misconfigured(f"{printable(uri)}: after hf:// comes the repository, as in hf://org/name")
    if step == "model" and len(words) > 2:
        raise Misconfigured(f"{printable(uri)}: a model's URI is hf://org/name and no path: all of it is fetched")
    return "/".join(words[:2]), revision or "main"


def _library() -> Any:
    """huggingface_hub, which only this scheme needs."""
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.hf_api
        import huggingface_hub.utils
    except ImportError:
        raise Misconfigured(
            "hf:// needs huggingface_hub, which is not installed: pip install 'trainwright[initializers]'"
        ) from None
    return huggingface_hub
