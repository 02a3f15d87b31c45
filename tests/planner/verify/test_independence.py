"""The verifier imports no solver, no plan assembly and no price formulas of the model."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from types import ModuleType

import pytest
from tests.planner.solving import solve_unchecked
from tests.planner.verify.plans import PLANS
from tests.planner.whole_fleet import whole_candidates, whole_fleet

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.formulation import scaling
from fleetplan.planner.formulation.objective import data as data_costs
from fleetplan.planner.formulation.objective import supply as supply_costs
from fleetplan.planner.formulation.objective import tco as objective
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, capacity_costs
from fleetplan.planner.search.result import SearchLimits
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_fleet

OWN_RATES = Path(__file__).parents[3] / "scenarios" / "bring-your-own-rates" / "fleet.yaml"

FACTOR = 1.01

NO_PRICES = {
    "_sum",
    "_in_units",
    "guiding_cost",
    "unmet_exponent",
    "_unmet_weights",
    "owned_ages",
    "_running_terms",
    "change_terms",
    "prices_of_changes",
    "prices_of_running",
    "supply_charges",
    "fixed_usd",
    "supply_terms",
    "scenario_cost",
    "total_cost",
    "unmet_demand",
    "unmet_units",
    "unmet_requests_per_s",
}
"""Functions of these modules that return ages, counts, errors or expressions of the model."""

VERIFYING = """
import sys
from fleetplan.planner.cli import app
try:
    app(["verify", *sys.argv[1:]])
except SystemExit as end:
    assert end.code in (0, None), end.code
made_by = ["ortools", "highspy"]
made_by += [f"fleetplan.planner.{room}" for room in ("api", "formulation", "search", "assemble")]
loaded = [name for name in sys.modules if name.startswith(tuple(made_by))]
assert not loaded, loaded
assert "fleetplan.planner.verify" in sys.modules
"""


def test_verifying_loads_no_solver_and_nothing_that_made_the_plan(tmp_path: Path) -> None:
    planned = plan_fleet(load_fleet(OWN_RATES), SearchLimits(gap_ratio=0.01, workers=2))
    assert isinstance(planned.outcome, Plan)
    write_plan(planned.outcome, tmp_path)
    command = [sys.executable, "-c", VERIFYING, str(tmp_path / "plan.json"), str(OWN_RATES)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr + found.stdout
    assert "the plan holds" in found.stdout


def _dearer(value: object) -> object:
    """Money, one per cent more of it; whole numbers are counts, ages or steps and stay."""
    if isinstance(value, float):
        return value * FACTOR
    if isinstance(value, Mapping):
        return {name: _dearer(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_dearer(inner) for inner in value)
    return value


def _price_helpers() -> Iterator[tuple[ModuleType, str]]:
    """Every function of the modules in which the model and the plan get their prices from."""
    for module in (capacity_costs, tco, data_costs, supply_costs, objective):
        for name, each in inspect.getmembers(module, inspect.isfunction):
            if each.__module__ == module.__name__ and name not in NO_PRICES:
                yield module, name
    yield scaling, "usd_units"


def _poison(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> None:
    """Let a function answer one per cent more, wherever it was imported to."""
    helper: Callable[..., object] = getattr(module, name)

    @wraps(helper)
    def poisoned(*args: object, **named: object) -> object:
        found = helper(*args, **named)
        return round(found * FACTOR) if isinstance(found, int) else _dearer(found)

    for each in list(sys.modules.values()):
        if each.__name__.startswith("fleetplan."):
            for known, value in list(vars(each).items()):
                if value is helper:
                    monkeypatch.setattr(each, known, poisoned)


def _questions() -> list[tuple[Fleet, tuple[Candidate, ...]]]:
    """Two fleets that pay every price between them."""
    problem, _ = PLANS["day of two regions"]()
    return [(problem.fleet, problem.candidates), (whole_fleet(), tuple(whole_candidates()))]


OF_PRICES = {"cost", "retirement", "bill"}
"""Checks that recompute what something costs."""


@pytest.mark.parametrize(
    ("module", "name"), list(_price_helpers()), ids=lambda each: getattr(each, "__name__", each)
)
def test_a_price_that_the_model_has_wrong_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    questions = _questions()
    _poison(monkeypatch, module, name)
    families: set[str] = set()
    for fleet, candidates in questions:
        solved = solve_unchecked(fleet, candidates, gap=0.02)
        assert solved.plan is not None
        families |= {violation.family for violation in verify(solved.problem, solved.plan)}
        if families & OF_PRICES:
            return
    pytest.fail(
        f"no check of the verifier recomputes a price of {name}, or no plan of these fleets pays it "
        f"(tests/planner/whole_fleet.py); noticed by {sorted(families)} alone"
    )


def test_the_prices_are_right_where_nothing_is_poisoned() -> None:
    for fleet, candidates in _questions():
        solved = solve_unchecked(fleet, candidates, gap=0.02)
        assert solved.plan is not None
        assert verify(solved.problem, solved.plan) == []
