"""Access control of the page: a secret token, an address of this machine, and the same origin."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: its own files only, no inline script or style."""

REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""Content-Security-Policy of reports, which have an inline style sheet, no script, and are framed by the
page.
"""

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The address contains the token.
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

MOST_BYTES: Final = 2**20
"""Maximum size of a request; the changes of a fleet with 10,000 numbers take several 100 kB. [B]"""


class Guard:
    """Forwards requests from the page itself, with the token removed from their path.

    Parameters
    ----------
    application : callable
        Application that answers them.
    token : str
        First part of every path.
    host : str
        Host on which the server was told to listen.
    """

    def __init__(self, application: Application, token: str, host: str) -> None:
        self._application = application
        self._token = token
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        refused = self._refused(scope)

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in more if each[0] not in own)]
            await send(message)

        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        await self._application(scope, receive, send_with_headers)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        asked = headers.get("host", "")
        # Refuse a foreign name that points to this machine (DNS rebinding).
        if not self._is_ours(asked):
            return PlainTextResponse("this page is not served under that name\n", 403)
        token = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("no such page: open the address that plan serve printed\n", 404)
        return None if scope["method"] in ("GET", "HEAD") else _refused_change(headers)

    def _is_ours(self, asked: str) -> bool:
        """Return whether a Host header is an IP address, localhost, or the name given to the server."""
        try:
            name = urlsplit(f"//{asked}").hostname or ""
        except ValueError:
            return False
        if name in ("localhost", self._host.lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _refused_change(headers: Mapping[str, str]) -> PlainTextResponse | None:
    """Refuse a request with side effects, unless it comes from the page itself."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return PlainTextResponse("requests from other sites are not allowed\n", 403)
    if headers.get("content-type", "").split(";")[0] != "application/json":
        return PlainTextResponse("send application/json\n", 415)
    length = headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MOST_BYTES:
        return PlainTextResponse(f"send at most {MOST_BYTES} bytes with a Content-Length\n", 413)
    return None
