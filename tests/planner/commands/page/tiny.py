"""A fleet that solves quickly, and its page."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx

FLEET = """\
# Kept: the first line.
version: 1
name: tiny
pools:
  - {name: own, hardware: H100-SXM, hosts: 1, owned: {capex_usd_per_host: 100000}}
offers:
  - {name: more, hardware: H100-SXM, rent_usd_per_accelerator_hour: 2.0, max_hosts: 9}   # kept, too
  - {name: book, hardware: H200-SXM, price_book: rental_3y, max_hosts: 1}
services:
  - {name: chat, engines: rates.csv, slo: {ttft_ms: 300}, demand: 50}
  - {name: mail, engines: rates.csv, slo: {}, demand: 2 M requests/day}
scenarios:
  growth: {services: [{name: chat, demand: 70}]}
"""
ENGINES = """\
phase,hardware,accelerators_per_replica,config,requests_per_s,ttft_ms
aggregated,H100-SXM,1,one,10,200
aggregated,H200-SXM,1,two,15,200
"""
TOKEN = "a-token-of-the-tests"
HOST = "127.0.0.1:8000"

TOO_LONG_S = 300.0
"""Until a test gives up on a plan: processes start slowly on a machine that is busy. [s]"""


def write_fleet(folder: Path, text: str = FLEET) -> Path:
    """Write the fleet and its rates, and return its file."""
    (folder / "rates.csv").write_text(ENGINES, encoding="utf-8")
    path = folder / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


class Page:
    """The page as a browser without a window sees it."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request to the application itself; its exceptions are those of the test."""

        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(self._application)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, path, **more)

        return asyncio.run(answer())

    def get(self, path: str = "", **more: Any) -> httpx.Response:
        """Ask for a page."""
        return self.ask("GET", f"/{TOKEN}/{path}", **more)

    def post(self, path: str, body: object, **more: Any) -> httpx.Response:
        """Send JSON."""
        return self.ask("POST", f"/{TOKEN}/{path}", json=body, **more)

    def state(self) -> dict[str, Any]:
        """Return the current state as sent to the browser."""
        return dict(self.get("state").json())

    def ended(self) -> dict[str, Any]:
        """Return the state after the solve that is running."""
        until = time.monotonic() + TOO_LONG_S
        while (state := self.state())["solving"] is not None:
            assert time.monotonic() < until, state
            time.sleep(0.05)
        return state

    def solve(self, begin: int | None = None, **changes: object) -> dict[str, Any]:
        """Plan with changes, and return the state after it."""
        answer = self.post("solve", {"changes": changes, "begin": begin})
        assert answer.status_code == 202, answer.text
        return self.ended()
