"""A visitor of the page: one browser context, what it saw, and what went wrong in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CANARY_CALLED = "canary called"
SECONDS = 30_000
"""Milliseconds that a test waits for something to appear."""
WATCHING = Path(__file__).with_name("watching.js")


class Visitor:
    """`address` is where the page is, without a slash at the end."""

    def __init__(self, chromium: Any, address: str, **options: Any) -> None:
        self.address = address
        self.console: list[str] = []
        self.troubles: list[str] = []
        self.requests: list[str] = []
        settings = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light", **options}
        self._context = chromium.new_context(**settings)
        self._context.set_default_timeout(SECONDS)
        self._context.add_init_script(path=WATCHING)
        self.page = self._context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        self.page.on("request", self._requested)

    def _heard(self, message: Any) -> None:
        self.console.append(message.text)
        if message.text.startswith("csp ") or "Content Security Policy" in message.text:
            self.troubles.append(message.text)

    def _requested(self, request: Any) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.troubles.append(f"a request to {request.url}")

    def sign_in(self, secret: str) -> None:
        """As the form does."""
        headers = {"Origin": self.address, "Content-Type": "application/json"}
        answer = self._context.request.post(
            f"{self.address}/api/session", data=json.dumps({"secret": secret}), headers=headers
        )
        assert answer.status == 200, answer.text()

    def go(self, path: str = "/") -> Any:
        self.page.goto(f"{self.address}{path}")
        return self.page

    def first_paint(self) -> float:
        """Opens the first page and returns when the browser first painted something of it: milliseconds since the
        navigation began."""
        page = self.go("/")
        page.locator("main h1").first.wait_for()
        return float(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))

    def close(self) -> None:
        self._context.close()


def address_of(directory: Path) -> str:
    return f"http://127.0.0.1:{(directory / 'ui-port').read_text().strip()}"


def key_of(directory: Path) -> str:
    return (directory / "ui-key").read_text().strip()
