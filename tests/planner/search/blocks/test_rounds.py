"""Rounds of pricing: when they begin and end, what runs beside them, and which bounds they give."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from tests.parts import first_of, first_parts
from tests.planner.search.blocks.small_fleets import in_parts, solve_in_overtime

from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks import pricing_search
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.block_pricing import BlockPricing, PricingRound
from fleetplan.planner.search.blocks.integer_supply import IntegerSupply
from fleetplan.planner.search.blocks.linear import linear_optimum
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import Prices
from fleetplan.planner.search.blocks.pricing_search import PricingSearch
from fleetplan.planner.search.blocks.request import BlockOutcome, WarmStart
from fleetplan.planner.search.blocks.search import BlockSearch
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.best import WITHDRAWN
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray, read_program
from fleetplan.planner.search.solvers.relaxation import Relaxation
from fleetplan.planner.search.solvers.request import (
    ExtraTime,
    ModelOutcome,
    ModelStatus,
    SolverLimits,
    Step,
)
from fleetplan.planner.search.solvers.workers import Workers


@pytest.mark.usefixtures("blocks_for_all")
def test_a_plan_that_is_far_from_good_is_given_more_time(large: bool) -> None:
    limit_s = 0.2 if large else 0.1

    def work_s(extra_time: ExtraTime | None) -> float:
        planning, parts = in_parts(large)
        limits = SolverLimits(limit_s, 1, 1, Stop(), extra_time=extra_time)
        return block_solve.solve_in_blocks(
            planning, parts, limits, lambda *_: False, lambda _: None, True
        ).deterministic_time

    without = work_s(None)
    assert work_s(ExtraTime(2 * limit_s, lambda *_: True)) == without < 2.5 * limit_s
    assert work_s(ExtraTime(2 * limit_s, lambda *_: False)) > 2.5 * limit_s


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("times", first_parts((0.0, 1.0), 1))
def test_rounds_may_begin_at_any_prices_and_bounds_stay_bounds(times: float, large: bool) -> None:
    """Prices of nothing, and those of the linear relaxation, which is then not solved again."""
    planning, parts = in_parts(large)
    linear = linear_optimum(planning.model, continuous_indices(planning.variables), Stop(), 60.0)
    assert linear is not None

    def solved(row_duals: FloatArray | None) -> tuple[ModelOutcome, list[Step]]:
        steps: list[Step] = []
        outcome = block_solve.solve_in_blocks(
            planning,
            parts,
            SolverLimits(0.25, 1, 1, Stop()),
            lambda *_: False,
            steps.append,
            True,
            WarmStart(row_duals=row_duals),
        )
        return outcome, steps

    known, steps = solved(times * linear.row_duals)
    usual, _ = solved(None)
    assert steps[0].detail == "reused known dual prices"
    assert None not in (known.objective, known.bound, usual.objective, usual.bound)
    assert steps[0].bound is not None
    assert steps[0].bound <= known.bound <= usual.objective
    assert usual.bound <= known.objective
    first = next(step.bound for step in steps if step.source == "pricing")
    # A round at the prices of the relaxation is no looser than it.
    relaxed = float(read_program(planning.model).cost @ linear.values)
    assert first is not None
    assert (first >= relaxed * (1 - 1e-4)) is bool(times)


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_a_search_that_knows_columns_chooses_among_them_beside_its_first_round(
    monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    price, beside = PricingSearch._price_blocks, []

    def look_and_price(self: PricingSearch, workers: Workers, prices: Prices) -> PricingRound | None:
        if not prices.rounds:
            beside.append(self._masters.pending is not None)
            # What known columns would make of the first prices is worth less than these.
            assert prices.current is prices.best
        return price(self, workers, prices)

    monkeypatch.setattr(PricingSearch, "_price_blocks", look_and_price)
    planning, parts = in_parts(large)
    beginning, limits = WarmStart(), SolverLimits(0.25, 1, 1, Stop())
    for _ in range(2):
        block_solve.solve_in_blocks(
            planning, parts, limits, lambda *_: False, lambda _: None, True, beginning
        )
    assert beside == [False, True]


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("good", [True, False])
def test_a_plan_that_is_far_from_good_is_chosen_anew_after_every_round(
    good: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    settle, waiting = PricingSearch._rounds, []

    stop = Stop()

    def settle_and_look(self: PricingSearch, workers: Workers, prices: Prices) -> bool:
        settled = settle(self, workers, prices)
        waiting.append(self._masters.pending is not None)
        stop.request()
        return settled

    monkeypatch.setattr(PricingSearch, "_rounds", settle_and_look)
    solve_in_overtime(large, good, stop, counted=True)
    # A good plan waits for a master beside the next round.
    assert waiting[0] is good


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
@pytest.mark.parametrize("far", first_of((True, False), 1))
def test_while_the_plan_is_far_from_good_a_master_runs_beside_every_round(
    far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    price, beside = BlockPricing.price, []

    def look(self: BlockPricing, *given: Any, **named: Any) -> object:
        beside.append(bool(named["side_jobs"]))
        return price(self, *given, **named)

    monkeypatch.setattr(BlockPricing, "price", look)
    monkeypatch.setattr(SearchState, "far", lambda _: far)
    # The program of integer supply and the construction may run beside a round too.
    monkeypatch.setattr(PlanSearch, "construction_side_jobs", lambda _: [])
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: False)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", -math.inf)
    # Where they wait for a better plan, masters choose at once.
    monkeypatch.setattr(pricing_search, "LEAD_SHARE", 0.0)
    # Four blocks have all their columns after two rounds.
    planning, parts = in_parts(True)
    limits = SolverLimits(60.0, 1, 1, Stop())
    block_solve.solve_in_blocks(planning, parts, limits, lambda *_: len(beside) > 2, lambda _: None, True)
    # The first round has no columns yet.
    assert beside[:3] == [False, far, True]


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("far", [True, False])
def test_a_plan_that_is_far_from_good_has_columns_before_the_first_round(
    far: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    parts: list[str] = []
    monkeypatch.setattr(SearchState, "far", lambda _: far)
    planning, blocks = in_parts(large)
    limits = SolverLimits(60.0, 1, 1, Stop())
    block_solve.solve_in_blocks(
        planning, blocks, limits, lambda *_: "pricing" in parts, lambda step: parts.append(step.source), True
    )
    assert ("columns" in parts) == far
    assert parts[-1] == "pricing" or "columns" in parts[: parts.index("pricing")]


@pytest.mark.usefixtures("blocks_for_all")
@pytest.mark.parametrize("late", [True, False])
def test_a_round_that_would_end_too_late_does_not_begin(
    late: bool, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    price, rounds, stop = PricingSearch._price_blocks, [], Stop()

    def note(self: PricingSearch, workers: Workers, prices: Prices) -> object:
        rounds.append(self._clock.left_s())
        # A second one has begun: more would show nothing else.
        if len(rounds) > 1:
            stop.request()
        found = price(self, workers, prices)
        self._round_s = math.inf if late else 0.0
        return found

    monkeypatch.setattr(PricingSearch, "_price_blocks", note)
    monkeypatch.setattr(IntegerSupply, "pays", lambda _self, _open_cost: False)
    for share in ("ROUNDS_SHARE_OF_TIME", "STEEP_ROUNDS_SHARE_OF_TIME"):
        monkeypatch.setattr(pricing_search, share, 0.0)
    monkeypatch.setattr(pricing_search, "SETTLED_RATIO", -math.inf)
    planning, blocks = in_parts(large)
    limits = SolverLimits(2.0 if large else 1.0, 1, 1, stop)
    block_solve.solve_in_blocks(planning, blocks, limits, lambda *_: False, lambda _: None, True)
    assert (len(rounds) == 1) == late


@pytest.mark.usefixtures("blocks_for_all")
def test_who_stops_before_any_bound_is_proven_has_the_plan_it_began_with(large: bool) -> None:
    stop = Stop()
    stop.request()
    found = solve_in_overtime(large, stop=stop)
    assert found.status is ModelStatus.FOUND
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound < found.objective
    assert found.bound_source == "bounds of the variables"


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_a_bound_that_its_plan_contradicts_is_not_told(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(Relaxation, "bound", lambda *_: 1e18)
    steps: list[Step] = []
    found = solve_in_overtime(large, on_step=steps.append, overtime_s=0.2, limit_s=0.5)
    assert found.status is ModelStatus.FOUND
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound < found.objective
    assert found.bound_source == "bounds of the variables"
    assert ("linear relaxation", WITHDRAWN) in [(step.source, step.detail) for step in steps]


@pytest.mark.parametrize(("true", "status"), [(True, ModelStatus.INFEASIBLE), (False, ModelStatus.SOLVED)])
@pytest.mark.usefixtures("blocks_for_all")
def test_a_relaxation_without_a_plan_is_one_of_two_proofs(
    true: bool, status: ModelStatus, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    planning, parts = in_parts(large)
    if true:
        planning.model.add(planning.total_cost <= -1)
    nothing = BlockOutcome(None, None, -math.inf, "", infeasible=True, work_s=0.0)
    monkeypatch.setattr(BlockSearch, "run", lambda *_: nothing)
    limits = SolverLimits(20.0, 1, 1, Stop())
    found = block_solve.solve_in_blocks(planning, parts, limits, lambda *_: True, lambda _: None, False)
    assert found.status is status


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_overtime_lets_a_round_come_to_its_end(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """Overtime lets the first round end, so that every block has a bound."""
    price, bounds = PricingSearch._price_blocks, []

    def when_time_is_over(self: PricingSearch, workers: Workers, prices: Prices) -> PricingRound | None:
        # On a slow machine it may be over already, and overtime have begun.
        if not bounds and not self._state._late:
            time.sleep(max(self._clock.left_s(), 0.0) + 0.01)
        new = price(self, workers, prices)
        bounds.append(prices.bound)
        stop.request()
        return new

    stop = Stop()
    monkeypatch.setattr(PricingSearch, "_price_blocks", when_time_is_over)
    # As much as a slow machine may take; the first round ends it.
    assert solve_in_overtime(large, stop=stop, overtime_s=120.0).objective is not None
    assert bounds[0] > -math.inf


@pytest.mark.usefixtures("blocks_for_all", "whole_search")
def test_whole_supply_waits_for_a_bound_of_every_block(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """A plan that comes after its round was cut may have overtime, and no block has a bound."""
    monkeypatch.setattr(SearchState, "expired", lambda self: not self._late)
    found = solve_in_overtime(large, overtime_s=0.5, limit_s=0.5)
    assert found.objective is not None
    assert found.bound is not None
