"""Placements of a plan after the loss of a region, from solver values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.planner.assemble.row_place import row_place
from fleetplan.planner.assemble.traffic import shared_out
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import SurvivingPlacement
from fleetplan.planner.problem import Phase, Problem, Slot
from fleetplan.planner.problem.kv_pairs import surviving_pairs
from fleetplan.planner.problem.region_loss import joint_cells
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

LOAD_TOLERANCE: Final = 1e-7
"""Load above the capacity of replicas that counts as rounding. [replicas]"""

Place = tuple[str, int, int, int]
"""Lost region, moment index, candidate index, pool index."""


def region_losses(
    problem: Problem, solution: Solution, unmet: Mapping[tuple[int, int], float]
) -> tuple[SurvivingPlacement, ...]:
    """Return the placements of protected services after each loss, in proportion to the solver's loads.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    solution : Solution
        Solver values, which are rounded up.
    unmet : Mapping[tuple[int, int], float]
        Unserved demand of the plan by (cell, class). [requests/s]

    Returns
    -------
    tuple[SurvivingPlacement, ...]
        Placements whose rates add up to the demand, with the fewest replicas that carry them.
    """
    rates: dict[Place, dict[int, float]] = defaultdict(dict)
    for lost in problem.regions:
        for cell, parts in joint_cells(problem):
            for k, demand in enumerate(cell.requests_per_s):
                wanted = demand - sum(unmet.get((index, k), 0.0) for index in parts)
                if wanted <= 0:
                    continue
                for (c, p), rate in _scaled(problem, solution, (lost, cell.service, k, cell.moment), wanted):
                    rates[lost, cell.moment, c, p][k] = rate
    order = {lost: index for index, lost in enumerate(problem.regions)}
    places = sorted(rates, key=lambda place: (order[place[0]], place[1:]))
    return tuple(_row(problem, place, rates[place]) for place in places)


def _scaled(
    problem: Problem, solution: Solution, place: tuple[str, str, int, int], wanted: float
) -> Iterator[tuple[Slot, float]]:
    """Yield the rates of the slots that serve a class of a service in a moment after a loss. [requests/s]"""
    lost, service, k, m = place
    own = {
        (c, p): problem.candidates[c].requests_per_s[k] * units / LOAD_UNITS_PER_REPLICA
        for (gone, c, class_index, p, moment), units in solution.surviving_load.items()
        if (gone, class_index, moment) == (lost, k, m) and problem.candidates[c].service == service
    }
    phases = {slot: problem.candidates[slot[0]].phase for slot in own}
    whole = {slot: rate for slot, rate in own.items() if phases[slot] is Phase.AGGREGATED}
    planned_ratio = problem.services[service].planned_ratio
    aggregated = min(sum(whole.values()) / planned_ratio, wanted)
    yield from _in_proportion(whole, aggregated)
    known = surviving_pairs(problem, service, k, lost)
    units = [solution.surviving_separate.get((lost, service, k, g, m), 0) for g in range(len(known.pairs))]
    between = shared_out(wanted - aggregated, units)
    for phase in (Phase.PREFILL, Phase.DECODE):
        for index, group in enumerate(known.groups(phase)):
            through = sum(between[g] for g in known.pairs_of(phase, index))
            yield from _in_proportion({slot: own[slot] for slot in group.slots if slot in own}, through)


def _in_proportion(rates: Mapping[Slot, float], wanted: float) -> Iterator[tuple[Slot, float]]:
    total = sum(rates.values())
    if total > 0 and wanted > 0:
        yield from ((slot, rate * wanted / total) for slot, rate in rates.items())


def _row(problem: Problem, place: Place, rates: Mapping[int, float]) -> SurvivingPlacement:
    lost, m, c, p = place
    candidate = problem.candidates[c]
    service = problem.services[candidate.service]
    load = sum(rate * service.planned_ratio / candidate.requests_per_s[k] for k, rate in rates.items())
    replicas = 1
    while candidate.carried(replicas) < load - LOAD_TOLERANCE:
        replicas += 1
    return SurvivingPlacement(
        lost_region=lost,
        **row_place(problem, c, p, m),
        replicas=replicas,
        requests_per_s_by_class={service.classes[k].name: rate for k, rate in sorted(rates.items())},
    )
