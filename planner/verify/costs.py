"""Verify family 6 and every cost term, from placements, purchases and the fleet's prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fleetplan.planner.plan import RUNNING_KINDS, Cost
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, NOTHING_USD, USD_RESOLUTION
from fleetplan.planner.verify.placement_figures import expected_placements
from fleetplan.planner.verify.plan_check import PlanCheck, Run
from fleetplan.planner.verify.prices import CAPITAL_KINDS, capex_usd
from fleetplan.planner.verify.quantities import carbon_kg, million_tokens
from fleetplan.planner.verify.records import OLDER_FORMATS, compared, same
from fleetplan.planner.verify.rounding import (
    RUNNING_ROUNDING_RATIO,
    SHARE_FLOOR,
    differs,
    exceeds,
)
from fleetplan.planner.verify.violations import Violation, above, misstated


def check_budgets(check: PlanCheck) -> Iterator[Violation]:
    """Check that capital cost, operating cost and TCO stay within their limits."""
    budget = check.problem.fleet.budget
    capex: dict[str, float] = defaultdict(float)
    for row in check.plan.purchases:
        capex[row.period] += row.units * capex_usd(check.pool(row.pool).offers[row.offer])
    for period, limit in zip(check.problem.periods, budget.capex_usd_by_period, strict=True):
        if limit is not None and exceeds(capex[period], limit):
            yield Violation("budgets", above(f"capex of {period}", capex[period], limit, "USD"))
    kinds = cost_kinds(check)
    total = sum(kinds.values())
    operating = total - sum(kinds.get(kind, 0.0) for kind in CAPITAL_KINDS)
    totals = (
        ("capex", sum(capex.values()), budget.capex_usd),
        ("opex", operating, budget.opex_usd),
        ("TCO", total, budget.tco_usd),
    )
    for name, spent, limit in totals:
        if limit is not None and exceeds(spent, limit):
            yield Violation("budgets", above(name, spent, limit, "USD"))


def cost_kinds(check: PlanCheck) -> dict[str, float]:
    """Return the TCO over the horizon by kind. [USD]"""
    kinds: dict[str, float] = defaultdict(float)
    for part in (check.capacity_usd, check.leaving_usd):
        for by_kind in part.values():
            for kind, usd in by_kind.items():
                kinds[kind] += usd
    for kind, usd in running_usd(check).items():
        kinds[kind] += usd
    return kinds


def running_usd(check: PlanCheck, scenario: str | None = None) -> dict[str, float]:
    """Return the expected running cost by kind, optionally of one demand scenario alone. [USD]"""
    rows = [row for row in expected_placements(check) if scenario in (None, row.scenario)]
    return {kind: sum(float(getattr(row, f"{kind}_usd")) for row in rows) for kind in RUNNING_KINDS}


def check_cost(check: PlanCheck) -> Iterator[Violation]:
    """Check the stated cost kind by kind, the bound below it, and the charges of the model."""
    kinds, stated = cost_kinds(check), check.plan.objective_usd
    total = sum(kinds.values())
    if differs(total, stated, check.floor_usd):
        yield Violation("cost", f"the plan states a cost of {stated} USD; its parts cost {total} USD")
    for kind in sorted(kinds.keys() | check.plan.cost_breakdown.keys()):
        one, other = check.plan.cost_breakdown.get(kind, 0.0), kinds.get(kind, 0.0)
        if differs(one, other, check.floor_usd):
            yield Violation("cost", misstated(kind, one, other, "USD"))
    if exceeds(check.plan.bound_usd, stated):
        text = f"the lower bound of {check.plan.bound_usd} USD exceeds the cost of {stated} USD"
        yield Violation("cost", text)
    gap = _gap(stated, check.plan.bound_usd)
    if differs(check.plan.gap, gap, SHARE_FLOOR):
        yield Violation("cost", misstated("gap of cost and lower bound", check.plan.gap, gap))
    yield from _model_charge(check, kinds)
    split = sum(row.usd for row in check.plan.placements)
    split += sum(use.idle_usd + use.retirement_usd for use in check.plan.pools)
    if differs(split, stated, check.floor_usd):
        text = f"placements, idle capacity and retirements cost {split} USD; the plan costs {stated} USD"
        yield Violation("cost", text)


def _gap(cost_usd: float, bound_usd: float) -> float:
    """Return the excess of a cost over its bound as a share of the cost, which may be negative."""
    above = cost_usd - bound_usd
    if cost_usd <= 0 and above <= NOTHING_USD:
        return 0.0
    return above / abs(cost_usd) if cost_usd else 1.0


def _model_charge(check: PlanCheck, kinds: Mapping[str, float]) -> Iterator[Violation]:
    """Check that the solver charged the cost of the plan plus that of unneeded parts of its solution."""
    model_usd, unused = check.plan.model_usd, check.plan.model_unused_usd
    if check.plan.format_version not in OLDER_FORMATS and None in (model_usd, unused):
        yield Violation("cost", "the plan lacks model_usd or model_unused_usd")
    if model_usd is None:
        return
    total, rounding = sum(kinds.values()), model_rounding_usd(check, kinds)
    if not total <= model_usd + rounding:
        yield Violation("cost", f"the plan costs {total} USD; the solver's model states {model_usd} USD")
    if unused is not None and not unused >= -rounding:
        text = f"unneeded parts of the solution cost {unused} USD in the solver's model, below 0"
        yield Violation("cost", text)
    if unused is not None and not abs(model_usd - unused - total) <= rounding:
        text = f"the plan costs {total} USD; the solver's coefficients give {model_usd - unused} USD"
        yield Violation("cost", text)


def model_rounding_usd(check: PlanCheck, kinds: Mapping[str, float]) -> float:
    """Return the tolerance of the cost by the solver's rounded figures. [USD]"""
    steps = sum(row.replicas for row, _ in check.rows) * LOAD_UNITS_PER_REPLICA / 2 / USD_RESOLUTION
    return max(RUNNING_ROUNDING_RATIO * (kinds["energy"] + kinds["data"]), steps) + check.floor_usd * 1e3


def check_cost_rows(check: PlanCheck) -> Iterator[Violation]:
    """Check cost by period, service and pool, idle capacity, tokens and carbon."""
    expected = []
    idle: dict[tuple[str, str], float] = defaultdict(float)
    leaving: dict[tuple[str, str], float] = defaultdict(float)
    for use in check.plan.pools:
        for key in (("period", use.period), ("pool", use.pool)):
            idle[key] += use.idle_usd
            leaving[key] += use.retirement_usd
    placed: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, (row, _) in enumerate(check.rows):
        for key in (("period", row.period), ("service", row.service), ("pool", row.pool)):
            placed[key].append(index)
    figures = expected_placements(check)
    standing: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in (check.capacity_usd, check.leaving_usd):
        for (pool, q), kinds in part.items():
            for key in (("period", check.problem.periods[q]), ("pool", pool)):
                for kind, usd in kinds.items():
                    standing[key][kind] += usd
    names = [("period", period) for period in check.problem.periods]
    names += [("service", service) for service in check.problem.services]
    names += [("pool", pool) for pool in dict.fromkeys(use.pool for use in check.plan.pools)]
    for key in names:
        rows = [figures[index] for index in placed[key]]
        kinds = dict(standing[key])
        if key[0] == "service":
            kinds["capacity"] = sum(row.usd - row.running_usd for row in rows)
        for kind in RUNNING_KINDS:
            kinds[kind] = sum(getattr(row, f"{kind}_usd") for row in rows)
        here = [check.rows[index] for index in placed[key]]
        unused = [
            (pool, m)
            for pool in check.pools
            for m, moment in enumerate(check.problem.moments)
            if key in (("pool", pool), ("period", check.problem.periods[moment.period]))
        ]
        carbon = carbon_kg(check, here, unused)
        expected.append(_cost(check, key, kinds, here, (idle[key], leaving[key], carbon)))
    yield from compared("cost", check.plan.costs, expected, ("scope", "name"), check.floor_usd)
    yield from _whole(check)


def _cost(
    check: PlanCheck,
    key: tuple[str, str],
    kinds: Mapping[str, float],
    runs: Sequence[Run],
    apart: tuple[float, float, float | None],
) -> Cost:
    million, usd = million_tokens(check, runs), sum(kinds.values())
    return Cost(
        scope=key[0],
        name=key[1],
        usd=usd,
        usd_by_kind=dict(kinds),
        idle_usd=apart[0],
        retirement_usd=apart[1],
        million_tokens=million,
        usd_per_million_tokens=usd / million if million else None,
        carbon_kg=apart[2],
    )


def _whole(check: PlanCheck) -> Iterator[Violation]:
    """Check the tokens and carbon of the whole plan."""
    million = million_tokens(check, check.rows)
    per_million = check.plan.objective_usd / million if million else None
    if not same(check.plan.usd_per_million_tokens, per_million):
        stated = check.plan.usd_per_million_tokens
        yield Violation("cost", misstated("cost per million tokens", stated, per_million, "USD"))
    everywhere = [(pool, m) for pool in check.pools for m in range(len(check.problem.moments))]
    carbon = carbon_kg(check, check.rows, everywhere)
    if not same(check.plan.carbon_kg, carbon):
        yield Violation("cost", misstated("carbon", check.plan.carbon_kg, carbon, "kg CO2"))
