"""Family 14: what a question forces into a plan serves traffic there, at the least extra cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.parts import first_of
from tests.planner.builders import candidate, fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.random_fleets import tiny_case
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.inventory import Fleet, MustUse
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify import verify

HOURS = 2190.0


def two_kinds(required: MustUse, **changes: object) -> Fleet:
    fields: dict[str, object] = {
        "services": [service("chat", 4.0, regions=("east", "west"))],
        "hardware": [hardware("A", 1), hardware("B", 1)],
        "regions": [region("east"), region("west")],
        "offers": [
            rent_offer("A", 1.0, regions=("east", "west")),
            rent_offer("B", 3.0, regions=("east", "west")),
        ],
        "policy": {"must_use": (required,)},
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


RUNS: tuple[Candidate, ...] = (
    candidate("chat", "A", 1.0),
    candidate("chat", "B", 1.0, config="one"),
    candidate("chat", "B", 2.0, accelerators=2, config="two"),
)


@pytest.mark.parametrize(
    ("required", "usd_per_hour"),
    [
        (MustUse("A", hardware="A"), 8.0),
        (MustUse("B", hardware="B"), 10.0),
        (MustUse("half B", hardware="B", share=0.5), 12.0),
        (MustUse("two", config="two"), 12.0),
        (MustUse("B in west", hardware="B", region="west"), 10.0),
        (MustUse("offer", offer="B"), 10.0),
        (MustUse("west", region="west"), 8.0),
    ],
)
def test_what_must_be_used_costs_the_least_that_it_can(required: MustUse, usd_per_hour: float) -> None:
    solved = solve(two_kinds(required), RUNS)
    assert solved.usd == pytest.approx(usd_per_hour * HOURS)
    if required.region == "west" and required.hardware == "B":
        assert solved.rows(hardware="B", region="west")


def test_a_phase_that_must_be_used_serves_traffic_though_another_could_serve_it_all() -> None:
    """Existing aggregated replicas cost nothing more; the forced phases still get their share."""
    question = fleet(
        services=[service("chat", 4.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[owned_pool("own", 10, 1000.0, hardware="A", per_host=1)],
        offers=[rent_offer("B", 3.0)],
        policy={"must_use": (MustUse("separate", phases=("prefill", "decode"), hardware="B"),)},
    )
    runs = [candidate("chat", "A", 1.0), candidate("chat", "A", 1.0, phase="prefill")]
    runs.append(candidate("chat", "B", 5.0, phase="decode"))
    solved = solve(question, runs)
    assert solved.rows(hardware="B", phase="decode")[0].requests_per_s > 0
    assert solved.rows(hardware="A", phase="prefill")


def test_nothing_that_matches_is_infeasible() -> None:
    assert is_infeasible(two_kinds(MustUse("C", hardware="C")), RUNS)
    assert is_infeasible(two_kinds(MustUse("prefill", phases=("prefill",))), RUNS)


def test_the_verifier_sees_what_is_missing() -> None:
    solved = solve(two_kinds(MustUse("A", hardware="A")), RUNS)
    assert solved.plan is not None
    policy = replace(
        solved.problem.fleet.policy, must_use=(MustUse("B", hardware="B"), MustUse("b", offer="B"))
    )
    other = replace(solved.problem, fleet=replace(solved.problem.fleet, policy=policy))
    assert [found.family for found in verify(other, solved.plan)] == ["must_use", "must_use"]


@pytest.mark.parametrize("seed", first_of((3, 7, 10, 11, 13), 2))
def test_forcing_in_what_runs_anyway_changes_nothing(seed: int) -> None:
    case = tiny_case(seed)
    free = solve(case.fleet, case.candidates)
    if free.plan is None:
        assert is_infeasible(case.fleet, case.candidates)
        return
    for row in free.plan.placements:
        required = MustUse("row", row.service, row.hardware, row.config, row.region, (row.phase,))
        policy = replace(case.fleet.policy, must_use=(required,))
        assert solve(replace(case.fleet, policy=policy), case.candidates).usd == pytest.approx(free.usd)


def test_a_group_that_must_be_used_passes_requests_on() -> None:
    """Vendors pair among themselves: the dear one is forced in for a phase and needs its own other phase."""
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        policy={
            "must_use": (MustUse("B prefill", hardware="B", phases=("prefill",), share=0.2),),
            "kv_pairs": frozenset({("A", "A"), ("B", "B")}),
        },
    )
    runs = [candidate("chat", kind, 1.0, phase=phase) for kind in "AB" for phase in ("prefill", "decode")]
    solved = solve(question, runs)
    assert sum(row.requests_per_s for row in solved.rows(hardware="B", phase="prefill")) == pytest.approx(2.0)
    pairs = 8 * 2 * 1.0 + 2 * 2 * 3.0
    assert solved.usd == pytest.approx(pairs * HOURS)
