"""Checks a plan against its fleet without the solver, in unrounded numbers.

Every constraint family and every cost term is computed again from the placements and purchases that the
plan states. It runs on every plan before anything is printed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.assemble import find_candidate
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Acquisition, Candidate, Phase, Problem, SupplyPool
from fleetplan.planner.statements import (
    Violation,
    cost_statements,
    differs,
    exceeds,
    placement_faults,
    purchase_faults,
)


class PlanError(Exception):
    """A plan breaks its own rules: a bug of ours, never a user's mistake."""


def verify(problem: Problem, plan: Plan) -> list[Violation]:
    """All rules that a plan breaks.

    Parameters
    ----------
    problem : Problem
        Sets and data, without rounding.
    plan : Plan
        What is to be checked; nothing but its placements, purchases, unmet demand and cost is trusted.

    Returns
    -------
    list[Violation]
        Empty for a plan that holds.
    """
    known: list[tuple[Placement, Candidate]] = []
    found: list[Violation] = []
    for row in plan.placements:
        faults = placement_faults(problem, row)
        found += [Violation("placement", fault) for fault in faults]
        candidate = find_candidate(problem, row)
        if candidate is not None and not faults:
            known.append((row, candidate))
    sound = []
    for purchase in plan.purchases:
        faults = purchase_faults(problem, purchase)
        found += [Violation("purchases", fault) for fault in faults]
        if not faults:
            sound.append(purchase)
    # The rules are checked on what is left, so that one wrong name does not hide the rest.
    check = _Check(problem, plan.model_copy(update={"purchases": tuple(sound)}), known)
    for part in (
        check.coverage(),
        check.latency(),
        check.replica_load(),
        check.capacity(),
        check.power(),
        check.purchases(),
        check.configurations(),
        check.budgets(),
        check.cost(),
    ):
        found.extend(part)
    return found


def require_valid(problem: Problem, plan: Plan) -> None:
    """Raise if a plan breaks a rule.

    Raises
    ------
    PlanError
        With every violation.
    """
    violations = verify(problem, plan)
    if violations:
        lines = "\n".join(f"  {violation.family}: {violation.message}" for violation in violations)
        raise PlanError(f"the plan does not hold; this is a bug of fleetplan:\n{lines}")


class _Check:
    """The rules, over one plan."""

    def __init__(self, problem: Problem, plan: Plan, rows: list[tuple[Placement, Candidate]]) -> None:
        self.problem = problem
        self.plan = plan
        self.rows = rows
        self.pools = {pool.name: pool for pool in problem.pools}
        self.budget = problem.fleet.budget

    def units(self, pool: SupplyPool, period: int) -> int:
        """Units that stand in a pool in a period."""
        total = pool.existing_units
        for purchase in self.plan.purchases:
            acquisition = self.acquisition(purchase.offer, purchase.pool)
            ordered = self.problem.periods.index(purchase.period)
            if purchase.pool == pool.name and acquisition.serves(ordered, period):
                total += purchase.units
        return total

    def acquisition(self, offer: str, pool: str) -> Acquisition:
        """The offer of a purchase."""
        return next(a for a in self.pools[pool].acquisitions if a.offer.name == offer)

    def in_cell(self, service: str, region: str, period: int) -> list[tuple[Placement, Candidate]]:
        """Placements of a service in a region and period."""
        name = self.problem.periods[period]
        return [
            (row, candidate)
            for row, candidate in self.rows
            if (row.service, row.region, row.period) == (service, region, name)
        ]

    def coverage(self) -> Iterator[Violation]:
        """Every class is served in both phases, up to what is declared unmet."""
        unmet = {
            (row.service, row.region, row.period, row.request_class): row.requests_per_s
            for row in self.plan.unmet
        }
        if unmet and self.problem.fleet.policy.unmet == "forbid":
            yield Violation("coverage", "demand is unmet, and the policy forbids it")
        for cell in self.problem.cells:
            rows = self.in_cell(cell.service, cell.region, cell.period)
            for k, demand in enumerate(cell.requests_per_s):
                name = self.problem.services[cell.service].classes[k].name
                served = dict.fromkeys(Phase, 0.0)
                for row, candidate in rows:
                    served[candidate.phase] += row.requests_per_s_by_class.get(name, 0.0)
                separate = min(served[Phase.PREFILL], served[Phase.DECODE])
                period = self.problem.periods[cell.period]
                missing = unmet.get((cell.service, cell.region, period, name), 0.0)
                total = served[Phase.AGGREGATED] + separate + missing
                label = f"{cell.service} {name} {cell.region} {period}"
                if exceeds(demand, total):
                    yield Violation("coverage", f"{label}: {total} of {demand} requests/s are served")
                if exceeds(served[Phase.PREFILL], separate) or exceeds(served[Phase.DECODE], separate):
                    yield Violation("coverage", f"{label}: the phases serve different rates: {served}")

    def latency(self) -> Iterator[Violation]:
        """Every placement meets the latency targets of its service."""
        for row, candidate in self.rows:
            service = self.problem.services[row.service]
            for k, request_class in enumerate(service.classes):
                if request_class.name not in row.requests_per_s_by_class:
                    continue
                ttft, tpot = candidate.ttft_ms[k], candidate.tpot_ms[k]
                label = f"{row.service} {row.config} {request_class.name}"
                if ttft is not None and service.ttft_ms is not None:
                    total = ttft + service.network_latency_ms
                    if exceeds(total, service.ttft_ms):
                        yield Violation("latency", f"{label}: TTFT {total} ms of {service.ttft_ms} ms")
                if tpot is not None and service.tpot_ms is not None and exceeds(tpot, service.tpot_ms):
                    yield Violation("latency", f"{label}: TPOT {tpot} ms of {service.tpot_ms} ms")

    def replica_load(self) -> Iterator[Violation]:
        """Replicas carry their traffic with its headroom."""
        for row, candidate in self.rows:
            service = self.problem.services[row.service]
            names = [request_class.name for request_class in service.classes]
            load = 0.0
            for name, rate in row.requests_per_s_by_class.items():
                capacity = candidate.requests_per_s[names.index(name)]
                if capacity <= 0:
                    yield Violation("replica_load", f"{row.config} cannot serve {row.service} {name}")
                    continue
                load += rate * (1 + service.headroom) / capacity
            if exceeds(load, row.replicas):
                yield Violation("replica_load", f"{row.service} {row.config}: {load} on {row.replicas}")

    def capacity(self) -> Iterator[Violation]:
        """Replicas can be packed into the units of their pool, less the reserve."""
        for pool in self.problem.pools:
            for q, period in enumerate(self.problem.periods):
                sizes = []
                for row, candidate in self.rows:
                    if (row.pool, row.period) == (pool.name, period):
                        if (row.region, candidate.hardware) != (pool.region, pool.hardware):
                            yield Violation("capacity", f"{row.config} cannot run in {pool.name}")
                        sizes += [candidate.accelerators] * row.replicas
                usable = self.units(pool, q) - pool.reserve_units
                if sizes and not fits(sizes, pool.accelerators_per_unit, usable):
                    yield Violation(
                        "capacity",
                        f"{pool.name} {period}: replicas of {sum(sizes)} accelerators in "
                        f"{usable} units of {pool.accelerators_per_unit}",
                    )

    def power(self) -> Iterator[Violation]:
        """What runs in a region stays within its power."""
        for region in self.problem.regions.values():
            if region.power_kw is None:
                continue
            for q, period in enumerate(self.problem.periods):
                load_kw = sum(
                    (candidate.power_kw or 0.0) * row.replicas
                    for row, candidate in self.rows
                    if (row.region, row.period) == (region.name, period)
                )
                if exceeds(load_kw * region.pue, region.power_kw[q]):
                    yield Violation(
                        "power",
                        f"{region.name} {period}: {load_kw * region.pue} of {region.power_kw[q]} kW",
                    )

    def purchases(self) -> Iterator[Violation]:
        """Offers bring what they may, and when they can."""
        taken: dict[tuple[str, int], int] = defaultdict(int)
        for purchase in self.plan.purchases:
            q = self.problem.periods.index(purchase.period)
            acquisition = self.acquisition(purchase.offer, purchase.pool)
            taken[purchase.offer, q] += purchase.units
            if not acquisition.useful_in(q, len(self.problem.periods)):
                yield Violation("purchases", f"{purchase.offer} cannot arrive from {purchase.period}")
            limit = acquisition.offer.max_units[q]
            if limit is not None and taken[purchase.offer, q] > limit:
                yield Violation("purchases", f"{purchase.offer} {purchase.period}: more than {limit}")

    def configurations(self) -> Iterator[Violation]:
        """A service runs few enough configurations, on hardware and runtimes that it allows."""
        limit = self.problem.fleet.policy.max_configs_per_service_region
        for cell in self.problem.cells:
            rows = self.in_cell(cell.service, cell.region, cell.period)
            running = {(row.phase, row.hardware, row.config) for row, _ in rows}
            if limit is not None and len(running) > limit:
                yield Violation("configurations", f"{cell.service} {cell.region}: {len(running)} > {limit}")
            service = self.problem.services[cell.service]
            for row, candidate in rows:
                runtime = "aggregated" if candidate.phase is Phase.AGGREGATED else "disaggregated"
                if runtime not in service.runtimes:
                    yield Violation("configurations", f"{row.service} does not allow {runtime}")
                allowed = service.allowed_hardware
                if allowed is not None and row.hardware not in allowed:
                    yield Violation("configurations", f"{row.service} does not allow {row.hardware}")

    def budgets(self) -> Iterator[Violation]:
        """Capital, operating cost and TCO stay within their limits."""
        capex: dict[str, float] = defaultdict(float)
        for purchase in self.plan.purchases:
            per_unit = self.acquisition(purchase.offer, purchase.pool).capex_usd_per_unit
            capex[purchase.period] += purchase.units * per_unit
        for period, limit in zip(self.problem.periods, self.budget.capex_usd_by_period, strict=True):
            if limit is not None and exceeds(capex[period], limit):
                yield Violation("budgets", f"capex {period}: {capex[period]} of {limit} USD")
        kinds = self.cost_kinds()
        totals = (
            ("capex", sum(capex.values()), self.budget.capex_usd),
            ("opex", sum(kinds.values()) - kinds["depreciation"], self.budget.opex_usd),
            ("TCO", sum(kinds.values()), self.budget.tco_usd),
        )
        for name, spent, limit in totals:
            if limit is not None and exceeds(spent, limit):
                yield Violation("budgets", f"{name}: {spent} of {limit} USD")

    def cost(self) -> Iterator[Violation]:
        """The stated cost is the cost, and the bound is below it."""
        kinds = self.cost_kinds()
        total = sum(kinds.values())
        stated = self.plan.objective_usd
        if differs(total, stated):
            yield Violation("cost", f"the plan states {stated} USD, its parts cost {total} USD")
        if exceeds(self.plan.bound_usd, stated):
            yield Violation("cost", f"the bound {self.plan.bound_usd} exceeds the cost {stated} USD")
        split = sum(row.usd for row in self.plan.placements) + sum(use.idle_usd for use in self.plan.pools)
        if differs(split, stated):
            yield Violation("cost", f"placements and idle capacity cost {split} USD of {stated} USD")
        yield from cost_statements(self.problem, self.plan, kinds)

    def cost_kinds(self) -> dict[str, float]:
        """TCO over the horizon by kind, from the fleet's prices."""
        kinds: dict[str, float] = defaultdict(float)
        for pool in self.problem.pools:
            for kind, values in pool.fixed_cost_kinds.items():
                kinds[kind] += sum(values)
        for purchase in self.plan.purchases:
            acquisition = self.acquisition(purchase.offer, purchase.pool)
            ordered = self.problem.periods.index(purchase.period)
            for kind, values in acquisition.unit_cost_kinds.items():
                kinds[kind] += purchase.units * values[ordered]
        for row, candidate in self.rows:
            names = [c.name for c in self.problem.services[row.service].classes]
            load = sum(
                rate / candidate.requests_per_s[names.index(name)]
                for name, rate in row.requests_per_s_by_class.items()
                if candidate.requests_per_s[names.index(name)] > 0
            )
            q = self.problem.periods.index(row.period)
            kinds["energy"] += load * (candidate.power_kw or 0.0) * self.pools[row.pool].energy_usd_per_kw[q]
        return kinds


def fits(sizes: list[int], accelerators_per_unit: int, units: int) -> bool:
    """Whether replicas can be packed into hosts or pods.

    Parameters
    ----------
    sizes : list[int]
        Accelerators of each replica; one that is larger than a unit takes whole units.
    accelerators_per_unit, units : int
        Size and number of the units.

    Returns
    -------
    bool
        Exact: first-fit decreasing, and a search over all packings where that fails.
    """
    whole = sum(-(-size // accelerators_per_unit) for size in sizes if size >= accelerators_per_unit)
    small = sorted((size for size in sizes if size < accelerators_per_unit), reverse=True)
    left = units - whole
    if left < 0 or sum(small) > left * accelerators_per_unit:
        return False
    if _first_fit(small, accelerators_per_unit) <= left:
        return True
    counts: dict[int, int] = defaultdict(int)
    for size in small:
        counts[size] += 1
    return _search_packing(tuple(sorted(counts.items(), reverse=True)), accelerators_per_unit, left, {})


def _first_fit(sizes: list[int], unit: int) -> int:
    """Units that first-fit decreasing opens; only the distinct free spaces are looked at."""
    free: dict[int, int] = defaultdict(int)
    opened = 0
    for size in sizes:
        space = next((space for space in sorted(free) if space >= size and free[space]), None)
        if space is None:
            opened += 1
            space = unit
        else:
            free[space] -= 1
        free[space - size] += 1
    return opened


Counts = tuple[tuple[int, int], ...]


def _search_packing(counts: Counts, unit: int, units: int, seen: dict[tuple[Counts, int], bool]) -> bool:
    """Try every maximal filling of the next unit, the largest replica first."""
    counts = tuple((size, count) for size, count in counts if count)
    if not counts:
        return True
    if units == 0:
        return False
    key = (counts, units)
    if key not in seen:
        seen[key] = any(
            _search_packing(rest, unit, units - 1, seen) for rest in _fillings(counts, unit, first=True)
        )
    return seen[key]


def _fillings(counts: Counts, left: int, first: bool = False) -> Iterator[Counts]:
    """What remains after one unit is filled, for every way to fill it with at least the largest."""
    if not counts:
        yield ()
        return
    (size, count), rest = counts[0], counts[1:]
    for taken in range(min(count, left // size), 0 if first else -1, -1):
        for remaining in _fillings(rest, left - taken * size):
            yield ((size, count - taken), *remaining)
