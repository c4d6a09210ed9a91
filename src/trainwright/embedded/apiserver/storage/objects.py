"""One version of one object: its bytes, and what indexes and selectors ask for without decoding them."""

from __future__ import annotations

import msgspec

from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json

encode = msgspec.json.encode
decode = msgspec.json.decode


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class _Envelope(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_read_envelope = msgspec.json.Decoder(_Envelope).decode


class Stored(msgspec.Struct, gc=False, frozen=True):
    """One version of one object. `data` is its JSON without apiVersion and kind: they depend on who asks."""

    key: Key
    version: int
    data: bytes
    uid: str
    labels: dict[str, str] | None
    owners: tuple[str, ...]
    deleting: bool

    def decode(self) -> Json:
        """A fresh copy to change at will."""
        return decode(self.data)  # type: ignore[no-any-return]


def stored_from(key: Key, version: int, data: bytes) -> Stored:
    """The same from bytes that were stored before."""
    metadata = _read_envelope(data).metadata
    owners = tuple(owner.uid for owner in metadata.owner_references or ())
    return Stored(
        key, version, data, metadata.uid, metadata.labels or None, owners, metadata.deletion_timestamp is not None
    )


def stored_as(key: Key, version: int, obj: Json) -> Stored:
    """The object as it is stored under this version, which is noted in its metadata."""
    metadata = obj["metadata"]
    metadata["resourceVersion"] = str(version)
    body = {name: value for name, value in obj.items() if name != "apiVersion" and name != "kind"}
    references = metadata.get("ownerReferences")
    owners = tuple(str(reference.get("uid", "")) for reference in references) if references else ()
    labels = metadata.get("labels") or None
    return Stored(key, version, encode(body), metadata.get("uid", ""), labels, owners, "deletionTimestamp" in metadata)
