"""All comparisons of a plan's folder, and of what is printed of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.oracles.shown.amounts import Money
from tests.oracles.shown.files import table_faults, workbook_faults
from tests.oracles.shown.page import page_of
from tests.oracles.shown.report import report_faults
from tests.oracles.shown.screen import paragraph, screen_faults
from tests.oracles.shown.sums import sum_faults


def shown_faults(folder: Path, *screens: str) -> Iterator[str]:
    """Yield every figure that is another one in two places.

    Parameters
    ----------
    folder : Path
        What `plan solve --out` wrote.
    screens : str
        What was printed of the plan.
    """
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    stated = plan["inputs"]["currency"]
    money = Money() if stated is None else Money(stated["code"], stated["usd_per_unit"])
    yield from (f"plan.json: {each}" for each in sum_faults(plan))
    yield from (f"tables: {each}" for each in table_faults(plan, folder, money))
    yield from (f"plan.xlsx: {each}" for each in workbook_faults(plan, folder / "plan.xlsx", money))
    page = page_of((folder / "report.html").read_text(encoding="utf-8"))
    yield from (f"report.html: {each}" for each in report_faults(plan, page, money))
    said = page.first("p", kind="lead")
    for text in screens:
        yield from (f"screen: {each}" for each in screen_faults(plan, text, money))
        if said is None or not _alike(said.text, paragraph(text.splitlines(), "Decision: ")):
            yield f"decision: {said and said.text} on the page, another one on the screen"


def _alike(on_page: str, on_screen: str) -> bool:
    """Return whether two sentences differ in blanks and the first letter alone."""
    one, other = (re.sub(r"\s", "", text) for text in (on_page, on_screen.removeprefix("Decision: ")))
    return one[1:].removesuffix(".") == other[1:]
