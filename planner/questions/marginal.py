"""Marginal values: solve the fleet again with one more unit of each resource and report the saving."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import pandas as pd

from fleetplan.fleet.figures import figure
from fleetplan.fleet.inventory import Budget, Fleet
from fleetplan.planner.api import NoPlanFoundError
from fleetplan.planner.formulation import fixed_usd
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import KnownBound, Problem
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_edits import Edit
from fleetplan.planner.questions.fleet_question import FleetAnswer, FleetQuestion
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.reuse import bound_of, counts_cost_alone
from fleetplan.planner.search import CostThresholds
from fleetplan.planner.search.result import OPTIMAL_GAP

KILOWATTS: Final = (1.0, 10.0)
"""Increments of power, each solved separately; most replicas draw more than one kilowatt. [kW]"""

MILLISECONDS: Final = (1.0, 10.0)
"""Increments of a latency limit, each solved separately. [ms]"""

BUDGET_RATIOS: Final = (0.01,)
"""Increments of a budget as shares of it, besides one dollar."""

UNITS_OF_SUPPLY: Final = ("host", "accelerator")
"""Units of the maximum of an offer."""

ALSO_HIDDEN: Final = 0.1
"""Share of the optimality gap by which a group may save more than the gap without a solve for each member.
The range of each member then widens by that amount.
"""


@dataclass(frozen=True, slots=True)
class ExtraUnit:
    """One more unit of a resource.

    Attributes
    ----------
    name : str
        Name of the resource.
    amount : float
        Size of the increment.
    unit : str
        Unit of the increment.
    edit : callable
        Returns the fleet with the increment.
    is_limit : bool
        Whether it relaxes a limit at no cost of its own, so that every plan remains feasible.
    """

    name: str
    amount: float
    unit: str
    edit: Edit
    is_limit: bool = True

    @property
    def amount_text(self) -> str:
        """Increment with its unit."""
        return f"{figure(self.amount)} {self.unit}"


@dataclass(frozen=True, slots=True)
class UnitValue:
    """Marginal value of a resource.

    Attributes
    ----------
    more : ExtraUnit
        Increment of the resource.
    least_usd, most_usd : float
        Range of the saving in TCO, excluding the price of the unit itself. [USD]
    price_usd : float
        Fixed cost of the unit over the horizon, whether used or not; 0 for offers, which the plan pays for.
        [USD]
    plan : Plan or None
        Plan with the increment; None if the time was too short, and the old plan still holds.
    """

    more: ExtraUnit
    least_usd: float
    most_usd: float
    price_usd: float
    plan: Plan | None

    @property
    def proven(self) -> bool:
        """Return whether the saving is proven to be positive."""
        return self.least_usd > 0


def one_more(fleet: Fleet) -> Iterator[ExtraUnit]:
    """Yield every resource of a fleet that can be increased."""
    for pool in fleet.pools:
        name = pool.name

        def grown(base: Fleet, name: str = name) -> Fleet:
            return fleet_edits.with_pool(base, name, lambda each: replace(each, hosts=each.hosts + 1))

        unit = "host" if pool.accelerators_per_host > 1 else "accelerator"
        yield ExtraUnit(f"pool {name}", 1, unit, grown, is_limit=False)
    for offer in fleet.offers:
        if any(limit is not None for limit in offer.max_units):

            def raised(base: Fleet, name: str = offer.name) -> Fleet:
                return fleet_edits.maximum_changed(base, name, lambda units: units + 1)

            yield ExtraUnit(f"maximum of offer {offer.name}", 1, offer.unit, raised)
    yield from _power(fleet)
    yield from _budgets(fleet)
    yield from _latency(fleet)


def _power(fleet: Fleet) -> Iterator[ExtraUnit]:
    for region in fleet.regions:
        if region.power_kw is None:
            continue
        for amount in KILOWATTS:

            def raised(base: Fleet, name: str = region.name, more_kw: float = amount) -> Fleet:
                return fleet_edits.power_limited(base, name, lambda limit_kw: limit_kw + more_kw)

            yield ExtraUnit(f"power of {region.name}", amount, "kW", raised)


def _budgets(fleet: Fleet) -> Iterator[ExtraUnit]:
    budget = fleet.budget
    limits = {"capex_usd": budget.capex_usd, "opex_usd": budget.opex_usd, "tco_usd": budget.tco_usd}
    for field, limit in limits.items():
        for amount in () if limit is None else (1.0, *(ratio * limit for ratio in BUDGET_RATIOS)):

            def raised(base: Fleet, field: str = field, more_usd: float = amount) -> Fleet:
                return fleet_edits.with_budget(base, lambda each: _raised_budget(each, field, more_usd))

            yield ExtraUnit(f"{field.removesuffix('_usd')} budget", amount, "USD", raised)
    for q, (period, limit) in enumerate(zip(fleet.periods, budget.capex_usd_by_period, strict=True)):
        for amount in () if limit is None else (1.0, *(ratio * limit for ratio in BUDGET_RATIOS)):

            def raised_in(base: Fleet, q: int = q, more_usd: float = amount) -> Fleet:
                return fleet_edits.with_budget(base, lambda each: _raised_period(each, q, more_usd))

            yield ExtraUnit(f"capex budget of {period}", amount, "USD", raised_in)


def _raised_budget(budget: Budget, field: str, more_usd: float) -> Budget:
    limits = {"capex_usd": budget.capex_usd, "opex_usd": budget.opex_usd, "tco_usd": budget.tco_usd}
    limits[field] = (limits[field] or 0.0) + more_usd
    return Budget(budget.capex_usd_by_period, limits["capex_usd"], limits["opex_usd"], limits["tco_usd"])


def _raised_period(budget: Budget, period: int, more_usd: float) -> Budget:
    limits = tuple(
        limit if q != period or limit is None else limit + more_usd
        for q, limit in enumerate(budget.capex_usd_by_period)
    )
    return replace(budget, capex_usd_by_period=limits)


def _latency(fleet: Fleet) -> Iterator[ExtraUnit]:
    for service in fleet.services:
        for label, limit in (("TTFT", service.ttft_ms), ("TPOT", service.tpot_ms)):
            for amount in () if limit is None else MILLISECONDS:

                def lifted(
                    base: Fleet, name: str = service.name, label: str = label, more_ms: float = amount
                ) -> Fleet:
                    return fleet_edits.latency_limits_changed(
                        base, name, lambda ms: ms + more_ms, ttft=label == "TTFT", tpot=label == "TPOT"
                    )

                yield ExtraUnit(f"{label} limit of {service.name}", amount, "ms", lifted)


def unit_values(
    every: Sequence[ExtraUnit], plan: Plan, fleet: Fleet, resolver: Resolver
) -> Iterator[UnitValue]:
    """Yield the marginal value of each increment, as soon as it is solved.

    Parameters
    ----------
    every : Sequence[ExtraUnit]
        Increments to value.
    plan : Plan
        Plan of the unchanged fleet that serves all demand at the lowest TCO; it holds with every increment.
    fleet : Fleet
        Unchanged fleet.
    resolver : Resolver
        Solves changed fleets, at most once per increment that changes the integer program, and once per
        group.
    """
    before = resolver.problem(fleet)[1]
    same_as = before if counts_cost_alone(fleet) else None
    asked = [FleetQuestion(more.edit(fleet), begin=plan, same_as=same_as) for more in every]
    if not resolver.side_by_side:
        # Candidates evaluated for the loosest latency limits cover all tighter ones.
        with suppress(NoPlanFoundError):
            resolver.problem_in_time(with_all([more for more in every if more.unit == "ms"], fleet))
    if same_as is None:
        for more, answer in zip(every, resolver.answers(asked), strict=True):
            yield _worth(more, plan, before, answer)
        return
    limits: list[ExtraUnit] = []
    alone: list[tuple[ExtraUnit, FleetQuestion]] = []
    for more, question, same in zip(every, asked, resolver.in_order(Resolver.is_known, asked), strict=True):
        if same:
            yield UnitValue(more, 0.0, 0.0, 0.0, plan)
        elif more.is_limit:
            limits.append(more)
        else:
            alone.append((more, question))
    answers = resolver.answers([question for _, question in alone])
    for (more, _), answer in zip(alone, answers, strict=True):
        yield _worth(more, plan, before, answer)
    yield from _limits_together(limits, plan, before, resolver)


def _limits_together(
    limits: Sequence[ExtraUnit], plan: Plan, before: Problem, resolver: Resolver
) -> Iterator[UnitValue]:
    """Yield the marginal values of limits, in groups that one lower bound decides.

    A plan with one relaxed limit costs at least as much as the optimum with several relaxed limits. If that
    optimum is within the gap of the plan, or little below it, no member saves more; otherwise the group is
    split.
    """
    fleet, gap_ratio = before.fleet, max(resolver.limits.gap_ratio, OPTIMAL_GAP)
    # The bound of the plan is often just within its gap; the bound of a wider fleet is rarely tighter.
    hidden_usd = plan.objective_usd * gap_ratio
    enough_usd = min(plan.objective_usd - hidden_usd, plan.bound_usd) - ALSO_HIDDEN * hidden_usd
    side = CostThresholds(math.nextafter(enough_usd, -math.inf), enough_usd)
    # Group limits of one kind first: some kinds have no value, and one valuable limit spoils its group.
    # Single latency limits save little, but several of them together always save something.
    kinds = groupby(limits, key=_kind_of)
    level: list[tuple[Sequence[ExtraUnit], KnownBound | None]] = [(list(kind), None) for _, kind in kinds]
    while level:
        asked = [
            FleetQuestion(
                with_all(each, fleet), begin=plan, bound=bound, thresholds=side if _is_mixed(each) else None
            )
            for each, bound in level
        ]
        following: list[tuple[Sequence[ExtraUnit], KnownBound | None]] = []
        for (group, _), answer in zip(level, resolver.answers(asked), strict=True):
            rest = group
            if not _is_mixed(group):
                *rest, most = sorted(group, key=lambda more: more.amount)
                yield _worth(most, plan, before, answer)
            if answer.least_usd >= enough_usd:
                most_usd = max(plan.objective_usd - answer.least_usd, 0.0)
                yield from (UnitValue(more, 0.0, most_usd, 0.0, plan) for more in rest)
                continue
            bound = None if answer.plan is None else bound_of(answer.plan, fleet)
            following += [(part, bound) for part in _parts(rest, told=answer.most_usd < enough_usd)]
        level = following


def _kind_of(more: ExtraUnit) -> str:
    """Return the kind by which limits are grouped."""
    if more.unit in UNITS_OF_SUPPLY:
        return "supply"
    return more.name if more.unit == "ms" else more.unit


def _is_mixed(group: Sequence[ExtraUnit]) -> bool:
    """Return whether a group contains several resources instead of increments of one."""
    return len({more.name for more in group}) > 1


def _parts(group: Sequence[ExtraUnit], told: bool) -> list[Sequence[ExtraUnit]]:
    """Return the next parts of a group: halves, or single resources if the time ran out."""
    if told and _is_mixed(group):
        middle = len(group) // 2
        return [group[:middle], group[middle:]]
    return [list(each) for _, each in groupby(group, key=lambda more: more.name)]


def with_all(every: Sequence[ExtraUnit], fleet: Fleet) -> Fleet:
    """Return the fleet with the largest increment of every resource."""
    most = {more.name: more for more in sorted(every, key=lambda more: more.amount)}
    for more in most.values():
        fleet = more.edit(fleet)
    return fleet


def _worth(more: ExtraUnit, plan: Plan, before: Problem, answer: FleetAnswer) -> UnitValue:
    if answer.known:
        return UnitValue(more, 0.0, 0.0, 0.0, plan)
    price = fixed_usd(answer.problem) - fixed_usd(before)
    most_after = min(answer.most_usd - price, plan.objective_usd)
    least_after = min(answer.least_usd - price, most_after)
    return UnitValue(
        more,
        max(0.0, plan.bound_usd - most_after),
        plan.objective_usd - least_after,
        price,
        answer.plan,
    )


def by_worth(rows: Iterable[UnitValue]) -> list[UnitValue]:
    """Return marginal values sorted by proven saving."""
    return sorted(rows, key=lambda row: (-row.least_usd, -row.most_usd))


def marginal_table(rows: Sequence[UnitValue]) -> pd.DataFrame:
    """Return one row per increment: resource, amount, unit, range of the saving, and price. [USD]"""
    return pd.DataFrame(
        [
            {
                "more_of": row.more.name,
                "amount": row.more.amount,
                "unit": row.more.unit,
                "worth_least_usd": row.least_usd,
                "worth_most_usd": row.most_usd,
                "price_usd": row.price_usd,
            }
            for row in rows
        ],
        columns=["more_of", "amount", "unit", "worth_least_usd", "worth_most_usd", "price_usd"],
    )
