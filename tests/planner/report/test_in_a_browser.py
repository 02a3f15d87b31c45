"""The report in a real browser: quiet, from no network, as wide as the window at 400 and 1400 pixels.

Skipped where there is no browser. On Debian: `apt-get install chromium chromium-driver`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.planner.report.test_html_report import FRONTIER, plan
from tests.planner.whole_fleet import EVIL

from fleetplan.planner.report.html.page import report_page

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no chromium and chromedriver on the PATH"
)

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

SIZES = [(width, scheme) for width in (400, 1400) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with a profile of its own."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = selenium.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=DRIVER))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(plan(), FRONTIER, plan()), encoding="utf-8")
    return path


def show(driver: Any, page: Path, width: int, scheme: str) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())
    # What is folded away must fit as well.
    driver.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_is_as_wide_as_the_window(driver: Any, page: Path, width: int, scheme: str) -> None:
    show(driver, page, width, scheme)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    outside = driver.execute_script(
        "return [...document.querySelectorAll('body *')].filter(each => !each.closest('.scroll') &&"
        " each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80))"
    )
    assert outside == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_logged_and_nothing_is_fetched(driver: Any, page: Path, width: int, scheme: str) -> None:
    driver.get_log("browser")
    driver.get_log("performance")
    show(driver, page, width, scheme)
    assert driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}


def test_a_printed_page_is_as_wide_as_the_paper_and_nothing_is_folded_away(driver: Any, page: Path) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        # A4 at 96 pixels an inch.
        {"width": 794, "height": 1123, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    driver.get(page.as_uri())
    try:
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 794
        folded = "[...document.querySelectorAll('details:not([open]) table')]"
        heights = driver.execute_script(f"return {folded}.map(each => each.getBoundingClientRect().height)")
        assert heights
        assert min(heights) > 0
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page(driver: Any, page: Path, scheme: str) -> None:
    show(driver, page, 1400, scheme)
    for where in ("body", ".quiet", ".note", "svg text", "nav a"):
        ink = _luminance(driver, where, "fill" if "svg" in where else "color")
        paper = _luminance(driver, "body", "backgroundColor")
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        # WCAG 2.1, level AA for text of normal size.
        assert contrast >= 4.5, f"{where} in {scheme}: {contrast:.2f}"


def _luminance(driver: Any, where: str, what: str) -> float:
    """Relative luminance by WCAG 2.1 of a colour as the browser computes it: `rgb(r, g, b)`."""
    colour = driver.execute_script(f"return getComputedStyle(document.querySelector('{where}')).{what}")
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_name_that_is_markup_is_read_as_it_is(driver: Any, page: Path) -> None:
    show(driver, page, 1400, "light")
    assert driver.execute_script("return document.scripts.length") == 0
    names = driver.execute_script("return [...document.querySelectorAll('td')].map(each => each.textContent)")
    assert EVIL in names
    drawn = driver.execute_script("return [...document.querySelectorAll('svg text')].map(e => e.textContent)")
    assert any(EVIL in each for each in drawn)
