"""Planning problem: candidates, supply pools and demand, shared by the model and the verifier.

Independent of the solvers. `build_problem` turns a resolved fleet and its candidates into sets and data;
floats stay floats (only planner/formulation/scaling.py converts them to integers).
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
    """Lower bound on TCO, proven for a problem that contains all plans of this one at no higher cost.

    Attributes
    ----------
    usd : float
        Least TCO of plans that serve all demand. [USD]
    source : str
        Component that proved it.
    """

    usd: float
    source: str


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Problem:
    """All inputs on which a plan is decided and verified; compared by identity."""

    fleet: Fleet
    services: Mapping[str, Service]
    regions: Mapping[str, Region]
    hardware: Mapping[str, Hardware]
    periods: tuple[str, ...]
    moments: tuple[Moment, ...]
    """In the order of their periods; supply is decided by period, placements by moment."""
    candidates: tuple[Candidate, ...]
    pools: tuple[SupplyPool, ...]
    cells: tuple[Cell, ...]
    running_before: Mapping[tuple[int, int, str | None], int] | None = None
    """Replicas of the plan in force by (candidate index, pool index, slice); None without one."""
    begins_with: Plan | None = None
    """Plan from which the search starts: the plan in force, or the best known one; it constrains nothing."""
    bounded_by: KnownBound | None = None
    """Bound known before the search."""
    scenario_optima: Mapping[str, ScenarioOptimum] | None = None
    """Optimum of each demand scenario alone; None if unknown."""
    fixed_supply: FixedSupply | None = None
    """Purchases, rents and retirements that are fixed; None if open."""
    unit_demands: Mapping[str, float] | None = None
    """Largest demand of each service, which sets the units of rates and loads; None for that of the cells.
    [requests/s]"""
    strict_budgets: bool = False
    """Whether budgets allow no load unit for rounding (planner/formulation/constraints/budgets.py)."""

    @property
    def counts_changes(self) -> bool:
        """Return whether starts of replicas between periods cost money or are reported."""
        if self.running_before is not None:
            return True
        return len(self.periods) > 1 and self.fleet.policy.transition_usd_per_accelerator > 0

    @property
    def counts_tides(self) -> bool:
        """Return whether starts of replicas between slices of the day cost money or are limited."""
        return len(self.fleet.slices) > 1 and self.fleet.policy.tidal.counts

    @property
    def keeps_idle_replicas(self) -> bool:
        """Return whether a replica may idle because starting it again is limited or costs money."""
        return self.counts_changes or self.counts_tides

    @property
    def minimises_regret(self) -> bool:
        """Return whether the largest regret over the demand scenarios comes before TCO."""
        return self.fleet.demand_objective == "least-regret" and self.scenario_optima is not None

    @property
    def bound_by_scenarios(self) -> bool:
        """Return whether known scenario optima bound the plans for all demand scenarios."""
        return self.scenario_optima is not None and self.scenarios_are_bounds

    @property
    def scenarios_are_bounds(self) -> bool:
        """Return whether a joint plan costs at least as much in each scenario as that scenario's optimum.

        Not with a limit on operating cost, which applies to the mean of the scenarios; a requirement, which
        is met in some; or a goal before TCO, which is reached in all together: a joint plan may ignore these
        in one scenario.
        """
        fleet = self.fleet
        return fleet.objective == "tco" and fleet.budget.opex_usd is None and not fleet.policy.must_use

    def serving_regions(self, cell: Cell) -> tuple[str, ...]:
        """Return the regions whose pools may serve a cell's demand, or decode what those prefill."""
        first = (cell.region, *self.services[cell.service].serve_from.get(cell.region, ()))
        if self.fleet.policy.kv_transfer != "cross-region":
            return first
        linked = (name for region in first for name in _linked_regions(self).get(region, ()))
        return tuple(dict.fromkeys((*first, *linked)))

    def slots(self, cell: Cell) -> list[Slot]:
        """Return the candidates of a cell's service in the pools of the regions that may serve it."""
        return [
            (c, p)
            for c in self.candidates_of(cell.service)
            for region in self.serving_regions(cell)
            for p in self.pools_for(self.candidates[c], region)
        ]

    def may_serve(self, slot: Slot, k: int, origin: str) -> bool:
        """Return whether a candidate in a pool can serve a class of its service for requests of a region.

        The first token must arrive in time after the way to another region; decode may run wherever the KV
        cache can go.
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
        """Return the quality score of a candidate's variant."""
        variants = self.services[candidate.service].variants
        return next(variant.quality for variant in variants if variant.name == candidate.variant)

    def spare_ms(self, c: int, k: int) -> float:
        """Return the time that a candidate leaves within its TTFT limit; infinite without a limit. [ms]"""
        candidate = self.candidates[c]
        return candidate.spare_ms(k, self.services[candidate.service].inner_ttft_ms)

    def round_trip_ms(self, origin: str, region: str) -> float:
        """Return the round-trip time between regions; 0 within one. [ms]"""
        return 0.0 if origin == region else self.regions[origin].round_trip_ms[region]

    def day_of(self, moment: int) -> tuple[int, ...]:
        """Return the indices of the moments of the same period and demand scenario: the slices of a day."""
        day = self.moments[moment].day_label
        return tuple(m for m, other in enumerate(self.moments) if other.day_label == day)

    def moment_index(self, row: AtMoment) -> int | None:
        """Return the index of the moment that a plan row names; None if there is none."""
        return next(
            (m for m, moment in enumerate(self.moments) if self.moment_key(moment) == row.moment_key), None
        )

    def moment_of(self, row: AtMoment) -> Moment:
        """Return the moment that a plan row names.

        Raises
        ------
        ValueError
            If there is no such moment.
        """
        index = self.moment_index(row)
        if index is None:
            raise ValueError(f"there is no moment {row.moment_key}")
        return self.moments[index]

    def moment_key(self, moment: Moment) -> MomentKey:
        """Return a moment's period, slice and demand scenario, as plan rows name them."""
        return self.periods[moment.period], moment.slice, moment.scenario

    def row_moment(self, m: int) -> RowMoment:
        """Return the fields by which plan rows name a moment."""
        period, part, scenario = self.moment_key(self.moments[m])
        return {"period": period, "slice": part, "scenario": scenario}

    def demand(self, service: str, moment: int) -> dict[tuple[str, str], float]:
        """Return the demand of a service in a moment by (region, class). [requests/s]"""
        return moment_demand(self.services[service], self.periods, self.moments[moment])

    def pools_for(self, candidate: Candidate, region: str) -> list[int]:
        """Return the indices of a region's pools that can host a candidate."""
        if not self.services[candidate.service].may_run_in(region):
            return []
        return _pools_by_place(self).get((region, candidate.hardware), [])

    def candidates_of(self, service: str) -> list[int]:
        """Return the indices of a service's candidates."""
        return _candidates_by_service(self).get(service, [])


@memoised
def _linked_regions(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return the regions that links lead to, by region of origin."""
    places = {pool.name: pool.region for pool in problem.pools} | {name: name for name in problem.regions}
    found: dict[str, list[str]] = {}
    for link in problem.fleet.kv_links:
        if link.prefill in places and link.decode in places:
            found.setdefault(places[link.prefill], []).append(places[link.decode])
    return {region: tuple(dict.fromkeys(others)) for region, others in found.items()}


@memoised
def _pools_by_place(problem: Problem) -> dict[tuple[str, str], list[int]]:
    """Return the indices of the pools by region and hardware."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, pool in enumerate(problem.pools):
        found.setdefault((pool.region, pool.hardware), []).append(index)
    return found


@memoised
def _candidates_by_service(problem: Problem) -> dict[str, list[int]]:
    """Return the indices of the candidates by service."""
    found: dict[str, list[int]] = {}
    for index, candidate in enumerate(problem.candidates):
        found.setdefault(candidate.service, []).append(index)
    return found


def build_problem(fleet: Fleet, candidates: Sequence[Candidate]) -> Problem:
    """Build the sets and data of the planning problem.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    candidates : Sequence[Candidate]
        Feasible configurations of all services.

    Returns
    -------
    Problem
        Includes candidates that no pool could host; they get no variables.
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
    """Return the candidate that a placement runs; None if there is none of that name."""
    return _candidates_by_key(problem).get(row.key)


@memoised
def _candidates_by_key(problem: Problem) -> dict[ConfigurationKey, Candidate]:
    """Return the candidates by key; the first of several with the same key."""
    return {candidate.key: candidate for candidate in reversed(problem.candidates)}
