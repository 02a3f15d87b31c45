"""A model solved block by block, where it is large enough and falls apart well enough."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.planner.decomposition.blocks import Split, split
from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.matrix import IntArray, Program, read_program
from fleetplan.planner.decomposition.search import BlockOutcome, BlockSearch, Report, Request
from fleetplan.planner.decomposition.themes import themes
from fleetplan.planner.highs_race import complete, continuous_indices
from fleetplan.planner.model import PlanningModel
from fleetplan.planner.solving import (
    Enough,
    Listener,
    ModelOutcome,
    ModelStatus,
    SolverLimits,
    solve_model,
)

LEAST_VARIABLES: Final = 3000
"""Models with fewer variables go to one CP-SAT model, which proves most of them optimal."""

LEAST_BLOCKS: Final = 12
"""Fewer blocks than this leave nothing to decompose."""

LARGEST_BLOCK_SHARE: Final = 0.2
"""A block with a larger share of the variables is as hard as the whole."""

COMPLETION_LIMIT_S: Final = 30.0
"""Time to complete a plan in integers where its patterns are not exact together. [s]"""

CONFIRMATION_LIMIT_S: Final = 10.0
"""Time for CP-SAT to prove that there is no plan where a relaxation has none. [s]"""


def decomposed(planning: PlanningModel) -> Split | None:
    """The blocks of a model that is worth solving block by block: large, and of many small blocks."""
    n_variables = len(planning.model.proto.variables)
    if n_variables < LEAST_VARIABLES:
        return None
    found = themes(planning.problem, planning.variables, n_variables)
    parts = split(read_program(planning.model), found)
    sizes = [len(block.columns) for block in parts.blocks]
    worth_it = len(sizes) >= LEAST_BLOCKS and max(sizes) <= LARGEST_BLOCK_SHARE * n_variables
    return parts if worth_it else None


def solve_in_blocks(
    planning: PlanningModel, parts: Split, limits: SolverLimits, enough: Enough, listen: Listener
) -> ModelOutcome:
    """Minimise a model over its blocks.

    Parameters
    ----------
    planning : PlanningModel
        With an objective; its hint, where it is a plan, is the first one.
    parts : Split
        Its blocks.
    limits : SolverLimits
        When to stop. There is one process a core, whatever the workers of CP-SAT.
    enough : callable
        Whether a gap is small enough.
    listen : callable
        Told after every step.

    Returns
    -------
    ModelOutcome
        INFEASIBLE only by CP-SAT's proof.
    """
    model, variables = planning.model, planning.variables
    program = parts.program
    offset = model.proto.objective.offset

    def completed(values: IntArray) -> IntArray | None:
        solver = complete(model, variables, values.tolist(), COMPLETION_LIMIT_S)
        return None if solver is None else _values(solver)

    request = Request(
        parts=parts,
        continuous=continuous_indices(variables),
        start=_hint(model, program),
        complete=completed,
        enough=lambda objective, bound: enough(objective + offset, bound + offset),
        listen=lambda report: listen(*_shifted(report, offset)),
    )
    clock = Clock(limits.time_limit_s, deterministic=False, workers=len(os.sched_getaffinity(0)))
    found = BlockSearch(request, clock, limits.seed).run(limits.stop)
    if found.values is None:
        return _without_a_plan(planning, limits, enough, found)
    solver = complete(model, variables, found.values.tolist(), COMPLETION_LIMIT_S)
    if solver is None or found.bound is None:
        raise RuntimeError("a plan that keeps all rows was not accepted by CP-SAT")
    objective, bound = solver.objective_value, found.bound + offset
    solved = bound >= objective or enough(objective, bound)
    return ModelOutcome(
        status=ModelStatus.SOLVED if solved else ModelStatus.FOUND,
        values=solver,
        objective=objective,
        bound=min(bound, objective),
        bound_source=found.bound_source,
        deterministic_time=found.work_s,
    )


def _without_a_plan(
    planning: PlanningModel, limits: SolverLimits, enough: Enough, found: BlockOutcome
) -> ModelOutcome:
    """What CP-SAT says of a model for which blocks gave no plan."""
    short = SolverLimits(CONFIRMATION_LIMIT_S, limits.seed, limits.workers, limits.stop)
    outcome = solve_model(planning.model, planning.variables, short, enough, lambda _, __: None)
    if outcome.objective is None or outcome.bound is None or found.bound is None:
        return outcome
    if found.bound + planning.model.proto.objective.offset <= outcome.bound:
        return outcome
    bound = min(found.bound + planning.model.proto.objective.offset, outcome.objective)
    return replace(outcome, bound=bound, bound_source=found.bound_source)


def _values(solver: cp_model.CpSolver) -> IntArray:
    return np.array(list(solver.response_proto.solution), dtype=np.int64)


def _hint(model: cp_model.CpModel, program: Program) -> IntArray | None:
    """The model's hint where it is a plan."""
    hinted = model.proto.solution_hint
    if len(hinted.vars) < len(program.cost):
        return None
    values = np.zeros(len(program.cost), dtype=np.int64)
    values[list(hinted.vars)] = list(hinted.values)
    return values if program.holds(values) else None


def _shifted(report: Report, offset: float) -> tuple[float | None, float | None]:
    """Objective and bound of a report with the constant part of the objective."""
    return (
        None if report.objective is None else report.objective + offset,
        None if report.bound is None else report.bound + offset,
    )
