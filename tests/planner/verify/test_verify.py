"""The verifier detects each kind of violation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.planner.builders import (
    buy_offer,
    by_case,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import Solved, solve
from tests.planner.verify.plans import uncertain

from fleetplan.fleet.inventory import Fleet, Offline, Slice
from fleetplan.planner.plan import Placement, Plan, Purchase, Unmet, UnmetGap
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify import PlanError, require_valid, verify


def _question() -> tuple[Fleet, list[Candidate]]:
    """A plan with something of everything: two classes, both runtimes, a pool, rent and a purchase."""
    question = fleet(
        services=[
            service("chat", 12.0, classes={"short": 0.75, "long": 0.25}, headroom=0.1, ttft_ms=500.0),
            service("code", 6.0, tpot_ms=40.0, runtimes=("disaggregated",)),
        ],
        hardware=[hardware("A", 4), hardware("B", 4), hardware("C", 1)],
        pools=[rented_pool("pool-A", 2, 1.0, hardware="A", per_host=4)],
        offers=[
            buy_offer("buy-B", 64_000, hardware="B", per_unit=4, maximum=3),
            rent_offer("rent-C", 9.0, hardware="C", maximum=9),
        ],
        regions=[
            region(power_kw=(30.0,), pue=1.25, energy_usd_per_kwh=(0.1,), hosting_usd_per_kw_month=10.0)
        ],
        policy={"reserve_hosts_per_pool": 1, "max_configs_per_service_region": 2},
        budget={
            "capex_usd_by_period": (200_000.0,),
            "capex_usd": 200_000.0,
            "opex_usd": 150_000.0,
            "tco_usd": 200_000.0,
        },
    )
    slow = candidate("chat", "C", (9.0, 3.0), config="slow", power_kw=0.5)
    runs = [
        replace(candidate("chat", "A", (6.0, 2.0), power_kw=0.6), ttft_ms=(300.0, 450.0)),
        replace(slow, ttft_ms=(600.0, 900.0), requests_per_s=(0.01, 0.01)),
        candidate("code", "B", 3.0, phase="prefill", power_kw=0.8),
        replace(candidate("code", "B", 2.0, phase="decode", power_kw=0.8), tpot_ms=(30.0,)),
    ]
    return question, runs


@pytest.fixture(scope="module")
def solved() -> Solved:
    question, runs = _question()
    found = solve(question, runs)
    assert found.plan is not None
    assert {row.service for row in found.plan.placements} == {"chat", "code"}
    assert found.plan.purchases
    return found


Tamper = Callable[[Plan], Plan]


def _first(change: Callable[[Placement], dict[str, object]], **wanted: str) -> Tamper:
    """Change the first placement with these values."""

    def tamper(plan: Plan) -> Plan:
        rows = list(plan.placements)
        index = next(i for i, row in enumerate(rows) if all(getattr(row, k) == v for k, v in wanted.items()))
        rows[index] = rows[index].model_copy(update=change(rows[index]))
        return plan.model_copy(update={"placements": tuple(rows)})

    return tamper


def _purchase(change: Callable[[Purchase], dict[str, object]]) -> Tamper:
    def tamper(plan: Plan) -> Plan:
        first, *rest = plan.purchases
        return plan.model_copy(update={"purchases": (first.model_copy(update=change(first)), *rest)})

    return tamper


def _scaled(row: Placement, factor: float) -> dict[str, object]:
    return {
        "requests_per_s": row.requests_per_s * factor,
        "requests_per_s_by_class": {k: v * factor for k, v in row.requests_per_s_by_class.items()},
    }


def _unmet_gap(priority: int, gap: float) -> Tamper:
    """State a gap in unmet demand."""
    return lambda plan: plan.model_copy(update={"unmet_gaps": (UnmetGap(priority=priority, gap=gap),)})


TAMPERED: dict[str, tuple[str, Tamper]] = {
    "replicas lowered": (
        "replica_load",
        _first(lambda row: {"replicas": 1, "accelerators": 1}, service="chat"),
    ),
    "no replicas at all": ("placement", _first(lambda _: {"replicas": 0, "accelerators": 0}, service="chat")),
    "negative replicas": (
        "placement",
        _first(lambda _: {"replicas": -1, "accelerators": -1}, phase="decode"),
    ),
    "accelerators understated": ("placement", _first(lambda row: {"accelerators": row.accelerators - 1})),
    "traffic dropped": ("coverage", _first(lambda row: _scaled(row, 0.9), service="chat")),
    "a placement dropped": (
        "coverage",
        lambda plan: plan.model_copy(update={"placements": plan.placements[1:]}),
    ),
    "decode traffic dropped": ("coverage", _first(lambda row: _scaled(row, 0.5), phase="decode")),
    "traffic of one class moved to another": (
        "coverage",
        _first(lambda row: {"requests_per_s_by_class": {"short": row.requests_per_s}}, service="chat"),
    ),
    "negative traffic": (
        "placement",
        _first(lambda _: {"requests_per_s_by_class": {"short": 13.0, "long": -1.0}}, service="chat"),
    ),
    "total traffic misstated": ("placement", _first(lambda row: {"requests_per_s": row.requests_per_s + 1})),
    "an unknown class": (
        "placement",
        _first(lambda row: {"requests_per_s_by_class": {**row.requests_per_s_by_class, "huge": 1.0}}),
    ),
    "an unknown pool": ("placement", _first(lambda _: {"pool": "nowhere"})),
    "an unknown configuration": ("placement", _first(lambda _: {"config": "x64"})),
    "an unknown period": ("placement", _first(lambda _: {"period": "2031Q1"})),
    "another region": ("capacity", _first(lambda _: {"region": "moon"})),
    "a pool of other hardware": ("capacity", _first(lambda _: {"pool": "pool-A"}, phase="decode")),
    "a configuration that misses the target": (
        "latency",
        _first(lambda _: {"config": "slow", "hardware": "C", "pool": "here/rent-C"}, service="chat"),
    ),
    "more replicas than hosts": (
        "capacity",
        _first(
            lambda row: {"replicas": row.replicas + 4, "accelerators": row.accelerators + 4}, service="chat"
        ),
    ),
    "more replicas than power": (
        "power",
        _first(
            lambda row: {"replicas": row.replicas + 40, "accelerators": row.accelerators + 40}, phase="decode"
        ),
    ),
    "a purchase removed": ("capacity", lambda plan: plan.model_copy(update={"purchases": ()})),
    "a purchase above the maximum": ("purchases", _purchase(lambda _: {"units": 4})),
    "a purchase of negative units": ("purchases", _purchase(lambda _: {"units": -1})),
    "a purchase from nobody": ("purchases", _purchase(lambda _: {"offer": "gift"})),
    "a purchase for nowhere": ("purchases", _purchase(lambda _: {"pool": "nowhere"})),
    "a purchase at another price": ("cost", _purchase(lambda row: {"usd": row.usd / 2})),
    "capital misstated": ("cost", _purchase(lambda row: {"capex_usd": row.capex_usd / 2})),
    "cost lowered": (
        "cost",
        lambda plan: plan.model_copy(update={"objective_usd": plan.objective_usd * 0.99}),
    ),
    "cost breakdown changed": (
        "cost",
        lambda plan: plan.model_copy(update={"cost_breakdown": {"rent": 1.0}}),
    ),
    "bound above the cost": (
        "cost",
        lambda plan: plan.model_copy(update={"bound_usd": plan.objective_usd * 1.01}),
    ),
    "gap understated": ("cost", lambda plan: plan.model_copy(update={"bound_usd": plan.objective_usd * 0.5})),
    "a placement's cost lowered": ("cost", _first(lambda row: {"usd": row.usd / 2})),
    "a gap of demand that is served": ("coverage", _unmet_gap(1, 0.0)),
    "unmet demand declared where it is forbidden": (
        "coverage",
        lambda plan: plan.model_copy(
            update={
                "unmet": (
                    Unmet(
                        period="now", region="here", service="chat", request_class="short", requests_per_s=1.0
                    ),
                )
            }
        ),
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_plan_is_rejected(name: str, solved: Solved) -> None:
    family, tamper = TAMPERED[name]
    assert solved.plan is not None
    violations = verify(solved.problem, tamper(solved.plan))
    assert family in {violation.family for violation in violations}, violations
    with pytest.raises(PlanError, match=family):
        require_valid(solved.problem, tamper(solved.plan))


def test_an_honest_plan_has_no_violations(solved: Solved) -> None:
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []


def test_a_plan_is_checked_against_the_rules_of_its_fleet(solved: Solved) -> None:
    assert solved.plan is not None
    question, runs = _question()
    chat, code = question.services
    changes: dict[str, Fleet] = {
        "configurations": replace(question, services=(replace(chat, allowed_hardware=("C",)), code)),
        "budgets": replace(question, budget=replace(question.budget, opex_usd=1.0)),
        "coverage": replace(
            question, services=(chat, replace(code, demand=by_case({("here", "now", "all"): 7.0})))
        ),
    }
    for family, changed in changes.items():
        problem = replace(solved.problem, fleet=changed, services={s.name: s for s in changed.services})
        if family == "coverage":
            cells = tuple(
                replace(cell, requests_per_s=(7.0,)) if cell.service == "code" else cell
                for cell in problem.cells
            )
            problem = replace(problem, cells=cells)
        assert family in {violation.family for violation in verify(problem, solved.plan)}
    limited = replace(question, policy=replace(question.policy, max_configs_per_service_region=1))
    problem = replace(solved.problem, fleet=limited)
    families = {violation.family for violation in verify(problem, solved.plan)}
    # The plan does not name the limit either that it now passes.
    assert families == {"configurations", "binding"}
    assert len(runs) == len(solved.problem.candidates)


def test_a_prefill_replica_has_no_target_for_later_tokens() -> None:
    """An engine table may state TPOT in rows of prefill; the tokens come from the decode replicas."""
    question = fleet(
        services=[service("chat", 1.0, tpot_ms=60.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
    )
    prefill = replace(candidate("chat", "A", 1.0, phase="prefill"), tpot_ms=(62.4,))
    decode = replace(candidate("chat", "A", 1.0, phase="decode"), tpot_ms=(59.0,))
    assert solve(question, [prefill, decode]).usd == pytest.approx(2 * 2190)
    late = replace(decode, tpot_ms=(62.4,))
    with pytest.raises(PlanError, match="TPOT"):
        solve(question, [prefill, late])


def test_a_regret_whose_bound_is_below_zero_may_have_a_gap_above_one() -> None:
    problem, plan = uncertain()
    assert plan.goal is not None
    bound = -100 * max(abs(plan.goal.value), plan.objective_usd)
    gap = (plan.goal.value - bound) / abs(bound)
    assert gap > 1
    goal = plan.goal.model_copy(update={"bound": bound, "gap": gap})
    record = plan.solve.model_copy(update={"status": "limit"})
    stated = plan.model_copy(update={"goal": goal, "status": "limit", "solve": record})
    assert list(verify(problem, stated)) == []


@pytest.mark.parametrize(("arises", "done", "wait_h"), [("a", "b", 12.0), ("b", "c", 12.0), ("c", "a", 8.0)])
def test_work_that_waits_longest_first_or_last_keeps_its_deadline(
    arises: str, done: str, wait_h: float
) -> None:
    """Slices of 4, 12 and 8 hours: the last work of a short one waits longest, the first of a long one."""
    asked = fleet(
        services=[service("batch", 0.6, offline=Offline(3.0))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        slices=(Slice("a", 4.0), Slice("b", 12.0), Slice("c", 8.0)),
    )
    solved = solve(asked, [candidate("batch", "A", 1.0)])
    assert solved.plan is not None
    first, *rest = solved.plan.offline_work
    moved = first.model_copy(update={"arises_in": arises, "slice": done})
    tampered = solved.plan.model_copy(update={"offline_work": (moved, *rest)})
    waits = [each.message for each in verify(solved.problem, tampered) if " waits " in each.message]
    assert [
        text.endswith(f"work of {arises} waits {wait_h} h, above the deadline of 3.0 h") for text in waits
    ] == [True]


def test_an_objective_counts_the_accelerators_that_replicas_hold() -> None:
    """Three replicas of four accelerators hold twelve."""
    asked = fleet(services=[service("chat", 5.0)], hardware=[hardware("A", 4)], offers=[rent_offer("A", 1.0)])
    solved = solve(replace(asked, objective="accelerators"), [candidate("chat", "A", 2.0, accelerators=4)])
    assert solved.plan is not None
    assert solved.plan.goal is not None
    assert solved.plan.goal.value == pytest.approx(12.0)
    assert verify(solved.problem, solved.plan) == []
