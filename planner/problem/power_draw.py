"""Power draw of accelerators: idle power at all times, more in proportion to load.

An installed accelerator draws its idle power, whether a replica runs on it or not; a replica at full load
draws its own power, and in between in proportion to its load::

    draw = idle * installed accelerators + (power - idle) * load

A replica without load therefore costs the same as an empty accelerator. The power is that without a cap: a
cap limits the peak of a region but does not make requests cheaper.
"""

from __future__ import annotations

from fleetplan.fleet.tco import it_power_kw
from fleetplan.fleet.units import W_PER_KW
from fleetplan.planner.problem.candidate import Candidate
from fleetplan.planner.problem.problem import Problem
from fleetplan.planner.problem.supply import SupplyPool


def load_kw(problem: Problem, candidate: Candidate) -> float:
    """Return the IT power above idle for which a replica at full load is charged; 0 if none. [kW]"""
    idle_w = problem.hardware[candidate.hardware].idle_w_per_accelerator
    return max((candidate.charged_kw or 0.0) - it_power_kw(idle_w, candidate.accelerators), 0.0)


def carried_kw(problem: Problem, candidate: Candidate) -> float:
    """Return the IT power above idle of a replica at full load, within its cap. [kW]

    A region must carry it.
    """
    idle_w = problem.hardware[candidate.hardware].idle_w_per_accelerator
    return max((candidate.power_kw or 0.0) - it_power_kw(idle_w, candidate.accelerators), 0.0)


def idle_kwh(problem: Problem, pool: SupplyPool, accelerators: float) -> float:
    """Return the energy of idle accelerators of a pool over a period, at the site's meter. [kWh]"""
    idle_w = problem.hardware[pool.hardware].idle_w_per_accelerator
    pue = problem.regions[pool.region].pue
    return idle_w * accelerators / W_PER_KW * pue * problem.fleet.calendar.hours
