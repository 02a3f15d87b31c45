"""Fleets of a few blocks, whose searches take tenths of a second."""

from __future__ import annotations

from ortools.sat.python import cp_model
from tests.planner.random_fleets import large_case

from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.cpsat import hint
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import (
    ExtraTime,
    Listener,
    ModelOutcome,
    SolverLimits,
)


def in_parts(large: bool) -> tuple[PlanningModel, Split]:
    """A fleet that is to be served at least cost, and its blocks.

    There are six of two kinds of hardware, whose rounds take a third of a second, or four of one kind, whose
    rounds take a quarter of that.
    """
    case = large_case(1, 3, 2, 2) if large else large_case(1, 2, 2, 1)
    planning = build_model(build_problem(case.fleet, case.candidates), allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    parts = block_solve.decomposed(planning)
    assert parts is not None
    return planning, parts


def solve_in_overtime(
    large: bool,
    good: bool = False,
    stop: Stop | None = None,
    on_step: Listener = lambda _: None,
    overtime_s: float = 3.0,
    counted: bool = False,
    limit_s: float = 1.0,
) -> ModelOutcome:
    """A fleet in blocks that begins with a plan, good or never: 1 s, and some more if it is not."""
    planning, parts = in_parts(large)
    first = cp_model.CpSolver()
    first.parameters.stop_after_first_solution = True
    assert first.solve(planning.model) == cp_model.FEASIBLE
    hint(planning.model, first)
    limits = SolverLimits(limit_s, 1, 1, stop or Stop(), extra_time=ExtraTime(overtime_s, lambda *_: good))
    return block_solve.solve_in_blocks(planning, parts, limits, lambda *_: False, on_step, counted)
