"""Decomposition of a model into blocks, where it is large enough and has many small blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.formulation import PlanningModel
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.request import BlockOutcome, Request, WarmStart
from fleetplan.planner.search.blocks.roles import block_keys, indicator_variables, roles
from fleetplan.planner.search.blocks.search import BlockSearch
from fleetplan.planner.search.blocks.split import Split, split
from fleetplan.planner.search.solvers.best import WITHDRAWN, least_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint_values
from fleetplan.planner.search.solvers.highs_program import complete
from fleetplan.planner.search.solvers.matrix import IntArray, Program, read_program
from fleetplan.planner.search.solvers.proofs import HIGHS, VARIABLES, Proof, contradicted
from fleetplan.planner.search.solvers.race import LEAST_SEARCH_S, solve_model
from fleetplan.planner.search.solvers.reduction import reduced
from fleetplan.planner.search.solvers.reproducible import solve_reproducibly
from fleetplan.planner.search.solvers.request import (
    PATIENT,
    Enough,
    ExtraTime,
    Listener,
    ModelOutcome,
    ModelStatus,
    SolverLimits,
    Step,
)
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.work import building_s

LEAST_VARIABLES: Final = 3000
"""Models with fewer variables are solved as a whole by CP-SAT and HiGHS."""

LEAST_BLOCKS: Final = 12
"""Least number of blocks worth a decomposition."""

LARGEST_BLOCK_SHARE: Final = 0.2
"""Largest share of the variables in one block: a larger block is as hard as the whole."""

ENDING_SHARE_OF_TIME: Final = 0.03
"""Share of the time to turn the plan into a CP-SAT solution at the end."""

COMPLETION_LIMIT_S: Final = 10.0
"""Limit to complete a plan in integers if its columns are not exact together. [s, or solver units]"""

START_LIMIT_S: Final = 5.0
"""Limit to build a plan from the plan in force. [s, or solver units]"""

START_SHARE_OF_TIME: Final = 0.3
"""Share of the time for that, in short runs."""

CONFIRMATION_LIMIT_S: Final = 10.0
"""Time for CP-SAT to confirm that there is no plan if a relaxation is infeasible, past the limit too. [s]"""


def decomposed(planning: PlanningModel) -> Split | None:
    """Return the blocks of a model that is large and has many small blocks; otherwise None."""
    n_variables = len(planning.model.proto.variables)
    if n_variables < LEAST_VARIABLES:
        return None
    found = block_keys(planning.problem, planning.variables, n_variables)
    parts = split(reduced(read_program(planning.model)), found)
    sizes = [len(block.variables) for block in parts.blocks]
    worth_it = len(sizes) >= LEAST_BLOCKS and max(sizes) <= LARGEST_BLOCK_SHARE * n_variables
    return parts if worth_it else None


def solve_planning(planning: PlanningModel, limits: SolverLimits, enough: Enough) -> ModelOutcome:
    """Minimise a model, in blocks if it is large, without a watcher.

    If the deadline counts work, the solve is reproducible, and its work, with that of building the model, is
    charged.
    """
    parts, counted = decomposed(planning), limits.latest.spent is not None
    if parts is not None:
        outcome = solve_in_blocks(planning, parts, limits, enough, lambda _: None, counted)
    elif counted:
        outcome = solve_reproducibly(planning.model, planning.continuous, limits, enough)
    else:
        outcome = solve_model(planning.model, planning.continuous, limits, enough, lambda _: None)
    limits.latest.note(outcome.deterministic_time + building_s(len(planning.model.proto.variables)))
    return outcome


def solve_in_blocks(
    planning: PlanningModel,
    parts: Split,
    limits: SolverLimits,
    enough: Enough,
    on_step: Listener,
    reproducible: bool = False,
    warm_start: WarmStart | None = None,
) -> ModelOutcome:
    """Minimise a model in blocks.

    Parameters
    ----------
    planning : PlanningModel
        Model with an objective; a hint that is a plan is the first plan.
    parts : Split
        Its blocks.
    limits : SolverLimits
        Time limits, and the seats for jobs.
    enough : callable
        Returns whether a gap is small enough.
    on_step : callable
        Called after every step.
    reproducible : bool
        Whether the time limit counts work, so that every run takes the same steps.
    warm_start : WarmStart, optional
        Columns and prices of earlier solves; its memory receives new columns.

    Returns
    -------
    ModelOutcome
        INFEASIBLE only with two proofs. Bounds that a plan contradicts are dropped.
    """
    processes = min(limits.workers, usable_cores())
    # The time of the start counts too.
    clock = Clock(limits.time_limit_s * (1 - ENDING_SHARE_OF_TIME), reproducible)
    model, variables = planning.model, planning.variables
    program = parts.program
    offset = model.proto.objective.offset

    def completed(values: IntArray) -> IntArray | None:
        seconds = COMPLETION_LIMIT_S
        if not reproducible:
            seconds = min(seconds, max(limits.latest.left_s, LEAST_SEARCH_S))
        solver, _ = complete(model, planning.continuous, values.tolist(), seconds, reproducible)
        return None if solver is None else _values(solver)

    request = Request(
        parts=parts,
        roles=roles(planning.problem, variables, len(program.cost)),
        continuous=planning.continuous,
        indicators=indicator_variables(variables),
        start=_start(model, program, limits, reproducible),
        seats=limits.seats or partial(ProcessSeats, processes),
        complete=completed,
        enough=lambda objective, bound: enough(objective + offset, bound + offset),
        on_step=lambda step: on_step(_shifted(step, offset)),
        patience=limits.patience,
        extra_time=None if limits.extra_time is None else _without_offset(limits.extra_time, offset),
        warm_start=warm_start or WarmStart(),
        on_job=limits.on_job,
    )
    found = BlockSearch(request, clock, limits.seed).run(limits.stop)
    if found.values is None and limits.patience.ends:
        return ModelOutcome(ModelStatus.UNKNOWN, None, None, None, found.bound_source, found.work_s)
    if found.values is None:
        to_confirm = _to_confirm(limits, clock.left_s())
        return _without_a_plan(planning, to_confirm, enough, on_step, found, reproducible)
    return _with_plan(model, found.values, found, enough, on_step)


def _with_plan(
    model: cp_model.CpModel, values: IntArray, found: BlockOutcome, enough: Enough, on_step: Listener
) -> ModelOutcome:
    """Return the outcome of blocks, without a bound that their plan contradicts."""
    solver = _accepted(model, values)
    bound = found.bound + model.proto.objective.offset
    objective, proof = solver.objective_value, Proof(bound, found.bound_source)
    if contradicted(proof.bound, objective):
        proof = Proof(least_of(model), VARIABLES)
        on_step(Step(found.bound_source, WITHDRAWN, objective, proof.bound))
    solved = proof.bound >= objective or enough(objective, proof.bound)
    return ModelOutcome(
        status=ModelStatus.SOLVED if solved else ModelStatus.FOUND,
        values=solver,
        objective=objective,
        bound=min(proof.bound, objective),
        bound_source=proof.source,
        deterministic_time=found.work_s,
    )


def _to_confirm(limits: SolverLimits, left_s: float) -> SolverLimits:
    """Return the limits of a confirmation by both solvers: all the remaining time."""
    seconds = max(left_s, min(CONFIRMATION_LIMIT_S, limits.latest.left_s))
    return replace(limits, time_limit_s=max(seconds, LEAST_SEARCH_S), patience=PATIENT, extra_time=None)


def _without_a_plan(
    planning: PlanningModel,
    limits: SolverLimits,
    enough: Enough,
    on_step: Listener,
    found: BlockOutcome,
    reproducible: bool,
) -> ModelOutcome:
    """Solve a model as a whole for which blocks found no plan."""
    impossible_by = (HIGHS,) if found.infeasible else ()
    model, continuous = planning.model, planning.continuous
    if reproducible:
        outcome = solve_reproducibly(model, continuous, limits, enough, impossible_by)
    else:
        outcome = solve_model(model, continuous, limits, enough, on_step, impossible_by)
    known = Proof(found.bound + model.proto.objective.offset, found.bound_source)
    return with_known_bound(outcome, known, on_step)


def with_known_bound(outcome: ModelOutcome, known: Proof, on_step: Listener) -> ModelOutcome:
    """Return what was found of a model, with a bound that is known of it where that is better.

    One that the plan contradicts is withdrawn.
    """
    if outcome.objective is None or outcome.bound is None:
        return outcome
    if contradicted(known.bound, outcome.objective):
        on_step(Step(known.source, WITHDRAWN, outcome.objective, outcome.bound))
        return outcome
    if known.bound <= outcome.bound:
        return outcome
    return replace(outcome, bound=min(known.bound, outcome.objective), bound_source=known.source)


def _values(solver: cp_model.CpSolver) -> IntArray:
    return np.array(list(solver.response_proto.solution), dtype=np.int64)


def _accepted(model: cp_model.CpModel, values: IntArray) -> cp_model.CpSolver:
    """Return a plan as a CP-SAT solution; CP-SAT checks it."""
    fixed = model.clone()
    hint_values(fixed, values.tolist())
    # There is nothing to simplify, and presolve has rejected valid plans.
    solver = configured_solver(math.inf, seed=1, workers=1, presolve=False)
    solver.parameters.fix_variables_to_their_hinted_value = True
    status = solver.solve(fixed)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RuntimeError(f"CP-SAT does not accept a plan that keeps all rows: {solver.status_name(status)}")
    return solver


def _start(
    model: cp_model.CpModel, program: Program, limits: SolverLimits, reproducible: bool
) -> IntArray | None:
    """Return the hint if it is a plan; if it is partial, a plan near it that is quick to find."""
    hinted = model.proto.solution_hint
    if len(hinted.vars) == len(program.cost):
        values = np.zeros(len(program.cost), dtype=np.int64)
        values[list(hinted.vars)] = list(hinted.values)
        return values if program.holds(values) else None
    if not len(hinted.vars):
        return None
    near = _nearest_to_hint(model)
    seconds = min(START_LIMIT_S, START_SHARE_OF_TIME * limits.time_limit_s)
    solver = configured_solver(seconds, limits.seed, limits.workers)
    if reproducible:
        solver = configured_solver(math.inf, limits.seed, workers=1)
        solver.parameters.max_deterministic_time = START_LIMIT_S
    with limits.stop.reaches(solver):
        status = solver.solve(near)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return _values(solver)[: len(program.cost)] if found else None


def _nearest_to_hint(model: cp_model.CpModel) -> cp_model.CpModel:
    """Return the model with another objective: the total difference from the hint."""
    near = model.clone()
    terms: list[cp_model.IntVar] = []
    for index, value in zip(model.proto.solution_hint.vars, model.proto.solution_hint.values, strict=True):
        variable = near.get_int_var_from_proto_index(index)
        least, *_, most = variable.proto.domain
        if value == 0 == least:
            terms.append(variable)
            continue
        far = near.new_int_var(0, most - least, "")
        near.add(far >= variable - value)
        near.add(far >= value - variable)
        terms.append(far)
    near.minimize(sum(terms))
    return near


def _without_offset(extra_time: ExtraTime, offset: float) -> ExtraTime:
    """Return overtime for an objective without its constant."""
    seconds = extra_time.seconds * (1 - ENDING_SHARE_OF_TIME)
    return ExtraTime(seconds, lambda objective, bound: extra_time.good(objective + offset, bound + offset))


def _shifted(step: Step, offset: float) -> Step:
    """Return a step with the constant of the objective added."""
    objective, bound = (None if each is None else each + offset for each in (step.objective, step.bound))
    return replace(step, objective=objective, bound=bound)
