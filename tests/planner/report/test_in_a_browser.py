"""The report in a browser: no console errors, no network, and full width at 400 and 1400 pixels.

Skipped without a browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parts import each_once, first_of
from tests.planner.browser import contrast, fetched, needs_browser, resize
from tests.planner.report.report_pages import FRONTIER, plan
from tests.planner.whole_fleet import EVIL

from fleetplan.planner.report.html.page import report_page

pytestmark = needs_browser

SIZES = each_once((400, 1400), ("light", "dark"), pytest.mark.more)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(plan(), FRONTIER, plan()), encoding="utf-8")
    return path


def show(driver: Any, page: Path, width: int, scheme: str) -> None:
    resize(driver, width, scheme)
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


@pytest.mark.parametrize("scheme", first_of(("light", "dark"), 1))
def test_a_table_that_goes_on_behind_an_edge_says_so(driver: Any, page: Path, scheme: str) -> None:
    show(driver, page, 400, scheme)
    assert driver.execute_script(
        "return [...document.querySelectorAll('.scroll')].some(each => each.scrollWidth > each.clientWidth)"
    )
    styles = driver.execute_script(
        "return [...document.querySelectorAll('.scroll')]"
        ".map(each => getComputedStyle(each).backgroundAttachment)"
    )
    assert set(styles) == {"local, local, scroll, scroll"}


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_logged_and_nothing_is_fetched(driver: Any, page: Path, width: int, scheme: str) -> None:
    driver.get_log("browser")
    driver.get_log("performance")
    show(driver, page, width, scheme)
    assert driver.get_log("browser") == []
    assert set(fetched(driver)) == {page.as_uri()}


def test_a_printed_page_is_as_wide_as_the_paper_and_shows_placements(driver: Any, page: Path) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        # A4 at 96 pixels an inch.
        {"width": 794, "height": 1123, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    driver.get(page.as_uri())
    try:
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 794
        # As in a report of more placements, which are folded on the screen.
        driver.execute_script("document.querySelector('details.printed').open = false")
        shown = {
            kind: driver.execute_script(
                f"return [...document.querySelectorAll('details{kind}:not([open]) table')]"
                ".map(each => each.checkVisibility())"
            )
            for kind in (".printed", ":not(.printed)")
        }
        # Bills and the excluded of each hardware stay folded: paper has as many pages as decisions need.
        assert set(shown[".printed"]) == {True}
        assert set(shown[":not(.printed)"]) == {False}
        last = "[...document.querySelectorAll('section')].slice(-2).map(each => each.id)"
        assert driver.execute_script(f"return {last}") == ["frontiers", "rejections"]
        # What no page break divides leaves less than a quarter of a page empty before it.
        drawn = "[...document.querySelectorAll('.figure')]"
        figures = driver.execute_script(f"return {drawn}.map(each => each.getBoundingClientRect().height)")
        assert 0 < max(figures) < 1123 / 4
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_headings_make_no_table_wider_than_a_narrow_screen(driver: Any, page: Path) -> None:
    show(driver, page, 390, "light")
    styles = driver.execute_script(
        "return [...document.querySelectorAll('th')].map(each => getComputedStyle(each).whiteSpace)"
    )
    assert set(styles) == {"normal"}


def test_text_stands_out_from_the_page(driver: Any, page: Path) -> None:
    show(driver, page, 1400, "light")
    for scheme in ("light", "dark"):
        resize(driver, 1400, scheme)
        for where in ("body", ".quiet", ".note", "svg text", "nav a"):
            found = contrast(driver, where, "fill" if "svg" in where else "color")
            # WCAG 2.1, level AA for text of normal size.
            assert found >= 4.5, f"{where} in {scheme}: {found:.2f}"


def test_a_name_that_is_markup_is_read_as_it_is(driver: Any, page: Path) -> None:
    show(driver, page, 1400, "light")
    assert driver.execute_script("return document.scripts.length") == 0
    names = driver.execute_script("return [...document.querySelectorAll('td')].map(each => each.textContent)")
    assert EVIL in names
    drawn = driver.execute_script("return [...document.querySelectorAll('svg text')].map(e => e.textContent)")
    assert any(EVIL in each for each in drawn)
