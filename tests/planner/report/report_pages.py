"""Parsed report pages for tests."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

from tests.planner.whole_fleet import EVIL, whole_plan

from fleetplan.planner.landscape.frontier_points import FrontierPoint
from fleetplan.planner.plan import Plan, Rejections
from fleetplan.planner.report.html.page import report_page


def plan() -> Plan:
    found = whole_plan().plan
    assert found is not None
    left_out = Rejections(service=EVIL, counts={"ttft": 7}, by_hardware={"A": {"ttft": 7}})
    return found.model_copy(update={"rejections": (left_out,)})


FRONTIER = tuple(
    FrontierPoint(EVIL, "decode", hardware, f"x{n}", "all", 10.0 * n, rate * n)
    for hardware, rate in (("A", 5.0), ("B", 9.0))
    for n in (1, 2, 3)
)


class ReportPage(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words += f" {data}"


@cache
def text() -> str:
    return report_page(plan(), FRONTIER, plan())
