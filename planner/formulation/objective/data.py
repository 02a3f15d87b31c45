"""Network cost of requests served outside the region they arrive in."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.tco import present_value_ratio
from fleetplan.planner.formulation.variables import LoadKey
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.problem.load_units import load_units

MB_PER_GB: Final = 1000.0


def data_usd_per_request_per_s(problem: Problem, service: str, way: tuple[str, str], m: int) -> float:
    """Return the expected present cost of a steady request/s over a moment. [USD]

    Parameters
    ----------
    problem : Problem
        Sets and data.
    service : str
        Service of the requests.
    way : tuple[str, str]
        Region of origin, and serving region.
    m : int
        Moment index.
    """
    origin, region = way
    price = problem.regions[origin].network_usd_per_gb.get(region, 0.0) if origin != region else 0.0
    gb = problem.services[service].mb_per_request / MB_PER_GB
    moment = problem.moments[m]
    finance = problem.fleet.finance
    worth = present_value_ratio(finance.discount_rate_per_year, moment.period + 1, finance.calendar)
    return price * gb * finance.calendar.seconds * moment.weight * worth


def data_usd_per_load_unit(problem: Problem, key: LoadKey) -> float:
    """Return the network cost of one load unit; of separate phases, prefill pays for the request. [USD]"""
    c, k, p, index = key
    candidate, cell = problem.candidates[c], problem.cells[index]
    if candidate.phase is Phase.DECODE:
        return 0.0
    way = (cell.region, problem.pools[p].region)
    rate = candidate.requests_per_s[k] / load_units(problem, c, k)
    planned_ratio = problem.services[cell.service].planned_ratio
    return data_usd_per_request_per_s(problem, cell.service, way, cell.moment) * rate / planned_ratio
