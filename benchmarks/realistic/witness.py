"""Show that a fleet has a plan, without the search that is measured.

HiGHS looks for any plan of the whole model: first with one configuration for each service, phase and
hardware, then with all of them. CP-SAT makes its loads exact, and the plan is verified without the solver. A
fleet in which neither finds a plan in its time may still have one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.assemble import build_plan, provenance, solve_record
from fleetplan.planner.assemble.model_figures import model_usd
from fleetplan.planner.assemble.traffic import spread_traffic
from fleetplan.planner.candidates import CandidateSet, prepare
from fleetplan.planner.formulation import Solution, build_model, values_of
from fleetplan.planner.problem import Candidate, Phase, Problem, build_problem
from fleetplan.planner.search import SearchLimits, SearchResult, SolveStatus
from fleetplan.planner.search.solvers.highs_program import HighsAnswer, complete
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.verify import verify

ANY_PLAN_GAP: Final = 0.99
"""Gap at which HiGHS is content: its first plan will do."""

COMPLETION_S: Final = 60.0
"""Time to make the loads exact. [s]"""

HOST: Final = 8
"""Replicas that divide a host of so many accelerators, or fill several, leave nothing over. [accelerators]"""


@dataclass(frozen=True, slots=True)
class Witness:
    """A verified plan of a fleet.

    Attributes
    ----------
    seconds : float
        What it took, evaluation of candidates not included. [s]
    usd : float
        What the plan costs; nobody looked for a cheap one. [USD]
    candidates, of : int
        Configurations that it was chosen among, and those that the fleet has.
    """

    seconds: float
    usd: float
    candidates: int
    of: int


def find_witness(fleet: Fleet, limit_s: float) -> Witness | None:
    """Find a plan of a fleet, whatever it costs.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    limit_s : float
        Time of HiGHS for each of the two models. [s]

    Raises
    ------
    RuntimeError
        If the plan breaks a rule: a bug.
    """
    candidates, _ = prepare(fleet, lambda _: None)
    started = time.monotonic()
    for chosen in (one_of_each(candidates.candidates), candidates.candidates):
        problem = build_problem(fleet, chosen)
        solution = _any_solution(problem, limit_s)
        if solution is not None:
            usd = _verified_usd(problem, replace(candidates, candidates=tuple(chosen)), solution)
            return Witness(time.monotonic() - started, usd, len(chosen), len(candidates.candidates))
    return None


def one_of_each(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best configuration by accelerator for each service, phase and hardware.

    Separate phases are left out where an aggregated configuration serves both.
    """
    best: dict[tuple[str, str, Phase], Candidate] = {}
    for each in candidates:
        key = (each.service, each.hardware, each.phase)
        if HOST % each.accelerators and each.accelerators % HOST:
            continue
        if key not in best or _rate(each) > _rate(best[key]):
            best[key] = each
    return [
        each
        for (service, hardware, phase), each in best.items()
        if phase is Phase.AGGREGATED or (service, hardware, Phase.AGGREGATED) not in best
    ]


def _rate(candidate: Candidate) -> float:
    return min(candidate.requests_per_s) / candidate.accelerators


def _any_solution(problem: Problem, limit_s: float) -> Solution | None:
    """Values of a model that keep every row in exact integers."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(cp_model.LinearExpr.sum(list(planning.variables.replicas.values())))
    found: list[list[float]] = []
    heard = threading.Event()

    def hear(answer: HighsAnswer) -> None:
        if answer.values is not None:
            found.append(answer.values)
            heard.set()

    with HighsRace(planning.model, planning.continuous, limit_s, ANY_PLAN_GAP, hear) as race:
        deadline = time.monotonic() + limit_s
        while not heard.wait(0.1) and not race.ended.is_set() and time.monotonic() < deadline:
            pass
    if not found:
        return None
    exact, _ = complete(planning.model, planning.continuous, found[-1], COMPLETION_S)
    return None if exact is None else values_of(planning.variables, exact)


def _verified_usd(problem: Problem, candidates: CandidateSet, solution: Solution) -> float:
    charged_usd = model_usd(problem, solution, spread_traffic(problem, solution))
    result = SearchResult(SolveStatus.LIMIT, solution, charged_usd, 0.0, "none", 0.0, 0.0)
    made_from = provenance(problem.fleet, candidates, SearchLimits(0.0, 1.0))
    plan = build_plan(problem, candidates, result, made_from, solve_record(result))
    broken = verify(problem, plan)
    if broken:
        raise RuntimeError(f"{problem.fleet.name}: {broken[0].family}: {broken[0].message}")
    return plan.objective_usd
