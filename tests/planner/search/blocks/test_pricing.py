"""Prices between rounds: how far they may go, and when rounds wait for a better plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.planner.random_fleets import large_case
from tests.planner.search.blocks.test_bound import built, parts_of

from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks import neighbourhoods, periods, pricing_search
from fleetplan.planner.search.blocks.bound import Lagrangian, Priced
from fleetplan.planner.search.blocks.columns import Column, ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.integer_supply import IntegerSupply
from fleetplan.planner.search.blocks.master import Master, PriceRange, Scope, Selection
from fleetplan.planner.search.blocks.pricing import (
    FIRST_SMOOTHING,
    LARGEST_SHARE,
    LEAST_SMOOTHING,
    Prices,
    pricing_jobs,
)
from fleetplan.planner.search.blocks.pricing_search import PricingSearch
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.blocks.supply_rounds import SupplyRounds
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.result import SearchLimits
from fleetplan.planner.search.solvers.highs_jobs import Effort, Job
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.workers import Workers

EFFORT = Effort(1.0, 100, 0.01)

ENOUGH_JOBS = 4
"""Neighbourhoods after which the short one of two tests ends."""


def prices_at(*best: float, box: float = 0.5) -> Prices:
    return Prices(np.zeros(len(best)), np.array(best), 90.0, box=box, smoothing=LEAST_SMOOTHING)


def steps_of_a_search(
    monkeypatch: pytest.MonkeyPatch,
    large: bool,
    work_s: float = 0.35,
    seen_all: Callable[[list[str]], bool] = lambda _: False,
) -> list[str]:
    """Return the rounds and neighbourhoods of a search in order, until all wanted steps are seen.

    A large fleet is searched for longer, to the end.
    """
    steps: list[str] = []
    stop = Stop()
    for name in ("_price_blocks", "_improve"):
        whole = getattr(PricingSearch, name)

        def noted(self: PricingSearch, *given: object, name: str = name, whole: object = whole) -> object:
            steps.append(name)
            if not large and seen_all(steps):
                stop.request()
            return whole(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(PricingSearch, name, noted)
    case = large_case(2, 4, 2, 3) if large else large_case(1, 2, 2, 1)
    problem = build_problem(case.fleet, case.candidates)
    limits = SearchLimits(10.0 if large else work_s, 0.0, 1, 2, reproducible=True)
    result = search(problem, limits, stop=stop)
    assert result.objective_usd is not None
    assert result.bound_usd is not None
    assert result.bound_usd <= result.objective_usd
    return steps


def prices_after_an_improvement(steps: list[str]) -> bool:
    """Return whether blocks were priced again after an improvement of the plan."""
    return "_improve" in steps and "_price_blocks" in steps[steps.index("_improve") :]


def waited_or_improved_often(steps: list[str]) -> bool:
    """Return whether a pricing round followed an improvement, or two improvements passed without one."""
    return prices_after_an_improvement(steps) or steps.count("_improve") > 4


def test_the_box_of_a_price_of_zero_is_as_wide_as_the_master_lp_s_price() -> None:
    near = prices_at(0.0, 0.0, -2.0, 4.0).near(np.array([-100.0, 0.0, 0.0, 1.0]))
    # The median of those that are not zero is 3: the width of the second box.
    assert near.lower.tolist() == [-50.0, -1.5, -3.5, 2.0]
    assert near.upper.tolist() == [50.0, 1.5, -0.5, 6.0]


def test_next_prices_are_between_the_best_and_the_master_lps() -> None:
    prices = prices_at(10.0, -10.0)
    assert prices.to_gain == prices.spread == math.inf
    prices.follow(100.0, np.array([20.0, 0.0]))
    assert prices.current.tolist() == pytest.approx([17.0, -3.0])
    assert (prices.to_gain, prices.spread) == (10.0, 0.1)


def test_next_prices_stay_nearer_to_the_best_after_rounds_that_prove_less() -> None:
    prices = Prices(np.zeros(1), np.zeros(1), -math.inf)
    weights = []
    for bound in (50.0, 20.0, 30.0, 60.0, 70.0, *range(80, 90)):
        prices.note(prices.current, bound, np.zeros(1))
        prices.follow(100.0, prices.best + 1.0)
        weights.append(1.0 - float(prices.current[0] - prices.best[0]))
    # The first round says nothing of the master LP, which had no columns.
    assert weights[:5] == pytest.approx([FIRST_SMOOTHING, 0.95, 0.975, 0.78, 0.624])
    assert weights[-1] == pytest.approx(LEAST_SMOOTHING)


def test_few_blocks_of_a_round_may_take_longer_each() -> None:
    clock = Clock(120.0, deterministic=False)
    few, many, alone = (clock.pricing(math.inf, n).time_limit_s for n in (100, 5000, None))
    assert few == pytest.approx(1.0)
    assert many == alone == pytest.approx(0.15)
    # No less than where more is asked of them.
    assert clock.pricing(0.0, 100).time_limit_s == clock.pricing(0.0).time_limit_s == pytest.approx(2.0)
    counted = Clock(120.0, deterministic=True)
    assert counted.pricing(math.inf, 100).node_limit == 1000
    assert counted.pricing(math.inf, 5000).node_limit == 60


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize(("lead_share", "waits"), [(math.inf, True), (0.0, False)])
def test_rounds_wait_for_better_plans_where_these_have_most_to_gain(
    monkeypatch: pytest.MonkeyPatch, lead_share: float, waits: bool, whole_search: bool
) -> None:
    monkeypatch.setattr(pricing_search, "LEAD_SHARE", lead_share)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", 0.0)
    # Nothing else ends rounds: neither their share of the time nor integer supply, which would follow.
    for share in ("ROUNDS_SHARE_OF_TIME", "STEEP_ROUNDS_SHARE_OF_TIME"):
        monkeypatch.setattr(pricing_search, share, 1.0)
    steps = steps_of_a_search(monkeypatch, whole_search, 1.0, waited_or_improved_often)
    assert prices_after_an_improvement(steps) == waits


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("settled_ratio", [0.0, math.inf])
def test_rounds_go_on_that_had_not_settled_when_their_time_was_over(
    monkeypatch: pytest.MonkeyPatch, settled_ratio: float, whole_search: bool
) -> None:
    # With no more than this the bound of a fleet of hundreds of replicas stayed that of its first round.
    for share in ("LEAD_SHARE", "ROUNDS_SHARE_OF_TIME", "STEEP_ROUNDS_SHARE_OF_TIME"):
        monkeypatch.setattr(pricing_search, share, 0.0)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", settled_ratio)
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: False)
    steps = steps_of_a_search(
        monkeypatch,
        whole_search,
        1.5,
        waited_or_improved_often,
    )
    assert "_improve" in steps
    assert prices_after_an_improvement(steps) == (settled_ratio == 0.0)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("pays", [True, False])
def test_the_program_of_whole_supply_runs_beside_rounds_where_it_pays(
    monkeypatch: pytest.MonkeyPatch, pays: bool, whole_search: bool
) -> None:
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: pays)
    monkeypatch.setattr(pricing_search, "LEAD_SHARE", 0.0)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", 0.0)
    heard: list[tuple[str, bool]] = []
    supply_rounds: list[str] = []
    raise_bound, supply_round = SearchState.raise_bound, SupplyRounds.round

    def noted_bound(self: SearchState, bound: float, source: str) -> None:
        heard.append((source, bool(supply_rounds)))
        raise_bound(self, bound, source)

    def noted_round(self: SupplyRounds, workers: Workers, prices: Prices) -> bool:
        supply_rounds.append("supply")
        return supply_round(self, workers, prices)

    monkeypatch.setattr(SearchState, "raise_bound", noted_bound)
    monkeypatch.setattr(SupplyRounds, "round", noted_round)
    # After the first round of supply nothing runs beside rounds of prices.
    steps_of_a_search(monkeypatch, whole_search, 0.7, lambda _: bool(supply_rounds))
    assert (("integer supply", False) in heard) == pays


@pytest.mark.usefixtures("blocks_for_all")
def test_a_bound_of_whole_supply_is_told_at_once(monkeypatch: pytest.MonkeyPatch, whole_search: bool) -> None:
    # A search that ended by it told of its gap two seconds later, when the plan was made simple.
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: True)
    events: list[tuple[str, str]] = []
    raise_bound, tell = SearchState.raise_bound, SearchState.tell

    def noted_bound(self: SearchState, bound: float, source: str) -> None:
        events.append(("bound", source))
        raise_bound(self, bound, source)

    def noted_step(self: SearchState, source: str, detail: str) -> None:
        events.append(("told", source))
        tell(self, source, detail)

    monkeypatch.setattr(SearchState, "raise_bound", noted_bound)
    monkeypatch.setattr(SearchState, "tell", noted_step)
    steps_of_a_search(monkeypatch, whole_search, 0.7)
    raised = [position for position, event in enumerate(events) if event == ("bound", "integer supply")]
    assert raised
    assert all(events[position + 1] == ("told", "supply") for position in raised)


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_neighbourhoods_are_priced_at_the_supply_of_the_plan_or_of_the_mixture(
    monkeypatch: pytest.MonkeyPatch, share: float, whole_search: bool
) -> None:
    monkeypatch.setattr(neighbourhoods, "LP_SUPPLY_SHARE", share)
    monkeypatch.setattr(pricing_search, "LEAD_SHARE", math.inf)
    # Its quarters are small enough to be decided whole, without any columns.
    monkeypatch.setattr(periods, "MOST_SLOTS", 0)
    held: list[FloatArray] = []
    expected: list[FloatArray] = []
    stop = Stop()
    improve, job = neighbourhoods.Neighbourhoods.improve, Master.linear_job

    def noted_improve(
        self: neighbourhoods.Neighbourhoods,
        workers: Workers,
        clock: Clock,
        selection: Selection,
        mixed: FloatArray,
    ) -> list[neighbourhoods.Improvement]:
        before = len(held)
        found = improve(self, workers, clock, selection, mixed)
        expected.extend([np.round(mixed) if share else selection.master] * (len(held) - before))
        return found

    def noted_job(
        self: Master,
        scope: Scope,
        columns: Sequence[Column],
        prices: PriceRange,
        master: FloatArray | None = None,
    ) -> Job:
        if master is not None:
            held.append(master)
            if len(held) >= ENOUGH_JOBS and not whole_search:
                stop.request()
        return job(self, scope, columns, prices, master)

    monkeypatch.setattr(neighbourhoods.Neighbourhoods, "improve", noted_improve)
    monkeypatch.setattr(Master, "linear_job", noted_job)
    case = large_case(2, 4, 2, 3) if whole_search else large_case(1, 2, 2, 1)
    limits = SearchLimits(12.0, 0.0, 1, 2, reproducible=True)
    search(build_problem(case.fleet, case.candidates), limits, stop=stop)
    assert len(held) >= ENOUGH_JOBS
    # The last ones of a search that is stopped are not noted as expected.
    assert all(np.array_equal(one, other) for one, other in zip(held, expected, strict=whole_search))


@pytest.mark.parametrize(
    ("paid", "even_share", "gap"),
    [(0.0, 10.0, 0.01 * 7.0), (-8e3, 10.0, 0.01 * LARGEST_SHARE * 10.0), (-8e3, math.inf, 0.01 * 7993.0)],
    ids=["its own cost", "a price of violated limits", "nothing known"],
)
def test_the_gap_of_a_block_is_over_its_cost_whatever_prices_pay_for_it(
    paid: float, even_share: float, gap: float
) -> None:
    planning = built(large_case(1, 4, 2, 2))
    parts = parts_of(planning)
    relaxed = relax(parts.program, continuous_indices(planning.variables))
    lagrangian = Lagrangian(parts, relaxed)
    pool = ColumnPool(parts, relaxed, lagrangian.cost)
    own = [block.variables for block in parts.blocks]
    reduced_cost = np.zeros(len(parts.block_of))
    reduced_cost[own[0][0]] = 7.0 + paid
    known = np.zeros(len(own[0]))
    known[0] = 1.0
    pool.add(0, known)
    priced = Priced(np.zeros(len(parts.linking_rows)), reduced_cost, 0.0)
    first, second, *_ = pricing_jobs(priced, own, pool, EFFORT, np.zeros(len(own)), even_share)
    assert isinstance(first, Job)
    assert first.effort is not None
    assert (first.effort.gap_ratio, first.effort.gap) == (0.0, pytest.approx(gap))
    # Without a column HiGHS itself knows best what the block costs.
    assert second.effort == EFFORT
