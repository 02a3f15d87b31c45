"""Deterministic runs give the same plan.json on any number of cores, beside whatever else runs."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.parts import first_parts
from tests.planner.builders import fleet, hardware, region, rent_offer, service
from tests.planner.questions.tiny import engine_table

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner import api
from fleetplan.planner.api import NoPlanFoundError, plan_fleet
from fleetplan.planner.plan import Infeasible
from fleetplan.planner.questions.solve_outcome import stated_outcome
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

SCENARIOS = Path(__file__).parents[3] / "scenarios"

WITHIN_SECONDS = (
    ("tiny.yaml", 0.5),
    ("uncertain.yaml", 0.1),
    ("uncertain.yaml", 0.5),
    ("region-loss.yaml", 0.5),
)
"""With the limit of these runs. [s of counted work]"""

# Ends with the test, also where that is killed.
BURN = "import os\nwhile os.getppid() > 1: pass"


@contextmanager
def burning(processes: int) -> Iterator[None]:
    """Processes that take as many cores, for as long as the context lasts."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def planned(path: Path, workers: int, limit_s: float, gap: float) -> str:
    """plan.json without the time of the run."""
    limits = SearchLimits(limit_s, gap, workers=workers, reproducible=True)
    try:
        found = plan_fleet(load_fleet(path), limits).outcome
    except NoPlanFoundError as error:
        return str(error)
    solve = found.solve.model_copy(update={"wall_s": 0.0})
    stated = found.provenance.model_copy(update={"created": ""})
    return found.model_copy(update={"solve": solve, "provenance": stated}).model_dump_json()


@pytest.mark.parametrize(("name", "work_s"), first_parts(WITHIN_SECONDS, 1))
def test_a_deterministic_run_repeats_bit_for_bit_beside_others(name: str, work_s: float) -> None:
    # With so little work most of these end at their limit, which must be at the same step.
    alone = planned(SCENARIOS / name, 2, work_s, 0.0)
    with burning(1):
        assert planned(SCENARIOS / name, 1, work_s, 0.0) == alone


@pytest.mark.parametrize("reproducible", [False, True])
def test_a_deterministic_search_knows_of_no_clock(
    reproducible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No decision of a deterministic search depends on the time left."""
    known: list[bool] = []
    real = api._searched

    def searched(*arguments: Any) -> Any:
        known.append(arguments[1].limits.latest.ends < math.inf)
        return real(*arguments)

    monkeypatch.setattr(api, "_searched", searched)
    limits = SearchLimits(0.5, 0.01, workers=1, reproducible=reproducible)
    plan_fleet(load_fleet(SCENARIOS / "tiny.yaml"), limits)
    assert known == [not reproducible]


@pytest.mark.more
def test_the_reasons_of_an_infeasible_fleet_repeat_however_fast_the_clock_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reasons of an infeasible fleet depend on counted work, not on the clock."""
    rates = engine_table([("aggregated", "A", 1, 10.0)], power_kw=1.0)
    services = [service(f"s{i}", 10.0 * (i + 1), engines=rates) for i in range(4)]
    asked = fleet(
        services=services,
        hardware=[hardware("A", 4)],
        offers=[rent_offer("a", 1.0, hardware="A", maximum=9)],
        regions=[region("here", power_kw=(7.0,))],
    )

    def explained(workers: int) -> str:
        limits = SearchLimits(2.0, 1e-3, workers=workers, reproducible=True)
        found = stated_outcome(asked, limits, None, lambda _: None, plan_fleet(asked, limits))
        assert isinstance(found, Infeasible)
        assert found.shortages
        assert found.conflict is not None
        stated = found.provenance.model_copy(update={"created": ""})
        solve = found.solve.model_copy(update={"wall_s": 0.0})
        return found.model_copy(update={"provenance": stated, "solve": solve}).model_dump_json()

    first = explained(2)
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: 1000 * real())
    assert explained(1) == first


def scenarios() -> list[Path]:
    """Fleets to plan: all but the templates, whose figures are to be replaced."""
    return [path for path in sorted(SCENARIOS.rglob("*.yaml")) if "templates" not in path.parts]


@pytest.mark.slow
@pytest.mark.parametrize("path", scenarios(), ids=lambda path: str(path.relative_to(SCENARIOS)))
def test_every_scenario_repeats_bit_for_bit_beside_others(path: Path) -> None:
    alone = planned(path, 2, 10.0, 1e-3)
    with burning(usable_cores()):
        assert planned(path, 1, 10.0, 1e-3) == alone
        assert planned(path, 2, 10.0, 1e-3) == alone
