"""The checks of probes and hooks that go over the network, or only wait: tcpSocket, httpGet, sleep.

In: a `HandlerToRun` and the seconds it may take. Out: nothing, or `CheckFailed` with a message in a kubelet's words.
Blocks: called in a process of its own (`attempts`). Standard library only, and most of it is imported where it is
used: few pods have probes, and every supervisor imports this.
"""

from __future__ import annotations

import errno
import os
import time

from trainwright.embedded.node.pods.record import HandlerToRun, HttpGet

MOST_REDIRECTS = 10
USER_AGENT = "kube-probe/trainwright"


class CheckFailed(Exception):
    """The check did not succeed; the message says how."""


def check(handler: HandlerToRun, seconds: float) -> None:
    if "sleep" in handler:
        time.sleep(handler["sleep"])
    elif "tcp" in handler:
        import socket

        host, port = handler["tcp"]["host"], handler["tcp"]["port"]
        try:
            socket.create_connection((host, port), timeout=seconds).close()
        except OSError as error:
            raise CheckFailed(f"dial tcp {host}:{port}: {_go_error(error)}") from error
    elif "http" in handler:
        _get(handler["http"], seconds)


def timed_out(handler: HandlerToRun, seconds: float) -> str:
    """What a kubelet says of a handler that took too long."""
    if "tcp" in handler:
        return f"dial tcp {handler['tcp']['host']}:{handler['tcp']['port']}: i/o timeout"
    if "http" in handler:
        return f'Get "{url_of(handler["http"])}": context deadline exceeded'
    return f"command timed out: {handler.get('exec')} timed out after {seconds:g}s"


def url_of(get: HttpGet) -> str:
    path = get["path"] if get["path"].startswith("/") else f"/{get['path']}"
    return f"{get['scheme'].lower()}://{get['host']}:{get['port']}{path}"


def _get(get: HttpGet, seconds: float) -> None:
    """Succeeds for a status from 200 to 399. A redirect to the same host is followed, another one is a success."""
    from urllib.parse import urljoin, urlsplit

    url = url_of(get)
    for _ in range(MOST_REDIRECTS + 1):
        status, location = _request(url, get, seconds)
        if status in (301, 302, 303, 307, 308) and location:
            target = urljoin(url, location)
            if urlsplit(target).hostname != urlsplit(url).hostname:
                return
            url = target
        elif 200 <= status < 400:
            return
        else:
            raise CheckFailed(f"HTTP probe failed with statuscode: {status}")
    raise CheckFailed(f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')


def _request(url: str, get: HttpGet, seconds: float) -> tuple[int, str]:
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host, port = parts.hostname or get["host"], parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme == "https":
        import ssl
        from http.client import HTTPSConnection

        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # as a kubelet: the certificate is not what the probe is about
        connection: HTTPConnection = HTTPSConnection(host, port, timeout=seconds, context=context)
    else:
        connection = HTTPConnection(host, port, timeout=seconds)
    headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Connection": "close", **dict(get["headers"])}
    try:
        connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""), headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Location") or ""
    except TimeoutError as error:
        raise CheckFailed(f'Get "{url}": context deadline exceeded') from error
    except OSError as error:
        raise CheckFailed(f'Get "{url}": dial tcp {host}:{port}: {_go_error(error)}') from error
    except HTTPException as error:
        raise CheckFailed(f'Get "{url}": {error or type(error).__name__}') from error
    finally:
        connection.close()


def _go_error(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    if error.errno and error.errno in errno.errorcode:
        return f"connect: {os.strerror(error.errno).lower()}"
    return f"lookup: {error.strerror or error}"
