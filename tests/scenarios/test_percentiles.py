"""Cost of percentiles: a plan on mean lengths misses them in replay, a plan for them meets them."""

from importlib.resources import as_file, files
from pathlib import Path

import pytest
from tests.parts import first_parts

from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.replay.outcome import ReplayOutcome
from fleetplan.planner.replay.run import ReplayScope, replay_plan
from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios import __name__ as scenarios_package
from fleetplan.scenarios.load import load_fleet


def scenario_file(name: str = "percentiles") -> Path:
    with as_file(files(scenarios_package)) as folder:
        return folder / f"{name}.yaml"


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    found = {}
    for name, scenarios in (("percentiles", ()), ("means", ("means",))):
        fleet = load_fleet(scenario_file(), scenarios, ())
        outcome = plan_fleet(fleet, SearchLimits(30.0, 5e-3, seed=1, workers=2)).outcome
        assert isinstance(outcome, Plan)
        found[name] = outcome
    return found


def replayed(plan: Plan, seed: int) -> ReplayOutcome:
    # Real lengths and bursts, whatever the plan was made on.
    problem = build_problem(load_fleet(scenario_file()), ())
    choice = TrafficChoice(Arrivals.AS_PLANNED, duration_s=200.0, seed=seed)
    return replay_plan(problem, plan, choice, ReplayScope("2027Q1"))


# `make test` has the same of a fleet of two services: tests/planner/replay/test_replay.py.
@pytest.mark.more
@pytest.mark.parametrize("seed", first_parts((1, 2, 3), 1))
def test_the_plan_for_percentiles_holds_and_the_one_on_means_does_not(
    plans: dict[str, Plan], seed: int
) -> None:
    assert replayed(plans["percentiles"], seed).holds
    assert not replayed(plans["means"], seed).holds


@pytest.mark.more
def test_the_difference_has_a_price(plans: dict[str, Plan]) -> None:
    ratio = plans["percentiles"].objective_usd / plans["means"].objective_usd
    assert 1.0 < ratio < 1.35


def test_the_ratio_of_prefill_to_decode_moves_with_the_mix_and_static_pools_cost() -> None:
    plans = []
    for scenarios in ((), ("static",)):
        fleet = load_fleet(scenario_file("prefill-decode-day"), scenarios, ())
        outcome = plan_fleet(fleet, SearchLimits(30.0, 1e-2, seed=1, workers=2)).outcome
        assert isinstance(outcome, Plan)
        plans.append(outcome)
    elastic, static = plans
    ratios = {row.slice: row.ratio for row in elastic.phase_ratios}
    assert ratios["day"] > 2.0
    assert ratios["evening"] < 0.5
    assert len({round(row.ratio, 6) for row in static.phase_ratios}) == 1
    assert static.objective_usd > 1.25 * elastic.objective_usd
