"""What every use of CP-SAT shares: its settings, and how it begins with a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ortools.sat.python import cp_model

LINEARIZATION_LEVEL: Final = 2
"""Covering rows need the full linear relaxation: without it small fleets stay open for minutes."""

SYMMETRY_LEVEL: Final = 0
"""CP-SAT 9.15 calls some feasible fleets infeasible when its presolve uses symmetries (one of 1,360 random
fleets; kept as a test). Without them no solve of these fleets got slower."""


INCLUSION_WORK_LIMIT: Final = 0
"""Work for the step of presolve that fits at-most-one constraints into linear ones. In CP-SAT 9.15 it cuts
optima off: one of 1,400 random fleets and two of 600 over two quarters were proven optimal at 1.2 to 4 times
their least cost (benchmarks/ortools-presolve.md). Without the step they are right, and no slower."""

PRESOLVE_OPERATIONS_A_VARIABLE: Final = 5
"""Rules that presolve may apply to a model, for each of its variables, where work is limited.

Deterministic time leaves presolve out, and two bounds that tighten each other step by step take seconds:
50,000 of the 55,000 rules of a model of 942 variables were such steps, and 1.8 s of 2.0 (CP-SAT 9.15).
"""

LEAST_PRESOLVE_OPERATIONS: Final = 2_000
"""Such rules of small models, at least."""

LEAST_WITH_NEIGHBOURHOODS_S: Final = 1.0
"""Shorter runs do without neighbourhoods, which have no time to pay there. CP-SAT 9.15 cannot be stopped in
the presolve of one: a model of 103 variables, proven after 0.04 s, took 14 s of a limit of 0.1 s. [s]"""

LOOK: Final = 0.05
"""Work after which a solve whose work is limited is looked at. Most small models are solved by then.
[deterministic units of CP-SAT]"""

ALL_BUT: Final = 0.9
"""Share of its limit after which a solve was ended by it, and not by a callback."""

CREEPING_BRANCHES: Final = 500_000
"""Branches of one unit of work above which a search creeps: it walks along a range of millions of values, a
branch each, as a linear relaxation that leaves rows out leads it. Such a branch counts for next to nothing
and takes 15 us: 0.5 units of a model of 1,878 variables took 10 s, and found no plan. With all rows from the
start the same work took 2 s, and found one. Others make 15,000 to 200,000 branches a unit (CP-SAT 9.15)."""


def configured_solver(
    time_limit_s: float,
    seed: int,
    workers: int,
    solver: cp_model.CpSolver | None = None,
    presolve: bool = True,
) -> cp_model.CpSolver:
    """Return a solver with its limits and the shared settings.

    What it proves with presolve is a claim (search/solvers/proofs.py): it takes another proof to tell it.

    Parameters
    ----------
    time_limit_s : float
        Wall time. [s]
    seed, workers : int
        Random seed and parallel searches.
    solver : CpSolver, optional
        One to configure, where somebody holds it already to stop it; a new one otherwise.
    presolve : bool
        Whether it simplifies the model first.
    """
    solver = solver or cp_model.CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds = time_limit_s
    parameters.random_seed = seed
    parameters.num_workers = workers
    parameters.linearization_level = LINEARIZATION_LEVEL
    parameters.symmetry_level = SYMMETRY_LEVEL
    parameters.presolve_inclusion_work_limit = INCLUSION_WORK_LIMIT
    parameters.cp_model_presolve = presolve
    parameters.use_lns = time_limit_s >= LEAST_WITH_NEIGHBOURHOODS_S
    # Ctrl-C is for the caller, which decides what to keep.
    parameters.catch_sigint_signal = False
    return solver


def limit_work(solver: cp_model.CpSolver, model: cp_model.CpModel, amount: float) -> None:
    """Limit a solve by work, where the clock must not decide. [deterministic units of CP-SAT]"""
    solver.parameters.max_deterministic_time = amount
    operations = PRESOLVE_OPERATIONS_A_VARIABLE * len(model.proto.variables)
    solver.parameters.debug_max_num_presolve_operations = max(operations, LEAST_PRESOLVE_OPERATIONS)


def solve_by_work(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    amount: float,
    callback: cp_model.CpSolverSolutionCallback | None = None,
    over: Callable[[], bool] = lambda: False,
) -> tuple[cp_model.CpSolverStatus, float]:
    """Solve a model for an amount of work; a search that creeps along begins again with all rows.

    Parameters
    ----------
    solver : CpSolver
        Configured; it has the result.
    model : CpModel
        With an objective.
    amount : float
        The limit. [deterministic units of CP-SAT]
    callback : CpSolverSolutionCallback, optional
        Told of plans.
    over : callable
        Whether a stop is requested.

    Returns
    -------
    tuple[CpSolverStatus, float]
        How it ended, and the work that it took.
    """
    limit_work(solver, model, min(amount, LOOK))
    status = solver.solve(model, callback)
    spent = solver.response_proto.deterministic_time
    ended = status not in (cp_model.FEASIBLE, cp_model.UNKNOWN) or spent < ALL_BUT * LOOK
    if ended or over() or amount <= LOOK:
        return status, spent
    if solver.num_branches > CREEPING_BRANCHES * spent:
        solver.parameters.add_lp_constraints_lazily = False
        if status == cp_model.FEASIBLE:
            hint(model, solver)
    limit_work(solver, model, amount - spent)
    status = solver.solve(model, callback)
    return status, spent + solver.response_proto.deterministic_time


def hint(model: cp_model.CpModel, values: cp_model.CpSolver) -> None:
    """Start the next solve of a model from the values of the last."""
    hint_values(model, values.response_proto.solution)


def hint_values(model: cp_model.CpModel, values: Sequence[int]) -> None:
    """Start the next solve of a model from values of its first variables."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    # One at a time takes a hundred times as long.
    hinted = model.proto.solution_hint
    hinted.vars.extend(range(len(values)))
    hinted.values.extend(values)
