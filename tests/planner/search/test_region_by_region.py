"""Regions that share maxima of offers alone are searched one by one where there is enough for all."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import pytest
from tests.parts import first_parts
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.random_fleets import tiny_case
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.formulation import Goal, ReachedGoal, Solution
from fleetplan.planner.problem import KnownBound, build_problem
from fleetplan.planner.problem.independent_parts import Component, components
from fleetplan.planner.search import CostThresholds, ProgramCache, SearchLimits, Stop, run, stages
from fleetplan.planner.search.budgets_kept import search
from fleetplan.planner.search.region_by_region import RegionalSearch
from fleetplan.planner.search.result import Progress, SearchResult, SolveStatus, Watcher, status_of
from fleetplan.planner.search.run import FIRST_PLAN

CARD = candidate("chat", "A", 10.0)
DEAR = candidate("chat", "B", 10.0)


def two_regions(maximum: int, east: float = 35.0, west: float = 55.0) -> Fleet:
    """Four cards of A serve the east and six the west; those of B cost three times as much."""
    demand = {("east", "now", "all"): east, ("west", "now", "all"): west}
    places = ("east", "west")
    return fleet(
        services=[service("chat", demand, regions=places)],
        hardware=[hardware("A"), hardware("B")],
        pools=[],
        offers=[
            rent_offer("a", 1.0, hardware="A", regions=places, maximum=maximum),
            rent_offer("b", 3.0, hardware="B", regions=places, maximum=20),
        ],
        regions=[region(place) for place in places],
    )


def stages_of(question: Fleet) -> tuple[set[str], float | None]:
    said: list[Progress] = []
    solved = solve(question, [CARD, DEAR], watch=said.append)
    return {step.stage for step in said}, solved.usd


def test_regions_are_searched_apart_where_there_is_enough_for_both() -> None:
    said, usd = stages_of(two_regions(maximum=10))
    assert said == {"cost (first plan)", "cost in east", "cost in west"}
    assert usd == pytest.approx(10 * 2190)


def test_they_are_searched_together_where_they_take_too_much() -> None:
    said, usd = stages_of(two_regions(maximum=9))
    assert "cost" in said
    assert usd == pytest.approx((9 + 3) * 2190)


@pytest.mark.parametrize("maximum", [9, 20])
def test_a_plan_of_all_regions_is_told_before_one_of_them_is_searched(maximum: int) -> None:
    said: list[Progress] = []
    solved = solve(two_regions(maximum), [CARD, DEAR], watch=said.append)
    plans = [step.objective_usd for step in said if step.objective_usd is not None]
    first = next(number for number, step in enumerate(said) if step.stage == "cost in east")
    assert any(step.objective_usd is not None for step in said[:first])
    # What regions decide alone is no plan where they take too much together.
    assert min(plans) == pytest.approx(solved.usd)
    assert said[-1].objective_usd == pytest.approx(solved.usd)
    assert all(step.objective_usd is None or step.objective_usd >= 10 * 2190 - 1 for step in said)


def test_one_region_that_cannot_be_served_proves_it_of_all() -> None:
    question = two_regions(maximum=10, west=1000.0)
    assert solve(question, [CARD]).result.status is SolveStatus.INFEASIBLE


def test_a_bound_that_is_known_is_told() -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    # A gap at which any plan will do.
    limits = SearchLimits(gap_ratio=0.9)
    known = KnownBound(21_000.0, "somebody")
    found = search(replace(problem, bounded_by=known), limits)
    assert found.bound_usd is not None
    assert found.bound_usd >= 21_000.0
    beyond = search(replace(problem, bounded_by=KnownBound(99_000.0, "somebody")), limits)
    assert beyond.bound_usd is not None
    assert beyond.objective_usd is not None
    assert beyond.bound_usd <= beyond.objective_usd <= 40_000


@pytest.mark.parametrize("seeds", first_parts((30, 200), 1))
def test_apart_and_together_cost_the_same(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    apart, scarce = 0, 0
    for seed in range(seeds):
        case = tiny_case(seed)
        problem = build_problem(case.fleet, case.candidates)
        divided = [each for each in components(problem) if len(components(each.problem, maxima=False)) > 1]
        if not divided:
            continue
        said: list[Progress] = []
        found = solve(case.fleet, case.candidates, watch=said.append)
        with monkeypatch.context() as patched:
            patched.setattr(run, "separable_regions", lambda part: [])
            together = solve(case.fleet, case.candidates)
        assert found.result.status is together.result.status, seed
        if together.usd is not None:
            assert found.usd == pytest.approx(together.usd, rel=1e-6, abs=0.01), seed
        apart += 1
        scarce += any(" in " not in step.stage and FIRST_PLAN not in step.stage for step in said)
    assert apart >= seeds // 15
    assert scarce < apart


def test_the_same_program_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SearchLimits(gap_ratio=1e-6, simplified=False, program_cache=ProgramCache())
    solved: list[int] = []
    solve_model = stages.solve_model

    def counted(model, *arguments):  # type: ignore[no-untyped-def]
        solved.append(len(model.proto.variables))
        return solve_model(model, *arguments)

    monkeypatch.setattr(stages, "solve_model", counted)

    def searched(question: Fleet) -> SearchResult:
        return search(build_problem(question, [CARD, DEAR]), limits)

    first = searched(two_regions(maximum=20))
    # The first plan, and each region.
    assert len(solved) == 3
    again = searched(two_regions(maximum=20))
    assert len(solved) == 3
    assert again.objective_usd == first.objective_usd
    assert again.bound_usd == first.bound_usd
    assert again.solution == first.solution
    # The west has changed, the east has not.
    more = searched(two_regions(maximum=20, west=65.0))
    assert len(solved) == 5
    assert more.objective_usd == pytest.approx(11 * 2190)


def test_what_is_remembered_does_not_travel() -> None:
    limits = SearchLimits(gap_ratio=1e-6, program_cache=ProgramCache())
    search(build_problem(two_regions(maximum=20), [CARD, DEAR]), limits)
    copy = pickle.loads(pickle.dumps(limits))
    assert copy == limits
    assert len(pickle.dumps(copy)) < 10_000


def test_large_regions_are_left_to_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    (part,) = components(problem)
    assert [each.problem.regions.keys() for each in run.separable_regions(part)] == [{"east"}, {"west"}]
    monkeypatch.setattr("fleetplan.planner.search.blocks.solve.LEAST_VARIABLES", 6)
    found: list[Component] = run.separable_regions(part)
    assert found == []
    # Together they are large: blocks do better than regions of some size, and worse than small ones.
    monkeypatch.setattr("fleetplan.planner.search.blocks.solve.LEAST_VARIABLES", 12)
    assert len(run.separable_regions(part)) == 2
    monkeypatch.setattr("fleetplan.planner.search.region_by_region.LARGE_REGION_VARIABLES", 6)
    assert run.separable_regions(part) == []


def test_a_region_may_leave_open_what_those_before_it_do_not() -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    (part,) = components(problem)
    slacks: list[float] = []

    def searched(region: Component, limits: SearchLimits, *_: object) -> SearchResult:
        slacks.append(limits.slack_usd)
        return SearchResult(SolveStatus.WITHIN_GAP, Solution(), 1000.0, 996.0, "somebody", 0.0, 0.0)

    limits = SearchLimits(gap_ratio=0.01)
    regions = run.separable_regions(part)
    found = RegionalSearch(part, regions, limits, lambda _: None, Stop(), searched).run(lambda: 10.0)
    # The first region leaves 4 of the 10 USD that it may, but for the rounding of the model.
    assert slacks[1:] == [0.0, pytest.approx(6.0, abs=0.02)]
    assert found is not None
    assert found.status is SolveStatus.WITHIN_GAP
    # What it has from another one counts for a region itself.
    own = run.Run(part, replace(limits, slack_usd=6.0), 0.0, Stop())
    assert own.cost_status(1000.0, 984.5) is SolveStatus.WITHIN_GAP
    assert own.cost_status(1000.0, 983.5) is SolveStatus.LIMIT


def test_a_region_that_is_open_goes_on_from_its_plan_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    whole = run.Run.search
    known: list[tuple[bool, float]] = []

    def cut_short(self: run.Run) -> SearchResult:
        found = whole(self)
        known.append((self.begin is not None, self.usd(self.known.bound)))
        # As if the time had been over, with some of the cost proven.
        first = 2 <= len(known) <= 3
        usd = 6_000.0 * (len(known) - 1)
        return replace(found, status=SolveStatus.LIMIT, bound_usd=usd) if first else found

    monkeypatch.setattr(run.Run, "search", cut_short)
    found = search(problem, SearchLimits(gap_ratio=1e-6))
    # After the first plan of both.
    assert [begun for begun, _ in known] == [False, True, True, True, True]
    assert [usd for _, usd in known[3:]] == [pytest.approx(6_000.0), pytest.approx(12_000.0)]
    assert found.status is SolveStatus.OPTIMAL
    assert found.objective_usd == pytest.approx(10 * 2190)


def test_the_whole_goes_on_from_what_regions_have_found_where_they_take_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = run.Run.search
    searched: list[tuple[str, bool, float, SearchResult]] = []

    def noted(self: run.Run) -> SearchResult:
        known_usd = self.usd(self.known.bound)
        found = whole(self)
        searched.append((self.label, self.begin is not None, known_usd, found))
        return found

    monkeypatch.setattr(run.Run, "search", noted)
    found = search(build_problem(two_regions(maximum=9), [CARD, DEAR]), SearchLimits(gap_ratio=1e-6))
    labels = [label for label, *_ in searched]
    assert labels[:3] == [FIRST_PLAN, " in east", " in west"]
    # One of them has what it wants, the other one what is left.
    assert set(labels[3:-1]) <= {" in east", " in west"}
    label, begun, known_usd, _ = searched[-1]
    assert (label, begun) == ("", True)
    assert known_usd == pytest.approx(10 * 2190)
    assert found.status is SolveStatus.OPTIMAL
    assert found.objective_usd == pytest.approx((9 + 3) * 2190)


def test_plans_of_regions_divide_what_there_is() -> None:
    problem = build_problem(two_regions(maximum=9), [CARD, DEAR])
    (part,) = components(problem)
    regions = run.separable_regions(part)
    limits = SearchLimits(gap_ratio=1e-6)

    def searched(
        component: Component,
        limits: SearchLimits,
        watch: Watcher,
        begin: Solution | None,
        before: SearchResult | None,
    ) -> SearchResult:
        own = run.Run(component, limits, time.monotonic(), Stop())
        own.watch, own.begin = watch, begin
        return own.search()

    found = RegionalSearch(part, regions, limits, lambda _: None, Stop(), searched).run(lambda: 10.0)
    assert found is not None
    assert found.solution is not None
    assert found.objective_usd == pytest.approx((9 + 3) * 2190)
    assert found.bound_usd == pytest.approx(10 * 2190)
    taken = sum(
        units
        for (p, a, _), units in found.solution.acquired.items()
        if problem.pools[p].acquisitions[a].offer.name == "a"
    )
    assert taken == 9


def test_a_stop_ends_it_at_the_plan_of_all_regions() -> None:
    stop = Stop()

    def watch(step: Progress) -> None:
        if step.objective_usd is not None:
            stop.request()

    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    found = search(problem, SearchLimits(gap_ratio=1e-9), watch=watch, stop=stop)
    assert found.solution is not None
    assert found.objective_usd is not None


@pytest.mark.parametrize(("below_usd", "regions"), [(1e9, set()), (100.0, {"cost in east", "cost in west"})])
def test_a_first_plan_that_decides_a_question_ends_the_search(below_usd: float, regions: set[str]) -> None:
    said: list[Progress] = []
    limits = SearchLimits(gap_ratio=1e-6, thresholds=CostThresholds(below_usd, 2e9))
    found = search(build_problem(two_regions(maximum=20), [CARD, DEAR]), limits, watch=said.append)
    assert found.solution is not None
    assert {step.stage for step in said} == {f"cost{FIRST_PLAN}", *regions}


def test_a_simpler_plan_of_the_regions_is_kept_beside_a_cheaper_first_one() -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    (part,) = components(problem)
    # What the whole and each region cost in turn, and what is proven of them.
    found = {"both": (995.0, 900.0), "east": (500.0, 498.0), "west": (500.0, 498.0)}

    def searched(component: Component, limits: SearchLimits, *_: object) -> SearchResult:
        (name,) = component.problem.regions if component is not part else ("both",)
        usd, bound_usd = found[name]
        status = status_of((usd - bound_usd) / usd, limits)
        return SearchResult(status, Solution(), usd, bound_usd, "somebody", 0.0, 0.0)

    def told() -> SearchResult | None:
        limits, regions = SearchLimits(gap_ratio=0.01), run.separable_regions(part)
        return RegionalSearch(part, regions, limits, lambda _: None, Stop(), searched).run(lambda: 10.0)

    simple = told()
    assert simple is not None
    assert (simple.status, simple.objective_usd) == (SolveStatus.WITHIN_GAP, 1000.0)
    found["west"] = (500.0, 400.0)
    cheap = told()
    assert cheap is not None
    assert (cheap.status, cheap.objective_usd, cheap.bound_usd) == (SolveStatus.LIMIT, 995.0, 900.0)


def test_bounds_of_regions_at_a_better_goal_are_not_told_beside_the_plan_of_the_whole() -> None:
    problem = build_problem(two_regions(maximum=20), [CARD, DEAR])
    (part,) = components(problem)
    goal, said = Goal("energy", "kWh", 1), list[Progress]()

    def searched(component: Component, limits: SearchLimits, watch: Watcher, *_: object) -> SearchResult:
        usd, kwh = (1000.0, 300.0) if component is part else (700.0, 100.0)
        watch(Progress("cost", 0.0, usd, usd, "somebody", "found a better plan"))
        reached = ReachedGoal(goal, kwh, kwh)
        return SearchResult(SolveStatus.OPTIMAL, Solution(), usd, usd, "somebody", 0.0, 0.0, reached)

    regions = run.separable_regions(part)
    whole = RegionalSearch(part, regions, SearchLimits(gap_ratio=0.01), said.append, Stop(), searched)
    found = whole.run(lambda: 10.0)
    assert found is not None
    assert found.objective_usd == 1400.0
    assert not any((step.bound_usd or 0.0) > (step.objective_usd or 0.0) for step in said)
    assert said[-1].objective_usd == 1400.0
