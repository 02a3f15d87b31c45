"""What accelerators draw: idle power at all times, and more of it with their load.

An accelerator that stands draws its idle power, whether a replica runs on it or not; a replica at full load
draws its own power, and in between in proportion to its load::

    draw = idle * accelerators that stand + (power - idle) * load

so that a replica without load costs no more and no less than an empty accelerator. The power is that without
a cap: a cap limits what a region must carry, and makes no request cheaper.
"""

from __future__ import annotations

from fleetplan.fleet.tco import it_power_kw
from fleetplan.fleet.units import W_PER_KW
from fleetplan.planner.problem.candidate import Candidate
from fleetplan.planner.problem.problem import Problem
from fleetplan.planner.problem.supply import SupplyPool


def load_kw(problem: Problem, candidate: Candidate) -> float:
    """IT power above idle that a replica at full load is charged for; 0 where there is none. [kW]"""
    idle_w = problem.hardware[candidate.hardware].idle_w_per_accelerator
    return max((candidate.charged_kw or 0.0) - it_power_kw(idle_w, candidate.accelerators), 0.0)


def carried_kw(problem: Problem, candidate: Candidate) -> float:
    """IT power above idle of a replica at full load that a region must carry, within its cap. [kW]"""
    idle_w = problem.hardware[candidate.hardware].idle_w_per_accelerator
    return max((candidate.power_kw or 0.0) - it_power_kw(idle_w, candidate.accelerators), 0.0)


def idle_kwh(problem: Problem, pool: SupplyPool, accelerators: float) -> float:
    """Energy of so many idle accelerators of a pool over a period, at the meter of the site. [kWh]"""
    idle_w = problem.hardware[pool.hardware].idle_w_per_accelerator
    pue = problem.regions[pool.region].pue
    return idle_w * accelerators / W_PER_KW * pue * problem.fleet.calendar.hours
