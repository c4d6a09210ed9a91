"""Which source a URI means. The sources' modules are imported when their scheme is used."""

from __future__ import annotations

from trainwright.clock import Clock
from trainwright.initializers.errors import Misconfigured
from trainwright.initializers.http import Http
from trainwright.initializers.names import printable
from trainwright.initializers.settings import ACCESS_TOKEN, Settings
from trainwright.initializers.source import Source


def scheme_of(settings: Settings) -> str:
    """The URI's scheme. URIs are refused here that no source takes."""
    scheme, separator, rest = settings.uri.partition("://")
    scheme = scheme.lower()
    if scheme in ("hf", "s3", "https", "file") and separator and rest:
        return scheme
    uri = printable(settings.uri.partition("?")[0])
    if scheme == "cache":
        raise Misconfigured(
            f"{uri}: the data cache is not supported: name the dataset itself by hf://, s3://, https:// or file://"
        )
    if scheme == "http":
        raise Misconfigured(f"{uri}: only https:// is fetched: over http anybody on the way could change the file")
    raise Misconfigured(
        f"{uri}: not a source of a {settings.step}: a URI begins with hf://, s3://, https:// or file://"
    )


def source_of(settings: Settings, http: Http, clock: Clock) -> Source:
    scheme = scheme_of(settings)
    if scheme == "hf":
        from trainwright.initializers.huggingface import HuggingFace

        return HuggingFace(settings, http)
    if scheme == "s3":
        from trainwright.initializers.s3.source import S3

        return S3(settings, http, clock)
    if scheme == "https":
        from trainwright.initializers.https import Https

        return Https(settings.uri, http, settings.variables.get(ACCESS_TOKEN), settings.ignore)
    from trainwright.initializers.localfiles import LocalFiles

    return LocalFiles(settings.uri, settings.target, settings.ignore)
