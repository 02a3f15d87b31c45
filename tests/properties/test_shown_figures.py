"""Every figure of a plan that is shown in several places is the same in all of them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from tests.cache_home import own_cache_home
from tests.fuzz.commands import run
from tests.fuzz.fleets import random_fleet
from tests.measured import needs_tables
from tests.oracles.shown.compare import shown_faults
from tests.parts import first_parts
from tests.planner.whole_fleet import whole_plan

from fleetplan.planner.commands.terminal import console
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.export.workbook import WORKBOOK_FILE, workbook
from fleetplan.planner.plan import Plan, read_plan
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.write import write_report

FIRST = (931008, 931027, 931012)
"""Fleets with orders and interest, in euros, and with replicas of several hosts in a day of slices."""

SEEDS = (*FIRST, *(seed for seed in range(931000, 931047) if seed not in FIRST))


def printed(plan: Plan) -> tuple[str, str]:
    """Return the printed plan, in full and in brief."""
    texts = []
    for full in (True, False):
        out = StringIO()
        with redirect_stdout(out):
            print_plan(plan, console(), full)
        texts.append(out.getvalue())
    return texts[0], texts[1]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache_home(tmp_path_factory.mktemp("cache"))


@needs_tables
@pytest.mark.parametrize("seed", first_parts(SEEDS, 3, more=6))
def test_figures_of_random_plans_agree(
    seed: int, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    path = random_fleet(seed, 4).write(tmp_path)
    out = tmp_path / "out"
    answer = run(["solve", str(path), "--out", str(out), "--time-limit", "4", "--gap", "1%", "--full"])
    if (out / WORKBOOK_FILE).exists():
        assert [*shown_faults(out, answer.out, *printed(read_plan(out / "plan.json")))] == []
    else:
        assert answer.code in (3, 4), answer.errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a plan with every kind of price."""
    plan = whole_plan().plan
    assert plan is not None
    found = tmp_path_factory.mktemp("plan")
    write_plan(plan, found)
    write_report(plan, found, ())
    (found / WORKBOOK_FILE).write_bytes(workbook(plan))
    return found


def test_figures_of_a_plan_of_every_kind_of_price_agree(folder: Path) -> None:
    assert [*shown_faults(folder, *printed(read_plan(folder / "plan.json")))] == []


def page(folder: Path, pattern: str, other: str) -> None:
    path = folder / "report.html"
    text, count = re.subn(pattern, other, path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path.write_text(text, encoding="utf-8")


def table(name: str, column: str) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        path = folder / f"{name}.csv"
        head, first, *rest = path.read_text(encoding="utf-8").splitlines()
        at = head.split(",").index(column)
        cells = first.split(",")
        cells[at] = str(float(cells[at]) * 1.001 + 1e-6)
        path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n", encoding="utf-8")

    return changed


def plan_json(change: Callable[[dict], object]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    def changed(folder: Path) -> None:
        path = folder / "plan.json"
        plan = json.loads(path.read_text(encoding="utf-8"))
        change(plan)
        path.write_text(json.dumps(plan), encoding="utf-8")

    return changed


TAMPERED: dict[str, Callable[[Path], None]] = {
    "cost of a pool in a table": table("costs", "usd"),
    "price in a table": table("prices", "value"),
    "quantity of the bill": table("bill", "quantity"),
    "TCO on the page": lambda folder: page(folder, r"<dt>TCO</dt><dd>\$[0-9.]+", "<dt>TCO</dt><dd>$1.234"),
    "gap on the page": lambda folder: page(folder, r"Optimality gap [0-9.]+%", "Optimality gap 3.21%"),
    "segment of the map": lambda folder: page(folder, r'(: )(\d+)"></span>', r'\g<1>999"></span>'),
    "an order": lambda folder: page(folder, r"<td>(rent|buy) \d+ hosts?", "<td>rent 77 hosts"),
    "a waterfall": lambda folder: page(folder, r">depreciation</text>", ">energy</text>"),
    "idle capacity in plan.json": plan_json(lambda plan: plan["pools"][0].update(idle_usd=1.0)),
    "used accelerators": plan_json(lambda plan: plan["pools"][0].update(used_accelerators=1)),
    "the bound": plan_json(lambda plan: plan.update(bound_usd=0.9 * plan["bound_usd"])),
    "requests of a replica": plan_json(lambda plan: plan["placements"][0].update(requests_per_s=1.0)),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_another_figure_in_one_place_is_seen(what: str, folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "plan"
    shutil.copytree(folder, own)
    TAMPERED[what](own)
    assert [*shown_faults(own)]
