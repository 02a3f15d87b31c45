"""Random fleets as files cost the same by the planner and by a second formulation of the documentation.

`make soak` does the same for a thousand larger fleets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.oracles.independent.compare import FAILED, Verdict, compare, compare_plan
from tests.oracles.independent.fleets import random_fleet
from tests.oracles.independent.planned import INFEASIBLE, PLAN, Planned, planned
from tests.oracles.independent.reading import read_facts
from tests.oracles.independent.worker import Oracle, OracleError
from tests.parts import first_of, first_parts

FLEETS = 100
BLOCKS = 10
"""Parts that the fleets are tried in."""

MOST_CELLS = 2
"""Regions, periods, slices and scenarios together: larger fleets take seconds each."""

TIME_LIMIT_S = 2.0
WORKERS = 8
FEWEST_PLANS = 5
"""Of each block: fleets that cannot be served say little."""

WITH_A_PLAN = 1
"""Seed of a fleet that can be served."""

ROUNDED_BUDGET = 20023
"""Seed of a fleet whose operating budget decides how much is unmet."""

ROUNDED_DATA = 917598
"""Seed of a fleet of $7,297 that pays $18.96 for data: a load unit more is carried for 1.3 cents."""

TIGHT_FOR_HIGHS = (917123, 919880, 919796)
"""Seeds of fleets of $75,039, $33,418 and $90,245 of which HiGHS proves $87,867, $41,478 and $204,011: of the
first with its presolve, of the others without."""

ALIKE_SCENARIOS = 900463
"""Seed of a fleet with two scenarios of the same demand: a plan for each left less unmet within a budget that
holds in expectation."""

OWN_RATES = Path(__file__).parents[2] / "scenarios" / "bring-your-own-rates" / "fleet.yaml"
OWN_RATES_USD = 4.68 * 2190
"""By hand, in the scenario's README: one big replica and one small one for a quarter."""


ORACLE_LIMITS_S = (10.0, 30.0)
"""Time of an answer; the hardest fleet but one takes two seconds, and one more than the longer. [s]"""


@pytest.fixture(scope="module", params=first_parts(ORACLE_LIMITS_S, 1))
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with Oracle(request.param) as started:
        yield started


@pytest.mark.parametrize("block", first_parts(range(BLOCKS), 1))
def test_random_fleets_have_one_optimum(block: int, oracle: Oracle, tmp_path: Path) -> None:
    size = FLEETS // BLOCKS
    verdicts: Counter[Verdict] = Counter()
    for seed in range(block * size, (block + 1) * size):
        path = random_fleet(seed, MOST_CELLS).write(tmp_path / str(seed))
        found = compare(path, oracle, time_limit_s=TIME_LIMIT_S, workers=WORKERS)
        assert found.verdict not in FAILED, f"seed {seed}: {found.verdict}: {found.text}"
        verdicts[found.verdict] += 1
    assert verdicts[Verdict.AGREE] >= FEWEST_PLANS


def test_scenarios_of_the_same_demand_are_one(tmp_path: Path) -> None:
    moments = read_facts(random_fleet(ALIKE_SCENARIOS).write(tmp_path)).moments
    assert [(moment.period, moment.probability) for moment in moments] == [(0, 1.0), (1, 1.0), (2, 1.0)]


def test_an_optimum_by_hand(oracle: Oracle) -> None:
    value, bound = oracle.ask(OWN_RATES)["cost"]
    assert value == pytest.approx(OWN_RATES_USD)
    assert bound == pytest.approx(OWN_RATES_USD)


@pytest.mark.parametrize(
    ("factor", "bound_factor", "verdict", "text"),
    [
        (0.99, 0.99, Verdict.DISAGREE, "better than possible"),
        (1.01, 1.01, Verdict.DISAGREE, "worse than possible"),
        (1.01, 1.0, Verdict.OPEN, "cost"),
    ],
)
def test_a_wrong_plan_is_told(
    factor: float, bound_factor: float, verdict: Verdict, text: str, oracle: Oracle, tmp_path: Path
) -> None:
    # No share, class or replica of this fleet is met exactly.
    path = random_fleet(WITH_A_PLAN, 1).write(tmp_path)
    right = planned(path, TIME_LIMIT_S, WORKERS)
    assert compare_plan(path, oracle, right).verdict is Verdict.AGREE
    wrong = replace(right, usd=right.usd * factor, bound_usd=right.bound_usd * bound_factor)
    found = compare_plan(path, oracle, wrong)
    assert found.verdict is verdict
    assert text in found.text


def test_a_false_proof_of_infeasibility_is_told(oracle: Oracle) -> None:
    assert compare_plan(OWN_RATES, oracle, Planned(INFEASIBLE)).verdict is Verdict.DISAGREE


def test_a_plan_of_an_impossible_fleet_is_told(oracle: Oracle, tmp_path: Path) -> None:
    made = random_fleet(0, 1)
    made.file |= {"pools": [], "offers": [], "policy": {}, "objective": "tco"}
    path = made.write(tmp_path)
    assert oracle.ask(path) == {}
    found = compare_plan(path, oracle, Planned(PLAN, usd=1.0, bound_usd=1.0))
    assert found.verdict is Verdict.DISAGREE


def test_a_key_that_the_formulation_leaves_out_is_refused(oracle: Oracle, tmp_path: Path) -> None:
    made = random_fleet(0, 1)
    made.file["kv_links"] = []
    with pytest.raises(OracleError, match="kv_links"):
        oracle.ask(made.write(tmp_path))


@pytest.mark.more
def test_a_plan_within_the_tolerance_of_one_figure_is_compared_in_the_next(
    oracle: Oracle, tmp_path: Path
) -> None:
    """An operating budget that is met to 1e-7 leaves 2e-6 less unmet than it does exactly."""
    path = random_fleet(ROUNDED_BUDGET).write(tmp_path)
    found = compare(path, oracle, time_limit_s=10.0, workers=WORKERS)
    assert found.verdict is Verdict.AGREE, found.text


@pytest.mark.parametrize("seed", first_of((ROUNDED_DATA, *TIGHT_FOR_HIGHS), 3))
def test_fleets_that_disagreed_agree(seed: int, oracle: Oracle, tmp_path: Path) -> None:
    found = compare(random_fleet(seed).write(tmp_path), oracle, time_limit_s=10.0, workers=WORKERS)
    assert found.verdict is Verdict.AGREE, found.text
