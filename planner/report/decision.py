"""A plan in one sentence: orders, retirements, cost, optimality, binding limits, weakest prediction."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.figures import counted, figure, money, percent
from fleetplan.fleet.inventory.periods import DEFAULT_PERIOD
from fleetplan.planner.plan import Plan, Purchase, Shortage, Unmet

ONLY_CLASS: Final = "all"
"""Name of the request class of a service with only one class."""

DEFAULT_REGION: Final = "default"
"""Name of the region in a fleet file without regions."""

ORDERS_IN_FULL: Final = 3
"""Maximum number of orders stated individually; more are added up by action and hardware."""

ENDS_WITH_PERIOD: Final = frozenset({"rent", "spot"})
"""Kinds of orders that last one period and recur in the next one."""

NAMES: Final = 3
"""Binding limits named in the sentence."""


def decision(plan: Plan) -> str:
    """Return the decision of a plan as a planner would state it to a CFO.

    Parameters
    ----------
    plan : Plan
        A verified plan.
    """
    steps = [*_orders(plan), *_retired(plan)]
    if not steps:
        steps = ["buy, rent and retire nothing"]
    orders = decided(plan)
    spent = sum(row.usd for row in orders)
    # Without orders, the cost of the whole fleet would read as the cost of these steps.
    cost = f"{money(spent)} of {money(plan.objective_usd)}" if orders else f"TCO {money(plan.objective_usd)}"
    if price := sum(row.capex_usd for row in orders):
        # The plan charges the write-off within its periods; whoever approves it pays the full price.
        cost += f" (purchase price {money(price)})"
    parts = [f"{', '.join(steps)}: {cost}", _how_good(plan), *_binding(plan), *_weakest(plan)]
    return "; ".join(parts)


def decided(plan: Plan) -> list[Purchase]:
    """Return the orders of a plan except those assumed for the extension of the horizon."""
    return [row for row in plan.purchases if not row.assumed]


def ordered_accelerators(plan: Plan) -> int:
    """Return the accelerators that a plan orders; rentals by the period count once, at their maximum."""
    lasting = 0
    by_period: dict[str, int] = {}
    for row in decided(plan):
        if row.kind in ENDS_WITH_PERIOD:
            by_period[row.period] = by_period.get(row.period, 0) + row.accelerators
        else:
            lasting += row.accelerators
    return lasting + max(by_period.values(), default=0)


def _orders(plan: Plan) -> list[str]:
    orders = decided(plan)
    if len(orders) <= ORDERS_IN_FULL:
        return [
            f"{verb(row)} {counted(row.units, row.unit)} {row.hardware}"
            f"{where_and_when(row.region, row.period)}"
            for row in orders
        ]
    units: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in orders:
        by_period = units.setdefault((verb(row), row.hardware, row.unit), {})
        # A rental ends with its period: the next period rents the same accelerators again.
        period = row.period if row.kind in ENDS_WITH_PERIOD else ""
        by_period[period] = by_period.get(period, 0) + row.units
    found = []
    for (done, hardware, unit), by_period in units.items():
        varies = len(set(by_period.values())) > 1
        most = counted(max(by_period.values()), unit)
        found.append(f"{done} {'up to ' if varies else ''}{most} {hardware}")
    return found


def _retired(plan: Plan) -> list[str]:
    leaving = [row for row in plan.retirements if not row.assumed]
    found = []
    for kind, unit in dict.fromkeys((row.kind, row.unit) for row in leaving):
        rows = [row for row in leaving if (row.kind, row.unit) == (kind, unit)]
        parts = ", ".join(dict.fromkeys(row.hardware for row in rows))
        end = " at the end of the lease" if kind == "return" else ""
        found.append(f"{kind} {counted(sum(row.hosts for row in rows), unit)} ({parts}){end}")
    return found


def where_and_when(region: str, *moment: str | None) -> str:
    """Return ` in us-east 2027Q1 day`, without the default region and period."""
    place = "" if region == DEFAULT_REGION else f" in {region}"
    return place + "".join(f" {part}" for part in moment if part and part != DEFAULT_PERIOD)


def asked_by(row: Unmet | Shortage) -> str:
    """Return the origin of unmet demand, such as `chat long in us-east 2027Q1`; an only class is left out."""
    of_class = "" if row.request_class == ONLY_CLASS else f" {row.request_class}"
    return f"{row.service}{of_class}{where_and_when(row.region, *row.moment_key)}"


def verb(row: Purchase) -> str:
    """Return the action on an offer: `buy`, `rent`, or `rent on spot`."""
    return "rent on spot" if row.kind == "spot" else row.kind


def _how_good(plan: Plan) -> str:
    if plan.status == "optimal":
        return "optimal"
    more_usd = plan.objective_usd - plan.bound_usd
    if money(more_usd) == money(0.0):
        # The solver charges whole load units that the plan need not pay; another plan might save that
        # difference.
        rounding = money(0.0 if plan.model_usd is None else abs(plan.model_usd - plan.objective_usd))
        how = "to the cent" if rounding == money(0.0) else f"but for rounding of {rounding}"
        return f"optimal {how}{plan.bound_scope}"
    # The gap is relative to the plan's cost; this share is relative to the lower bound.
    share = f" ({percent(more_usd / plan.bound_usd)})" if plan.bound_usd > 0 else ""
    return f"at most {money(more_usd)}{share} above the optimum{plan.bound_scope}"


def _binding(plan: Plan) -> list[str]:
    """Return the binding limits, each once over all periods and slices."""
    found = dict.fromkeys(limit_names(plan))
    # The limit of an offer is also that of the pool it fills: `us-east/h200-rent` and `h200-rent`.
    filled = {f"{name.rpartition('/')[2]} (purchases)" for name in found if "/" in name}
    names = [name for name in found if name not in filled]
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return [f"binding: {', '.join(names[:NAMES])}{more}"] if names else []


def limit_names(plan: Plan) -> list[str]:
    """Return the binding limits without their moments; all but capacity limits name their family."""
    moments = {*plan.periods, *(row.slice for row in plan.pools), *(row.slice for row in plan.placements)}
    moments |= {row.scenario for row in plan.placements}
    names = (
        (" ".join(word for word in row.name.split(" ") if word not in moments), row.family)
        for row in plan.binding
    )
    return [name if family == "capacity" else f"{name} ({family})" for name, family in names]


def _weakest(plan: Plan) -> list[str]:
    """Return the hardware with the largest TPOT error against published benchmarks, unpublished first."""
    errors = plan.provenance.model_errors
    unknown = [each.hardware for each in errors if each.median_ratio is None]
    if unknown:
        return [f"weakest number: {', '.join(unknown)} (TPOT not published)"]
    known = [(each.median_ratio, each.hardware) for each in errors if each.median_ratio is not None]
    if not known:
        return []
    error, hardware = max(known)
    return [f"weakest number: {hardware} (TPOT {error:.0%} off published benchmarks)"]


def simpler(plan: Plan) -> str:
    """Return what the simpler plan avoids and how much more it costs; empty if it is the cheapest plan."""
    stated = plan.simplification
    if stated is None:
        return ""
    counts = [
        (what, before, after)
        for what, before, after in (
            ("flows of a service between regions", stated.flows_before, stated.flows),
            ("pairs of service and hardware", stated.hardware_kinds_before, stated.hardware_kinds),
            ("configurations", stated.configurations_before, stated.configurations),
        )
        if before is not None and after is not None and before != after
    ]
    parts = [f"{after} instead of {before} {what}" for what, before, after in counts if after < before]
    home = stated.home
    at_home = ""
    if home is not None and home.away_requests_per_s != home.away_requests_per_s_before:
        away, before = figure(home.away_requests_per_s), figure(home.away_requests_per_s_before)
        parts.insert(0, f"{away} instead of {before} requests/s served in another region on average")
        at_home = f", {money(home.usd)} of it to serve requests in their own region" if home.usd >= 1 else ""
    cheapest = plan.objective_usd - stated.usd
    share = f" ({percent(stated.usd / cheapest)})" if cheapest > 0 and stated.usd > 0 else ""
    if not parts and money(stated.usd) == money(0.0):
        # The two plans differ only in the order of replicas.
        return ""
    several = len({row.region for row in plan.pools}) > 1
    what = ", ".join(parts) or ("less traffic between regions" if several else "fewer starts of replicas")
    # A smaller count of one kind may need a larger count of another.
    more = [f"{after} instead of {before} {what}" for what, before, after in counts if after > before]
    what += f", but {', '.join(more)}" if more else ""
    return f"{what}, for {money(stated.usd)}{share} more than the cheapest plan found{at_home}"
