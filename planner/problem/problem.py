"""The planning problem: candidates, supply pools and demand, as the model and the verifier share them.

Nothing here knows a solver. `build_problem` turns a resolved fleet and its candidates into sets and data;
floats stay floats (planner/formulation/scaling.py alone makes integers of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetplan.fleet.inventory import Fleet, Hardware, Region, Service
from fleetplan.planner.plan import AtMoment, MomentKey, Placement, Plan
from fleetplan.planner.problem.candidate import Candidate, ConfigurationKey, Phase, Slot
from fleetplan.planner.problem.demand import Cell, cells_of, moment_demand
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.moments import Moment, RowMoment, fleet_moments
from fleetplan.planner.problem.scenarios import FixedSupply, ScenarioOptimum
from fleetplan.planner.problem.supply import SupplyPool, supply_pools


@dataclass(frozen=True, slots=True)
class KnownBound:
    """A lower bound on TCO, proven of a problem that has all plans of this one, none of them dearer.

    Attributes
    ----------
    usd : float
        No plan that serves everything costs less. [USD]
    source : str
        Who proved it.
    """

    usd: float
    source: str


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Problem:
    """Everything that a plan is decided on and checked against; told apart by identity."""

    fleet: Fleet
    services: Mapping[str, Service]
    regions: Mapping[str, Region]
    hardware: Mapping[str, Hardware]
    periods: tuple[str, ...]
    moments: tuple[Moment, ...]
    """In the order of their periods; supply is decided by period, what runs by moment."""
    candidates: tuple[Candidate, ...]
    pools: tuple[SupplyPool, ...]
    cells: tuple[Cell, ...]
    running_before: Mapping[tuple[int, int, str | None], int] | None = None
    """Replicas of the plan in force by (candidate index, pool index, slice); None where there is none."""
    begins_with: Plan | None = None
    """Where a search begins: the plan in force, or the best one that is known; it decides nothing."""
    bounded_by: KnownBound | None = None
    """A bound that is known before the search."""
    scenario_optima: Mapping[str, ScenarioOptimum] | None = None
    """What would be best for each demand scenario alone; None where that is not known."""
    fixed_supply: FixedSupply | None = None
    """What was bought, rented and retired already; None where that is to be decided."""
    unit_demands: Mapping[str, float] | None = None
    """Largest demand of each service, by which rates and loads are counted; None for that of the cells.
    [requests/s]"""
    strict_budgets: bool = False
    """Whether limits of cost leave no load unit for rounding (planner/formulation/constraints/budgets.py)."""

    @property
    def counts_changes(self) -> bool:
        """Whether it matters which replicas start from one period to the next."""
        if self.running_before is not None:
            return True
        return len(self.periods) > 1 and self.fleet.policy.transition_usd_per_accelerator > 0

    @property
    def counts_tides(self) -> bool:
        """Whether it matters which replicas start from one slice of the day to the next."""
        return len(self.fleet.slices) > 1 and self.fleet.policy.tidal.counts

    @property
    def keeps_idle_replicas(self) -> bool:
        """Whether a replica may run without traffic, because starting it anew is limited or costs."""
        return self.counts_changes or self.counts_tides

    @property
    def minimises_regret(self) -> bool:
        """Whether the largest regret over the demand scenarios comes before TCO."""
        return self.fleet.demand_objective == "least-regret" and self.scenario_optima is not None

    @property
    def bound_by_scenarios(self) -> bool:
        """Whether a plan for all demand scenarios is bounded by the best plan of each, which is known."""
        return self.scenario_optima is not None and self.scenarios_are_bounds

    @property
    def scenarios_are_bounds(self) -> bool:
        """Whether no plan for all demand scenarios costs less in one of them than the best plan for it alone.

        A limit of operating cost holds in the mean of the scenarios, what must be used is used in some, and a
        goal before TCO is reached in all together: in one of them a plan may do without.
        """
        fleet = self.fleet
        return fleet.objective == "tco" and fleet.budget.opex_usd is None and not fleet.policy.must_use

    def serving_regions(self, cell: Cell) -> tuple[str, ...]:
        """Regions whose pools may serve the demand of a cell, or decode what those have prefilled."""
        first = (cell.region, *self.services[cell.service].serve_from.get(cell.region, ()))
        if self.fleet.policy.kv_transfer != "cross-region":
            return first
        linked = (name for region in first for name in _linked_regions(self).get(region, ()))
        return tuple(dict.fromkeys((*first, *linked)))

    def slots(self, cell: Cell) -> list[Slot]:
        """Candidates of a cell's service in the pools of the regions that may serve it."""
        return [
            (c, p)
            for c in self.candidates_of(cell.service)
            for region in self.serving_regions(cell)
            for p in self.pools_for(self.candidates[c], region)
        ]

    def may_serve(self, slot: Slot, k: int, origin: str) -> bool:
        """Whether a candidate in a pool can serve a class of its service for the requests of a region.

        The first token must come in time after the way to another region; what follows it may be decoded
        wherever the KV cache goes.
        """
        candidate, region = self.candidates[slot[0]], self.pools[slot[1]].region
        if candidate.requests_per_s[k] <= 0:
            return False
        if candidate.phase is Phase.DECODE or region == origin:
            return True
        if region not in self.services[candidate.service].serve_from.get(origin, ()):
            return False
        return self.spare_ms(slot[0], k) >= self.round_trip_ms(origin, region)

    def quality(self, candidate: Candidate) -> float:
        """Score of the variant that a candidate runs."""
        variants = self.services[candidate.service].variants
        return next(variant.quality for variant in variants if variant.name == candidate.variant)

    def spare_ms(self, c: int, k: int) -> float:
        """Time that a candidate leaves of its service's TTFT limit; infinite without a limit. [ms]"""
        candidate = self.candidates[c]
        return candidate.spare_ms(k, self.services[candidate.service].inner_ttft_ms)

    def round_trip_ms(self, origin: str, region: str) -> float:
        """Way from a region to another one and back; 0 within one. [ms]"""
        return 0.0 if origin == region else self.regions[origin].round_trip_ms[region]

    def day_of(self, moment: int) -> tuple[int, ...]:
        """Indices of the moments of the same period and demand scenario: the slices of a day."""
        day = self.moments[moment].day_label
        return tuple(m for m, other in enumerate(self.moments) if other.day_label == day)

    def moment_index(self, row: AtMoment) -> int | None:
        """Index of the moment that a row of a plan names; None where there is none of that name."""
        return next(
            (m for m, moment in enumerate(self.moments) if self.moment_key(moment) == row.moment_key), None
        )

    def moment_of(self, row: AtMoment) -> Moment:
        """The moment that a row of a plan names.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        index = self.moment_index(row)
        if index is None:
            raise ValueError(f"there is no moment {row.moment_key}")
        return self.moments[index]

    def moment_key(self, moment: Moment) -> MomentKey:
        """Period, slice and demand scenario of a moment, as rows of a plan name them."""
        return self.periods[moment.period], moment.slice, moment.scenario

    def row_moment(self, m: int) -> RowMoment:
        """Return the fields by which rows of a plan name a moment."""
        period, part, scenario = self.moment_key(self.moments[m])
        return {"period": period, "slice": part, "scenario": scenario}

    def demand(self, service: str, moment: int) -> dict[tuple[str, str], float]:
        """Demand of a service in a moment by (region, class), wherever it arises. [requests/s]"""
        return moment_demand(self.services[service], self.periods, self.moments[moment])

    def pools_for(self, candidate: Candidate, region: str) -> list[int]:
        """Indices of the pools of a region that can host a candidate."""
        if not self.services[candidate.service].may_run_in(region):
            return []
        return _pools_by_place(self).get((region, candidate.hardware), [])

    def candidates_of(self, service: str) -> list[int]:
        """Indices of the candidates of a service."""
        return _candidates_by_service(self).get(service, [])


@memoised
def _linked_regions(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Regions that links lead to, by the region that they lead from."""
    places = {pool.name: pool.region for pool in problem.pools} | {name: name for name in problem.regions}
    found: dict[str, list[str]] = {}
    for link in problem.fleet.kv_links:
        if link.prefill in places and link.decode in places:
            found.setdefault(places[link.prefill], []).append(places[link.decode])
    return {region: tuple(dict.fromkeys(others)) for region, others in found.items()}


@memoised
def _pools_by_place(problem: Problem) -> dict[tuple[str, str], list[int]]:
    """Indices of the pools by region and hardware."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, pool in enumerate(problem.pools):
        found.setdefault((pool.region, pool.hardware), []).append(index)
    return found


@memoised
def _candidates_by_service(problem: Problem) -> dict[str, list[int]]:
    """Indices of the candidates by service."""
    found: dict[str, list[int]] = {}
    for index, candidate in enumerate(problem.candidates):
        found.setdefault(candidate.service, []).append(index)
    return found


def build_problem(fleet: Fleet, candidates: Sequence[Candidate]) -> Problem:
    """Sets and data of the planning problem.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    candidates : Sequence[Candidate]
        Feasible configurations of all services.

    Returns
    -------
    Problem
        Candidates without a pool that could host them are kept; they simply get no variable.
    """
    services = {service.name: service for service in fleet.services}
    moments = fleet_moments(fleet)
    cells = [
        cell
        for service in fleet.services
        for region in fleet.regions
        for cell in cells_of(service, region.name, fleet.periods, moments)
    ]
    return Problem(
        fleet=fleet,
        services=services,
        regions={region.name: region for region in fleet.regions},
        hardware=fleet.hardware,
        periods=fleet.periods,
        moments=moments,
        candidates=tuple(candidates),
        pools=tuple(supply_pools(fleet)),
        cells=tuple(cells),
    )


def find_candidate(problem: Problem, row: Placement) -> Candidate | None:
    """The candidate that a placement runs, or None if the problem has none of that name."""
    return _candidates_by_key(problem).get(row.key)


@memoised
def _candidates_by_key(problem: Problem) -> dict[ConfigurationKey, Candidate]:
    """Candidates by what a plan names them; the first of several alike."""
    return {candidate.key: candidate for candidate in reversed(problem.candidates)}
