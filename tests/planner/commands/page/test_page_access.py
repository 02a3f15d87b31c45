"""Access control and content security policy of the page of `plan serve`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.planner.commands.page.tiny import FLEET, HOST, TOKEN, Page, write_fleet

from fleetplan.planner.commands.page.application import application
from fleetplan.planner.commands.page.messages import Settings
from fleetplan.planner.commands.page.session import Session


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "%00", "é"])
def test_a_wrong_token_sees_nothing(page: Page, token: str) -> None:
    for path in ("", "state", "plans/1/report.html", "static/page.js"):
        answer = page.ask("GET", f"/{token}/{path}")
        assert answer.status_code == 404
        assert "tiny" not in answer.text
    assert page.ask("POST", f"/{token}/solve", json={"changes": {}}).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1"])
def test_a_name_that_is_not_ours_sees_nothing(page: Page, host: str) -> None:
    answer = page.get("", headers={"host": host})
    assert answer.status_code == 403
    assert "tiny" not in answer.text


@pytest.mark.parametrize("host", [HOST, "localhost:8000", "[::1]:8000", "192.168.0.7"])
def test_addresses_and_this_machine_are_ours(page: Page, host: str) -> None:
    assert page.get("", headers={"host": host}).status_code == 200


def test_another_site_asks_in_vain(page: Page) -> None:
    for origin in ("http://evil.example", "http://127.0.0.1:9000", "null"):
        refused = page.post("solve", {"changes": {}}, headers={"origin": origin})
        assert refused.status_code == 403
    answer = page.post("stop", {"keep": True}, headers={"origin": f"http://{HOST}"})
    assert answer.status_code == 202
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_page_runs_no_script_but_its_own(page: Page) -> None:
    answer = page.get()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"<script[^>]*>(.*?)</script>", answer.text, flags=re.DOTALL) == [""]
    assert not re.search(r"<[^>]+\s(style|on\w+)=", answer.text)
    assert page.get("static/../session.py").status_code == 404
    assert page.get("static/page.html.j2").status_code == 404


def test_hostile_names_are_text(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>\"'&={{7*7}}"
    quoted = evil.replace("'", "''")
    text = FLEET.replace("name: chat", f"name: '{quoted}'").replace("name: more", f"name: '{quoted}'")
    text = text.replace("scenarios:\n  growth:", f"scenarios:\n  '{quoted}':")
    opened = Session(Settings(write_fleet(tmp_path, text), time_limit_s=20.0, gap_ratio=0.01, seed=1))
    try:
        page = Page(application(opened, TOKEN, "127.0.0.1"))
        shown = page.get().text
        assert "alert(1)" in shown
        assert "<script>alert" not in shown
        assert "49" not in shown
        changes = {
            "demand": {evil: 1.5},
            "prices": {evil: 0.5},
            "numbers": [[["services", evil, "slo", "ttft_ms"], 250], [["offers", evil, "max_hosts"], 8]],
        }
        state = page.solve(**changes)
        assert state["issues"] == []
        made = state["plans"][-1]
        assert "services.0.demand=75.0" in made["command"]
        assert "<script>alert" not in page.get(f"plans/{made['number']}/report.html").text
    finally:
        opened.close()
