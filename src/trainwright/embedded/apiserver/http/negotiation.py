"""What form a client wants its answer in: JSON or YAML, whole objects, tables, metadata only; failures in protobuf."""

from __future__ import annotations

from typing import Any

import msgspec

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import JSON_TYPE
from trainwright.embedded.apiserver.wire.status import encode_status
from trainwright.schema.jsonobject import Json

YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
ANY_TYPE = ("*/*", "application/*", JSON_TYPE)  # what JSON answers
KNOWN_TYPES = frozenset({JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE, "*/*"})
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_TRANSFORMS = {TABLE, PARTIAL, PARTIAL_LIST}


class Form(msgspec.Struct, frozen=True):
    """`kind` is empty for plain objects; `version` is meta.k8s.io's for transformed ones."""

    media_type: str = JSON_TYPE
    kind: str = ""
    version: str = "v1"

    @property
    def content_type(self) -> str:
        return self.media_type


PLAIN = Form()


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[float, int, str, dict[str, str]]] = []
    for index, part in enumerate(accept.split(",")):
        media, *rest = (piece.strip() for piece in part.split(";"))
        params = dict(piece.partition("=")[::2] for piece in rest if piece)
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 1.0
        found.append((-quality, index, media.lower(), params))
    found.sort(key=lambda clause: clause[:2])
    return [(media, params) for _, _, media, params in found]


def negotiate(accept: str, *, custom: bool = False, tables: bool = True, collection: bool = False) -> Form:
    """The first alternative this server can give. Raises 406 if there is none."""
    if not accept or accept == "*/*" or accept == JSON_TYPE:
        return PLAIN
    accepted = f"{JSON_TYPE}, {YAML_TYPE}, {PROTOBUF_TYPE}"
    clauses = _clauses(accept)
    if not custom and tables and not any(media in KNOWN_TYPES for media, _ in clauses):
        # Built-in kinds are refused one step earlier, by media type alone.
        if collection:
            accepted += f", {JSON_TYPE};stream=watch, {PROTOBUF_TYPE};stream=watch"
        raise StatusError(406, f"406: Not Acceptable\n\nAvailable representations: {accepted}", details={})
    forms = (_form(media, params, tables=tables) for media, params in clauses)
    found = next((form for form in forms if form is not None), None)
    if found is None:
        raise StatusError(406, f"only the following media types are accepted: {accepted}")
    return found


def _form(media: str, params: dict[str, str], *, tables: bool) -> Form | None:
    """The form that one clause asks for, if objects can be answered in it."""
    chosen = YAML_TYPE if media == YAML_TYPE else JSON_TYPE
    if chosen == JSON_TYPE and media not in ANY_TYPE:
        return None
    kind = params.get("as", "")
    if not kind:
        return Form(chosen)
    known = tables and kind in _TRANSFORMS and params.get("g") == "meta.k8s.io"
    return Form(chosen, kind, params["v"]) if known and params.get("v") in ("v1", "v1beta1") else None


def failure_form(accept: str) -> Form:
    """How a failure is told: in the first form that is asked for, never as a table.

    Failures can be had as protobuf, too: Go's typed clients ask for that first, and read either.
    """
    for media, params in _clauses(accept) if accept else ():
        if media == PROTOBUF_TYPE and not params.get("as"):
            return Form(PROTOBUF_TYPE)
        form = _form(media, params, tables=False)
        if form is not None:
            return form
    return PLAIN


def render(form: Form, value: Any) -> bytes:
    if form.media_type == YAML_TYPE:
        import yaml  # ponderous, and rarely asked for

        return yaml.safe_dump(value, sort_keys=True, allow_unicode=True).encode()
    return msgspec.json.encode(value)


def render_failure(form: Form, status: Json) -> bytes:
    return encode_status(status) if form.media_type == PROTOBUF_TYPE else render(form, status)
