"""What every use of CP-SAT shares: its settings, and how it begins with a plan."""

from __future__ import annotations

from collections.abc import Sequence
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
    # Ctrl-C is for the caller, which decides what to keep.
    parameters.catch_sigint_signal = False
    return solver


def limit_work(solver: cp_model.CpSolver, model: cp_model.CpModel, amount: float) -> None:
    """Limit a solve by work, where the clock must not decide. [deterministic units of CP-SAT]"""
    solver.parameters.max_deterministic_time = amount
    operations = PRESOLVE_OPERATIONS_A_VARIABLE * len(model.proto.variables)
    solver.parameters.debug_max_num_presolve_operations = max(operations, LEAST_PRESOLVE_OPERATIONS)


def hint(model: cp_model.CpModel, values: cp_model.CpSolver) -> None:
    """Start the next solve of a model from the values of the last."""
    hint_values(model, values.response_proto.solution)


def hint_values(model: cp_model.CpModel, values: Sequence[int]) -> None:
    """Start the next solve of a model from values of its first variables."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    for index, value in enumerate(values):
        model.add_hint(model.get_int_var_from_proto_index(index), value)
