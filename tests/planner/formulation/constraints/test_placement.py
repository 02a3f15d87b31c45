"""Family 11: shares of pools, and pools under maintenance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.parts import first_of
from tests.planner.builders import candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.random_fleets import several_periods_case, tiny_case
from tests.planner.solving import is_infeasible, solve

from fleetplan.planner.verify import verify

QUARTERS = ("2026Q1", "2026Q2")


def test_a_share_that_is_met_exactly_is_met() -> None:
    """Two pools, half each, at rates that no whole number of load units gives."""
    question = fleet(
        services=[service("chat", 10.0, headroom=0.1)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        policy={"max_share_per_pool": 0.5},
    )
    runs = [candidate("chat", "A", 7.3), candidate("chat", "B", 1.7)]
    # 5.5 requests/s with the headroom on each.
    assert solve(question, runs).usd == pytest.approx((1 * 1.0 + 4 * 3.0) * 2190)


def test_a_share_of_a_small_service_is_no_rounding() -> None:
    """A load unit of the many fast configurations is more than the whole demand."""
    question = fleet(
        services=[service("chat", 0.01)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 3.0)],
        policy={"max_share_per_pool": 0.5},
    )
    runs = [candidate("chat", kind, 50.0 + n, config=f"x{n}") for kind in ("A", "B") for n in range(12)]
    assert solve(question, runs).usd == pytest.approx((1.0 + 3.0) * 2190)


def test_the_rounding_of_a_share_is_that_of_the_fine_units_of_fast_replicas() -> None:
    """The tolerance of a share is the load unit of its replicas, finer for fast ones."""
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[rented_pool("A", 1, 1.0, hardware="A", per_host=1),
               rented_pool("B", 1, 1.0, hardware="B", per_host=1)],
        policy={"max_share_per_pool": 0.5},
    )  # fmt: skip
    solved = solve(question, [candidate("chat", "A", 10_000.0), candidate("chat", "B", 10_000.0)])
    assert solved.plan is not None

    def moved(rate: float) -> set[str]:
        rows = []
        for row, more in zip(solved.rows(), (rate, -rate), strict=True):
            served = {name: each + more for name, each in row.requests_per_s_by_class.items()}
            total = row.requests_per_s + more
            changed = {"requests_per_s": total, "requests_per_s_by_class": served}
            rows.append(row.model_copy(update=changed))
        plan = solved.plan.model_copy(update={"placements": tuple(rows)})
        return {violation.family for violation in verify(solved.problem, plan)}

    assert "placement" in moved(0.05)
    # A load unit of each of them is 4e-5 of the demand.
    assert "placement" not in moved(1e-5)


def test_what_is_served_where_nothing_is_asked_for_passes_every_share() -> None:
    """Traffic without demand exceeds every limit on a share."""
    question = fleet(
        services=[service("chat", {("here", QUARTERS[0], "all"): 4.0}, periods=QUARTERS)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, periods=QUARTERS)],
        policy={"max_share_per_pool": 1.0},
        periods=QUARTERS,
    )
    solved = solve(question, [candidate("chat", "A", 4.0)])
    assert solved.plan is not None
    later = solved.plan.placements[0].model_copy(update={"period": QUARTERS[1]})
    plan = solved.plan.model_copy(update={"placements": (*solved.plan.placements, later)})
    found = [each.message for each in verify(solved.problem, plan) if each.family == "placement"]
    assert any("serves traffic without demand, above the limit of 1.0" in text for text in found)


def test_no_replica_runs_for_the_rounding_of_a_share() -> None:
    """Four tenths in the one pool are the most that is served; a second configuration would round up more."""
    question = fleet(
        services=[service("chat", 7.3)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        policy={"max_share_per_pool": 0.4, "unmet": "penalise"},
    )
    runs = [candidate("chat", "A", 3.7), candidate("chat", "A", 1.3, config="dear", accelerators=30)]
    solved = solve(question, runs)
    assert solved.usd == pytest.approx(1.0 * 2190)
    assert solved.plan is not None
    assert sum(row.requests_per_s for row in solved.plan.unmet) == pytest.approx(0.6 * 7.3, abs=1e-6)


def test_what_no_other_pool_can_serve_stays_unmet() -> None:
    """A class that one pool alone can serve is served up to the pool's share; the rest is unmet."""
    asked = service(
        "chat", {("here", "now", "ca"): 4.0, ("here", "now", "cb"): 6.0}, classes={"ca": 0.4, "cb": 0.6}
    )
    question = fleet(
        services=[asked],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 2.0)],
        policy={"max_share_per_pool": 0.3, "unmet": "penalise"},
    )
    runs = [candidate("chat", "A", (1.7, 1.7)), candidate("chat", "B", (0.0, 2.9))]
    solved = solve(question, runs)
    assert solved.plan is not None
    left = {row.request_class: row.requests_per_s for row in solved.plan.unmet}
    assert sum(left.values()) == pytest.approx(4.0, abs=1e-6)


def test_shares_of_many_pools_hold_together() -> None:
    question = fleet(
        services=[service("chat", 9.0)],
        hardware=[hardware(kind, 1) for kind in "ABC"],
        offers=[rent_offer(kind, 1.0 + n) for n, kind in enumerate("ABC")],
        policy={"max_share_per_pool": 0.4},
    )
    runs = [candidate("chat", kind, 1.9) for kind in "ABC"]
    # 3.6 requests/s in each of the cheaper ones, 1.8 in the third.
    assert solve(question, runs).usd == pytest.approx((2 * 1.0 + 2 * 2.0 + 1 * 3.0) * 2190)


def test_each_phase_has_its_own_share() -> None:
    question = fleet(
        services=[service("chat", 4.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.5)],
        policy={"max_share_per_pool": 0.5},
    )
    prefill = [candidate("chat", kind, 1.0, phase="prefill") for kind in ("A", "B")]
    decode = [candidate("chat", "A", 1.0, phase="decode")]
    assert is_infeasible(question, [*prefill, *decode])
    decode.append(candidate("chat", "B", 2.0, phase="decode"))
    # Two of four requests/s in each pool, in both phases.
    assert solve(question, [*prefill, *decode]).usd == pytest.approx((4 * 1.0 + 3 * 1.5) * 2190)


@pytest.mark.parametrize("seed", first_of(range(12), 5))
def test_random_fleets_have_one_optimum(seed: int) -> None:
    case = tiny_case(seed) if seed < 6 else several_periods_case(seed)
    question = replace(case.fleet, policy=replace(case.fleet.policy, max_share_per_pool=0.7))
    solved = solve(question, case.candidates)
    expected = highs_usd(solved.problem)
    assert solved.usd == (None if expected is None else pytest.approx(expected, rel=1e-5))


def test_a_pool_under_maintenance_is_replaced_and_paid() -> None:
    demand = {("here", q, "all"): 4.0 for q in QUARTERS}
    pool = rented_pool("A", 4, 1.0, per_host=1, periods=QUARTERS)
    question = fleet(
        services=[service("chat", demand, periods=QUARTERS)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        pools=[replace(pool, maintenance_hosts=(0, 3))],
        offers=[rent_offer("B", 2.0, periods=QUARTERS)],
        periods=QUARTERS,
    )
    runs = [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0)]
    solved = solve(question, runs)
    assert solved.usd == pytest.approx((2 * 4 * 1.0 + 3 * 2.0) * 2190)
    assert solved.usd == pytest.approx(highs_usd(solved.problem))
    assert solved.plan is not None
    (second,) = [use for use in solved.plan.pools if (use.period, use.pool) == ("2026Q2", "A")]
    assert (second.accelerators, second.maintenance_accelerators, second.used_accelerators) == (4, 3, 1)
    assert is_infeasible(replace(question, offers=()), runs)
    whole = replace(question, pools=(pool,))
    unaware = solve(whole, runs)
    assert unaware.plan is not None
    assert "capacity" in {violation.family for violation in verify(solved.problem, unaware.plan)}


def test_the_reserve_is_kept_beside_the_maintenance() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        pools=[replace(rented_pool("A", 3, 1.0, per_host=1), maintenance_hosts=(1,))],
        policy={"reserve_hosts_per_pool": 1},
    )
    runs = [candidate("chat", "A", 1.0)]
    assert solve(question, runs).plan is not None
    assert is_infeasible(replace(question, services=(service("chat", 2.0),)), runs)
