"""Shared settings of CP-SAT, hints, and solves limited by work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ortools.sat.python import cp_model

LINEARIZATION_LEVEL: Final = 2
"""Covering rows need the full linear relaxation: without it, small fleets stay open for minutes."""

SYMMETRY_LEVEL: Final = 0
"""CP-SAT 9.15 calls some feasible fleets infeasible if presolve uses symmetries (one of 1,360 random fleets;
kept as a test). No solve of these fleets is slower without them."""


INCLUSION_WORK_LIMIT: Final = 0
"""Work limit of the presolve step that fits at-most-one constraints into linear ones. In CP-SAT 9.15 it cuts
off optima: one of 1,400 random fleets, and two of 600 over two quarters, were proven optimal at 1.2 to 4
times their least cost (benchmarks/ortools-presolve.md). Without it results are right, and no slower."""

PRESOLVE_OPERATIONS_A_VARIABLE: Final = 5
"""Presolve rules per variable where work is limited. Deterministic time ignores presolve, and two bounds that
tighten each other step by step take seconds: 50,000 of 55,000 rules in a model of 942 variables, and 1.8 of
2.0 s (CP-SAT 9.15)."""

LEAST_PRESOLVE_OPERATIONS: Final = 2_000
"""Least number of presolve rules, for small models."""

LEAST_WITH_NEIGHBOURHOODS_S: Final = 1.0
"""Shorter runs disable neighbourhoods, which do not pay off. CP-SAT 9.15 cannot be stopped in the presolve of
a neighbourhood: a model of 103 variables, proven after 0.04 s, took 14 s at a limit of 0.1 s. [s]"""

LOOK: Final = 0.05
"""Work after which a work-limited solve is inspected. Most small models are solved by then. [deterministic
units of CP-SAT]"""

ALL_BUT: Final = 0.9
"""Share of its limit above which a solve was ended by the limit, not by a callback."""

CREEPING_BRANCHES: Final = 500_000
"""Branches per unit of work above which a search creeps: it walks along a range of millions of values, one
branch each, misled by a linear relaxation with lazy rows. Such branches count as little work but take 15 us
each: in a model of 1,878 variables, 0.5 units took 10 s without a plan, and 2 s with a plan when all rows
were added at once. Other searches make 15,000 to 200,000 branches per unit (CP-SAT 9.15)."""


def configured_solver(
    time_limit_s: float,
    seed: int,
    workers: int,
    solver: cp_model.CpSolver | None = None,
    presolve: bool = True,
) -> cp_model.CpSolver:
    """Return a solver with its limits and the shared settings.

    A proof with presolve is only a claim (search/solvers/proofs.py): reporting it needs a second proof.

    Parameters
    ----------
    time_limit_s : float
        Wall time limit. [s]
    seed, workers : int
        Random seed, and number of parallel searches.
    solver : CpSolver, optional
        Solver to configure, if the caller needs to stop it; a new one if missing.
    presolve : bool
        Whether to simplify the model first.
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
    # Ctrl-C belongs to the caller, which decides what to keep.
    parameters.catch_sigint_signal = False
    return solver


def limit_work(solver: cp_model.CpSolver, model: cp_model.CpModel, amount: float) -> None:
    """Limit a solve by work instead of time. [deterministic units of CP-SAT]"""
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
    """Solve a model with a limit on work; restart a creeping search with all rows.

    Parameters
    ----------
    solver : CpSolver
        Configured solver; holds the result.
    model : CpModel
        Model with an objective.
    amount : float
        Work limit. [deterministic units of CP-SAT]
    callback : CpSolverSolutionCallback, optional
        Called with plans.
    over : callable
        Returns whether a stop is requested.

    Returns
    -------
    tuple[CpSolverStatus, float]
        Status, and the work done.
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
    # Setting hints one by one takes a hundred times as long.
    hinted = model.proto.solution_hint
    hinted.vars.extend(range(len(values)))
    hinted.values.extend(values)
