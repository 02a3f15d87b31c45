"""The page of `plan serve` in a browser: change, plan, compare and save, also by keyboard alone."""

from __future__ import annotations

import base64
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.parts import first_of
from tests.planner.browser import contrast, fetched, needs_browser, resize
from tests.planner.commands.page.tiny import FLEET, TOO_LONG_S, write_fleet

from fleetplan.planner.commands.page.messages import Settings

pytestmark = needs_browser

TAB, ENTER, RIGHT = "\ue004", "\ue007", "\ue014"

SIZES = first_of(((390, "light"), (1300, "dark"), (390, "dark"), (1300, "light")), 1)


@dataclass(frozen=True)
class Served:
    """A page that is served, with its fleet file."""

    address: str
    fleet: Path
    session: Any

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the process that plans wait meanwhile."""
        process = self.session._process._process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)


@contextmanager
def served(folder: Path, text: str = FLEET) -> Iterator[Served]:
    """Run `plan serve` in a thread of this process."""
    from fleetplan.planner.commands.page import server  # noqa: PLC0415 - an extra

    fleet = write_fleet(folder, text)
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    sessions: queue.SimpleQueue[Any] = queue.SimpleQueue()
    servers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def kept(kind: Callable[..., Any], made: queue.SimpleQueue[Any]) -> Callable[..., Any]:
        def make(given: object) -> object:
            made.put(one := kind(given))
            return one

        return make

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "echo", lambda line, **_: said.put(line))
        patched.setattr(server, "Session", kept(server.Session, sessions))
        patched.setattr(server.uvicorn, "Server", kept(server.uvicorn.Server, servers))
        settings = Settings(fleet, time_limit_s=20.0, gap_ratio=0.01, seed=1)
        given = (settings, ((), ()), "127.0.0.1", 0)
        serving = threading.Thread(target=server.serve_page, args=given, kwargs={"show": False})
        serving.start()
        session, address, listening = (each.get(timeout=TOO_LONG_S) for each in (sessions, said, servers))
    try:
        yield Served(address, fleet, session)
    finally:
        listening.should_exit = True
        serving.join(TOO_LONG_S)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fleet")) as found:
        yield found


def until(true: Callable[[], object]) -> None:
    """Wait for something; what is not there yet may come."""
    ends = time.monotonic() + TOO_LONG_S
    while not true():
        assert time.monotonic() < ends, true
        time.sleep(0.05)


def shown(driver: Any, selector: str) -> bool:
    script = "const e = document.querySelector(arguments[0]); return e !== null && e.checkVisibility()"
    return bool(driver.execute_script(script, selector))


def text(driver: Any, selector: str) -> str:
    return str(driver.execute_script("return document.querySelector(arguments[0]).textContent", selector))


def inside(driver: Any) -> str:
    """Text of the report or comparison that is shown."""
    return str(
        driver.execute_script("return document.querySelector('#report').contentDocument.body.innerText")
    )


def n_plans(driver: Any) -> int:
    return int(driver.execute_script("return document.querySelectorAll('#made tr').length"))


def open_page(driver: Any, page: Served, width: int = 1300, scheme: str = "light") -> None:
    resize(driver, width, scheme)
    driver.get(page.address)
    until(lambda: shown(driver, "#report"))


def press(driver: Any, keys: str) -> None:
    driver.switch_to.active_element.send_keys(keys)


def tab_to(driver: Any, selector: str) -> None:
    """Press Tab until the focus is there."""
    at = "return document.activeElement.matches(arguments[0])"
    for _ in range(100):
        if driver.execute_script(at, selector):
            return
        press(driver, TAB)
    raise AssertionError(f"no way to {selector} by Tab")


def test_the_first_load_shows_the_plan_of_the_file_and_fetches_from_nowhere_else(
    driver: Any, page: Served
) -> None:
    driver.get_log("browser")
    driver.get_log("performance")
    open_page(driver, page)
    assert "total cost of ownership" in inside(driver)
    assert text(driver, "h1") == "tiny"
    assert text(driver, "#which") == "Plan 1: the file as it is"
    assert driver.get_log("browser") == []
    asked = fetched(driver)
    assert asked
    assert [url for url in asked if not url.startswith(page.address)] == []


def test_on_paper_the_plan_begins_on_the_first_page(driver: Any, page: Served) -> None:
    open_page(driver, page)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert shown(driver, "#report")
        assert driver.execute_script("return document.querySelector('#report').offsetTop") < 30
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def on_paper(driver: Any) -> bytes:
    """The PDF that the browser prints of what it shows."""
    return base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])


def pages_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.more
def test_the_whole_plan_is_printed_as_its_report_is(driver: Any, page: Served, tmp_path: Path) -> None:
    """Page for page what the report is on its own; a frame is cut at the end of a page."""
    open_page(driver, page)
    driver.get_log("browser")
    printed = {"page": on_paper(driver)}
    assert driver.get_log("browser") == []
    # Nothing is left of it, and the page is as it was.
    assert not driver.execute_script("return document.querySelector('#printed').shadowRoot.hasChildNodes()")
    assert shown(driver, "#report")
    assert shown(driver, "#plans")
    driver.get(driver.execute_script("return document.querySelector('#report').src"))
    printed["report"] = on_paper(driver)
    assert pages_of(printed["page"]) == pages_of(printed["report"]) > 2
    to_text = shutil.which("pdftotext")
    if to_text is None:
        return
    words = {}
    for name, pdf in printed.items():
        file = tmp_path / f"{name}.pdf"
        file.write_bytes(pdf)
        done = subprocess.run([to_text, "-layout", str(file), "-"], capture_output=True, check=True)
        words[name] = done.stdout.decode().split()
    assert words["page"] == words["report"]


def test_without_a_mouse_a_slider_is_moved_planned_compared_and_saved(driver: Any, page: Served) -> None:
    open_page(driver, page)
    before = n_plans(driver)
    tab_to(driver, "[data-kind=demand][data-name=chat] input[type=range]")
    press(driver, RIGHT * 30)
    assert text(driver, "#changed") == "demand of chat +30 %"
    assert driver.switch_to.active_element.get_attribute("aria-valuetext") == "+30 %"
    tab_to(driver, "button.main")
    with page.held():
        press(driver, ENTER)
        until(lambda: shown(driver, "#solving"))
        assert text(driver, "#asked") == "demand of chat +30 %"
        assert shown(driver, "#cancel")
        # Nobody starts a second one, and the focus stays.
        assert driver.execute_script(
            "return document.activeElement.matches('button.main[aria-disabled=true]')"
        )
    until(lambda: n_plans(driver) == before + 1)
    until(lambda: shown(driver, "#report"))
    assert text(driver, "#which") == f"Plan {before + 1}: demand of chat +30 %"
    tab_to(driver, "[data-button='compare plan 1 with plan 2']")
    press(driver, ENTER)
    until(lambda: shown(driver, "#report") and "plan 1 beside plan 2" in inside(driver).lower())
    assert text(driver, "#which") == "Plan 1 beside plan 2"
    tab_to(driver, "#save input")
    press(driver, "more-chat")
    press(driver, ENTER)
    until(lambda: "Saved as scenario more-chat" in text(driver, "#done"))
    written = page.fleet.read_text(encoding="utf-8")
    assert "more-chat: {services: [{name: chat, demand: 65.0}]}" in written
    assert "# Kept: the first line." in written
    open_page(driver, page)
    options = driver.execute_script(
        "return [...document.querySelectorAll('.scenario option')].map(e => e.value)"
    )
    assert options == ["", "growth", "more-chat"]


@pytest.mark.more
def test_a_solve_that_is_cancelled_leaves_no_plan(driver: Any, page: Served) -> None:
    open_page(driver, page)
    before = n_plans(driver)
    driver.execute_script("document.querySelector('#demand-0').value = '10'")
    with page.held():
        driver.execute_script("document.querySelector('button.main').click()")
        until(lambda: shown(driver, "#cancel"))
        driver.execute_script("document.querySelector('#cancel').focus()")
        press(driver, ENTER)
        until(lambda: text(driver, "#doing") == "cancelling")
    until(lambda: text(driver, "#note") == "Cancelled.")
    assert not shown(driver, "#solving")
    assert driver.execute_script("return document.activeElement.id") == "answer"
    assert n_plans(driver) == before
    # What was cancelled is no word on the next one.
    with page.held():
        driver.execute_script("document.querySelector('button.main').click()")
        until(lambda: shown(driver, "#solving"))
        assert text(driver, "#note") == ""
    until(lambda: n_plans(driver) == before + 1)


@pytest.mark.more
def test_mistakes_are_shown_where_they_were_made(driver: Any, page: Served) -> None:
    open_page(driver, page)
    driver.execute_script("document.querySelector('#other').value = 'services.chta.headroom=0.1'")
    driver.execute_script("document.querySelector('button.main').click()")
    until(lambda: shown(driver, "#refused"))
    assert "did you mean 'chat'?" in text(driver, "#refused")
    # The same mistake is said once more.
    driver.execute_script("document.querySelector('#refused').hidden = true")
    driver.execute_script("document.querySelector('button.main').click()")
    until(lambda: shown(driver, "#refused"))


@pytest.mark.more
def test_a_refusal_stays_until_something_is_planned(driver: Any, page: Served) -> None:
    open_page(driver, page)
    right = page.fleet.read_text(encoding="utf-8")
    page.fleet.write_text(right.replace("services:", "servises:"), encoding="utf-8")
    try:
        driver.execute_script("document.querySelector('button.main').click()")
        until(lambda: "did you mean 'services'?" in text(driver, "#refused"))
        # The page has asked how things are meanwhile.
        time.sleep(2.5)
        assert shown(driver, "#refused")
    finally:
        page.fleet.write_text(right, encoding="utf-8")
    # A number that is wrong and folded away is unfolded.
    driver.execute_script(
        "const e = document.querySelector('[data-kind=demand] input[type=number]'); e.value = -150;"
        "e.closest('details').open = false; document.querySelector('button.main').click()"
    )
    until(lambda: shown(driver, "[data-kind=demand] input[type=number]"))


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_is_as_wide_as_the_window_and_can_be_read(
    driver: Any, page: Served, width: int, scheme: str
) -> None:
    open_page(driver, page, width, scheme)
    driver.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    outside = driver.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()"
        " && !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML)"
    )
    assert outside == []
    # Buttons are never scrolled out of sight, and fingers hit them.
    sizes = driver.execute_script(
        "return [...document.querySelectorAll('button, select, input[type=number]')]"
        ".filter(e => e.checkVisibility())"
        ".map(e => [e.outerHTML, e.getBoundingClientRect().right, e.getBoundingClientRect().height])"
    )
    assert [each for each in sizes if each[1] > width or each[2] < 24] == []
    for where in (".quiet", "summary", "#changed", "th"):
        assert contrast(driver, where) >= 4.5, where
    assert contrast(driver, "button.main", behind="button.main") >= 4.5


@pytest.mark.more
def test_names_that_are_markup_are_read_as_they_are(driver: Any, tmp_path: Path) -> None:
    evil = "<img/src=x/onerror=alert(1)>\"'&"
    quoted = evil.replace("'", "''")
    with served(tmp_path, FLEET.replace("name: chat", f"name: '{quoted}'")) as page:
        open_page(driver, page)
        assert evil in driver.execute_script(
            "return [...document.querySelectorAll('b')].map(e => e.textContent)"
        )
        assert driver.execute_script("return document.images.length") == 0
        row = driver.execute_script(
            "return [...document.querySelectorAll('[data-kind=demand]')]"
            ".find(e => e.dataset.name === arguments[0])",
            evil,
        )
        row.find_element("css selector", "input[type=range]").send_keys(RIGHT)
        assert text(driver, "#changed") == f"demand of {evil} +1 %"
        driver.execute_script("document.querySelector('button.main').click()")
        until(lambda: n_plans(driver) == 2)
        assert text(driver, "#which") == f"Plan 2: demand of {evil} +1 %"
        assert driver.execute_script("return document.images.length") == 0
        assert driver.execute_script("return document.scripts.length") == 1
