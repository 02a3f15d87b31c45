"""Neighbourhoods on the program's own variables: reoptimise a moment, some services, or both.

An integer program decides them together with supply, among the slots of the linear relaxation, those of the
plan and a few more; it needs no columns. These neighbourhoods are strong where the relaxation is near the
optimum: few large services, many moments, regions that can replace each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.construction import RootRelaxation, Structure, penalty_of
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.subprograms import FEW_STAGES, USED, Parts, slack_of, with_slack
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import Workers

AT_A_TIME: Final = 2
"""Neighbourhoods solved in parallel, the same on every machine so that all take the same steps."""

NEIGHBOURHOOD_S: Final = 3.0
"""Time limit of a neighbourhood; most take less. [s]"""

GAP: Final = 2e-5
"""Target gap of a neighbourhood, as a share of the plan's cost."""

OPEN_SHARE: Final = 0.01
"""Target gap as a share of the open cost: the last part of a gain is not worth its time."""

FIRST_SHARE: Final = 0.25
"""Share of the services that a neighbourhood of services frees at first."""

LEAST_SHARE: Final = 0.02
"""Smallest share."""

SHARE_GROWTH, SHARE_DECLINE = 1.3, 0.7
"""Factors on the share after a neighbourhood solved to its gap, and after one that ran out of time."""

MOMENTS_SHARE: Final = 0.3
"""Share of the moments that a neighbourhood of moments and services frees."""

VIOLATION_TOLERANCE: Final = 1e-6
"""Scaled violations below this are rounding. [largest coefficients of the row]"""

VIOLATION_CHANCE: Final = 0.7
"""Probability that a neighbourhood targets a violated limit, while there are any."""

PERIOD_SHARE, ALL_REGIONS_SHARE = 0.4, 0.7
"""Shares of the services from which such a neighbourhood frees the whole period, and all regions."""

WIDER_CHANCE: Final = 0.5
"""Probability that a neighbourhood opens slots that neither the relaxation nor the plan uses."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Improvement of a plan: new values of some variables.

    Attributes
    ----------
    variables : IntArray
        Changed variables.
    values : FloatArray
        Their scaled values.
    gain : float
        Saving. [objective units]
    detail : str
        Part of the plan that was reoptimised.
    """

    variables: IntArray
    values: FloatArray
    gain: float
    detail: str


class DirectNeighbourhoods:
    """Improvement of a plan, neighbourhood by neighbourhood.

    Parameters
    ----------
    structure : Structure
        The program. An unfinished plan may violate the limits of its linking rows.
    root : RootRelaxation
        Optimum of its linear relaxation.
    seed : int
        Random seed.
    earlier : DirectNeighbourhoods, optional
        Neighbourhoods of an earlier relaxation, from which the learned shares are taken.
    """

    def __init__(
        self,
        structure: Structure,
        root: RootRelaxation,
        seed: int,
        earlier: DirectNeighbourhoods | None = None,
    ) -> None:
        roles = structure.roles
        self._roles = roles
        self._cost = structure.cost
        self._rank = root.rank
        self._used = int((root.rank == 0).sum())
        self._parts = Parts(structure.program)
        self._linking = structure.linking_mask
        self._penalty = penalty_of(structure, root)
        self._random = random.Random(seed)
        self._supply: BoolArray = roles.growth != 0
        # Reserves, packing and links between moments belong to no service.
        self._shared: BoolArray = (roles.service == NONE) & ~self._supply
        self._services: list[int] = np.unique(roles.service[roles.service != NONE]).tolist()
        self._moments: list[int] = np.unique(roles.moment[roles.moment != NONE]).tolist()
        self._regions: list[int] = np.unique(roles.region[roles.region != NONE]).tolist()
        self._share = dict.fromkeys(self._kinds, FIRST_SHARE)
        # One region in one moment is solved to optimality within 1 s, more rarely so.
        self._share["region"] = LEAST_SHARE
        if earlier is not None:
            self._share = earlier._share
        # Moments, services and rows of violated limits, while there are any.
        self._hot_moments: list[int] = []
        self._hot_services: list[int] = []
        self._violated_rows: list[int] = []
        self._violated_by: list[float] = []

    @property
    def _kinds(self) -> dict[str, Callable[[int], tuple[BoolArray, str]]]:
        """Return, by kind, the function that frees a number of services."""
        return {
            "moment": self._of_moment,
            "services": self._of_services,
            "moments and services": self._of_both,
            "region": self._of_region,
            "violated limit": self._of_violated,
        }

    def _of_moment(self, count: int) -> tuple[BoolArray, str]:
        """Free many services in one moment: four times the number of other kinds."""
        moment = self._random.choice(self._hot_moments or self._moments)
        services = self._some_services(4 * count)
        of_them = np.isin(self._roles.service, services) | self._shared
        return of_them & (self._roles.moment == moment), f"{counted(len(services), 'service')} in one moment"

    def _of_services(self, count: int) -> tuple[BoolArray, str]:
        """Free some services in all moments."""
        services = self._some_services(count)
        return np.isin(self._roles.service, services) | self._shared, f"{counted(count, 'service')}"

    def _of_both(self, count: int) -> tuple[BoolArray, str]:
        """Free some services in some moments: twice the number of services in all moments."""
        services = self._some_services(2 * count)
        n_moments = min(len(self._moments), max(2, round(MOMENTS_SHARE * len(self._moments))))
        moments = self._random.sample(self._moments, n_moments)
        if self._hot_moments:
            moments[0] = self._random.choice(self._hot_moments)
        of_them = np.isin(self._roles.service, services) | self._shared
        free = of_them & np.isin(self._roles.moment, moments)
        return free, f"{counted(len(services), 'service')} in {counted(len(moments), 'moment')}"

    def _of_region(self, count: int) -> tuple[BoolArray, str]:
        """Free all services of one region in consecutive moments, as many as the share of services."""
        region = self._random.choice(self._regions)
        n_moments = max(1, round(count / len(self._services) * len(self._moments)))
        first = self._random.randrange(len(self._moments) - n_moments + 1)
        moments = self._moments[first : first + n_moments]
        return self._all_in([region], moments), f"one region in {counted(len(moments), 'moment')}"

    def _of_violated(self, count: int) -> tuple[BoolArray, str]:
        """Free the regions and moments around one violated limit.

        As the share of services grows, also the rest of the period, then the other regions.
        """
        row = self._random.choices(self._violated_rows, self._violated_by)[0]
        variables, roles = self._parts.program.rows[[row]].indices, self._roles
        # Budgets concern all moments and regions; supply limits concern none.
        moments = _numbers(roles.moment[variables]) or self._moments
        moments = self._random.sample(moments, min(len(moments), FEW_STAGES))
        regions = [self._random.choice(_numbers(roles.region[variables]) or self._regions)]
        share = count / len(self._services)
        if share > PERIOD_SHARE:
            periods = roles.period_of[moments]
            moments = [each for each in self._moments if roles.period_of[each] in periods]
        if share > ALL_REGIONS_SHARE:
            regions = self._regions
        free = self._all_in(regions, moments)
        return (
            free,
            f"{counted(len(regions), 'region')} in {counted(len(moments), 'moment')} around a violated limit",
        )

    def _all_in(self, regions: list[int], moments: list[int]) -> BoolArray:
        """Return a mask of these regions' variables in these moments, with work deferred between moments."""
        roles = self._roles
        here = np.isin(roles.region, [*regions, NONE])
        free: BoolArray = here & np.isin(roles.moment, [*moments, NONE]) & ~self._supply
        return free

    def _some_services(self, count: int) -> list[int]:
        """Return random services, with one of those with violated limits."""
        services = self._random.sample(self._services, min(count, len(self._services)))
        if self._hot_services and not set(services) & set(self._hot_services):
            services[0] = self._random.choice(self._hot_services)
        return services

    def _look_where_violated(self, values: FloatArray) -> bool:
        """Note moments and services of the limits that these values violate; return whether there are any."""
        program = self._parts.program
        beyond = self._beyond(values)
        rows = np.flatnonzero(beyond)
        variables = np.unique(program.rows[rows].indices)
        variables = variables[values[variables] > USED]
        self._hot_moments = _numbers(self._roles.moment[variables])
        self._hot_services = _numbers(self._roles.service[variables])
        self._violated_rows, self._violated_by = rows.tolist(), beyond[rows].tolist()
        return bool(self._violated_rows)

    def objective(self, values: FloatArray) -> float:
        """Return the cost of these values with the penalties of violated limits. [objective units]"""
        return float(self._cost @ values) + float(self._penalty @ self._beyond(values))

    def holds(self, values: FloatArray) -> bool:
        """Return whether these values violate no limit."""
        return not self._beyond(values).any()

    def _beyond(self, values: FloatArray) -> FloatArray:
        """Return the violation of each limit. [scaled units]"""
        program = self._parts.program
        used = program.rows @ values
        beyond = np.maximum(used - program.row_upper, program.row_lower - used)
        return np.where(beyond > VIOLATION_TOLERANCE, beyond, 0.0)

    def improve(
        self, workers: Workers, clock: Clock, values: FloatArray, open_cost: float = 0.0
    ) -> list[Change]:
        """Solve several neighbourhoods in parallel, each as if the rest of the plan stayed.

        Parameters
        ----------
        workers, clock
            Processes, and time limits.
        values : FloatArray
            Scaled values of the plan. Where they violate limits, the neighbourhoods may too, at a penalty.
        open_cost : float
            Difference of plan and bound. [objective units]

        Returns
        -------
        list[Change]
            Improvements, each valid on its own.
        """
        elastic = self._look_where_violated(values)
        picked = [self._pick(values) for _ in range(AT_A_TIME)]
        effort = clock.master(NEIGHBOURHOOD_S)
        gap = max(GAP * abs(float(self._cost @ values)), OPEN_SHARE * open_cost)
        effort = Effort(effort.time_limit_s, effort.node_limit, 0.0, gap=gap, rounds=True, firm=True)
        jobs = [self._job(variables, closed, values, effort, elastic) for _, variables, closed, _ in picked]
        answers = workers.solve(jobs)
        changes = []
        for (kind, variables, _, detail), answer, job in zip(picked, answers, jobs, strict=True):
            gain = 0.0
            if answer.values is not None and job.start is not None:
                gain = float(job.cost @ job.start) - answer.objective
            if answer.values is not None and gain > 0:
                changes.append(Change(variables, answer.values[: len(variables)], gain, detail))
            self._learn(kind, answer, gap, gain)
        return changes

    def _pick(self, values: FloatArray) -> tuple[str, IntArray, BoolArray, str]:
        """Choose a kind; return it with the free variables, the mask of closed slots, and a description."""
        kind = self._random.choice(list(self._kinds)[:-1])
        if self._violated_rows and self._random.random() < VIOLATION_CHANCE:
            kind = "violated limit"
        count = min(len(self._services), max(1, round(self._share[kind] * len(self._services))))
        free, detail = self._kinds[kind](count)
        variables = np.flatnonzero(free | self._supply)
        slot = self._roles.slot[variables]
        wider = self._random.random() < WIDER_CHANCE
        width = self._random.expovariate(1 / max(1, self._used)) if wider else 0.0
        open_slots = self._rank <= width
        open_slots[np.unique(self._roles.slot[(values > USED) & (self._roles.slot != NONE)])] = True
        return kind, variables, (slot != NONE) & ~open_slots[slot], detail

    def _job(
        self, variables: IntArray, closed: BoolArray, values: FloatArray, effort: Effort, elastic: bool
    ) -> Job:
        part = self._parts.part(variables, values)
        upper = part.program.upper.copy()
        upper[closed] = np.maximum(part.program.lower[closed], 0.0)
        program, cost = part.program.within(part.program.lower, upper), self._cost[variables]
        if not elastic:
            return Job(program, cost, effort, values[variables])
        soft = self._linking[part.rows]
        start = np.concatenate([values[variables], slack_of(program, soft, values[variables])])
        program, cost = with_slack(program, cost, soft, self._penalty[part.rows])
        return Job(program, cost, effort, start)

    def _learn(self, kind: str, answer: Answer, gap: float, gain: float) -> None:
        """Free more services after a neighbourhood solved to its gap, fewer after one without gain."""
        solved = answer.values is not None and answer.objective - answer.bound <= 2 * gap
        if solved:
            self._share[kind] = min(self._share[kind] * SHARE_GROWTH, 1.0)
        elif gain <= gap:
            self._share[kind] = max(self._share[kind] * SHARE_DECLINE, LEAST_SHARE)


def _numbers(found: IntArray) -> list[int]:
    """Return the distinct numbers, without -1."""
    numbers: list[int] = np.unique(found[found != NONE]).tolist()
    return numbers
