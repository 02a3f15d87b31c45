"""Independent parts of a problem, solved one by one: their optima add up to the optimum of the whole."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetplan.planner.problem.load_units import part_of
from fleetplan.planner.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Component:
    """Regions that are coupled with each other and with no others.

    Attributes
    ----------
    problem : Problem
        The problem restricted to these regions and their cells; candidates and pools keep their indices.
    cell_indices : tuple[int, ...]
        Index of each cell in the whole problem.
    fixed_usd : float
        Cost of existing hosts in these regions. [USD]
    """

    problem: Problem
    cell_indices: tuple[int, ...]
    fixed_usd: float


def components(problem: Problem, maxima: bool = True) -> list[Component]:
    """Split a problem into independent groups of regions.

    Regions are coupled by offers with a maximum that serve several, and by services that one region serves
    for another; all are coupled by a budget, and by services that survive the loss of a region. Power and
    packing are limits of single regions.

    Parameters
    ----------
    problem : Problem
        The whole problem.
    maxima : bool
        Whether maxima of offers couple regions. Without them, the parts are a relaxation: each has every
        offer for itself.

    Returns
    -------
    list[Component]
        Parts in the order of the regions. Regions without demand are left out, and their fixed cost belongs
        to no part. Without any demand, one part of everything.
    """
    if not problem.cells:
        # Without demand, existing hosts may still be sold.
        return [Component(problem, (), sum(sum(pool.fixed_usd) for pool in problem.pools))]
    parent = {name: name for name in problem.regions}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    shared = _sharing_an_offer(problem) if maxima else []
    for coupled in [*_coupled_regions(problem), *shared, *_regions_without_demand(problem)]:
        for name in coupled[1:]:
            parent[root(name)] = root(coupled[0])
    cells: dict[str, list[int]] = defaultdict(list)
    for index, cell in enumerate(problem.cells):
        cells[root(cell.region)].append(index)
    found = []
    for name in problem.regions:
        if name in cells:
            fixed = sum(
                sum(pool.fixed_usd)
                for pool in problem.pools
                if pool.region in problem.regions and root(pool.region) == name
            )
            own = part_of(
                problem,
                cells=tuple(problem.cells[index] for index in cells[name]),
                regions={key: region for key, region in problem.regions.items() if root(key) == name},
            )
            found.append(Component(own, tuple(cells[name]), fixed))
    return found


def _regions_without_demand(problem: Problem) -> list[list[str]]:
    """Return regions without demand that affect the plan, each paired with one that has demand.

    Their hosts may leave, or draw idle power that a limit or an objective counts.
    """
    asked = {cell.region for cell in problem.cells}
    host = next((name for name in problem.regions if name in asked), None)
    counted = problem.fleet.objective in ("energy", "carbon")
    having_a_say = dict.fromkeys(
        pool.region
        for pool in problem.pools
        if pool.region in problem.regions
        and (
            pool.retirement is not None
            or (
                problem.hardware[pool.hardware].idle_w_per_accelerator
                and (counted or problem.regions[pool.region].power_kw is not None)
            )
        )
    )
    return [[host, name] for name in having_a_say if host is not None and name not in asked]


def _coupled_regions(problem: Problem) -> list[list[str]]:
    """Return groups of regions coupled by anything but the maximum of an offer."""
    budget = problem.fleet.budget
    limits = (budget.capex_usd, budget.opex_usd, budget.tco_usd, *budget.capex_usd_by_period)
    if any(limit is not None for limit in limits):
        return [list(problem.regions)]
    if problem.fleet.policy.survive_region_loss or problem.fleet.policy.must_use:
        # Each region serves for a lost one, and a requirement may be met in any region.
        return [list(problem.regions)]
    if problem.minimises_regret or problem.fixed_supply is not None:
        # Regret concerns the whole fleet, and fixed purchases cost money in regions without demand too.
        return [list(problem.regions)]
    served_elsewhere = dict.fromkeys(
        tuple(regions) for cell in problem.cells if len(regions := problem.serving_regions(cell)) > 1
    )
    return [list(regions) for regions in served_elsewhere]


def _sharing_an_offer(problem: Problem) -> list[list[str]]:
    """Return the regions of each offer with a maximum that feeds several of them."""
    return [
        own
        for offer in problem.fleet.offers
        if any(limit is not None for limit in offer.max_units)
        and len(own := [region for region in offer.regions if region in problem.regions]) > 1
    ]
