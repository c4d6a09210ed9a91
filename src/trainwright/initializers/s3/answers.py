"""What an S3 or STS server answers, read from its XML. Pure.

The parser knows elements and text and nothing else: a document type, and with it every entity, is refused, so that a
hostile answer can neither grow nor reach for files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_plus
from xml.parsers import expat

_DEEPEST = 20


class NotXml(ValueError):
    """The answer is not what an S3 server would say: perhaps something else listens there."""


@dataclass(slots=True)
class Element:
    """An element with its text and children; namespaces are left out."""

    name: str
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        return (child for child in self.children if child.name == name)

    def every(self) -> Iterator[Element]:
        """This element and all below it."""
        yield self
        for child in self.children:
            yield from child.every()

    def value(self, *path: str) -> str:
        """The text at a path of names; empty when there is none."""
        here: Element | None = self
        for name in path:
            here = next(here.all(name), None) if here else None
        return here.text if here else ""


@dataclass(frozen=True, slots=True)
class Object:
    """An object as a listing has it. `etag` is without its quotes."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing. `token` asks for the next one."""

    objects: list[Object]
    token: str


def parse(body: bytes) -> Element:
    root = Element("")
    open_elements = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > _DEEPEST:
            raise NotXml("the answer is nested too deeply")
        element = Element(name.rpartition("}")[2])
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(name: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        open_elements[-1].text += data

    def doctype(*_: object) -> None:
        raise NotXml("the answer has a document type")

    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise NotXml(f"the answer is not XML: {error}") from error
    return root.children[0]


def page(body: bytes) -> Page:
    """A page of ListObjectsV2, asked for with `encoding-type=url`."""
    root = parse(body)
    if root.name != "ListBucketResult":
        raise NotXml(f"a listing was asked for, and {root.name!r} came")
    is_encoded = root.value("EncodingType") == "url"
    objects = []
    for item in root.all("Contents"):
        size = item.value("Size")
        if not size.isdecimal():
            raise NotXml("an object without a size is listed")
        key = item.value("Key")
        etag = item.value("ETag").strip('"')
        if not re.fullmatch("[!#-~]*", etag):
            raise NotXml("an object with an ETag that no header can hold is listed")
        objects.append(Object(unquote_plus(key) if is_encoded else key, int(size), etag))
    more = root.value("IsTruncated") == "true"
    return Page(objects, root.value("NextContinuationToken") if more else "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a failure says of itself; empty where it says nothing."""

    code: str = ""
    message: str = ""
    region: str = ""


def fault(body: bytes) -> Fault:
    """The code and message of a failure, whatever its body is."""
    try:
        root = parse(body) if body else Element("")
    except NotXml:
        return Fault()
    error = next((found for found in root.every() if found.name == "Error"), root)  # STS wraps it up
    return Fault(error.value("Code"), error.value("Message"), error.value("Region"))
