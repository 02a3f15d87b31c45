# NOTE from the lead (06:25) to whoever edits planner/highs.py: I have just put HiGHS beside CP-SAT already: planner/solving.py, planner/highs_race.py, planner/highs_child.py, planner/components.py, used by planner/search.py. Please do not integrate planner/highs.py; delete it and test / tune those instead.
"""The CP-SAT model as a mixed-integer program, and HiGHS racing on it beside CP-SAT.

CP-SAT is quick to find plans and weak at bounds on covering problems; HiGHS is the other way round. Loads
and rates are continuous for HiGHS: its bound holds for the integer model, which is a restriction, and its
plans are completed by CP-SAT before they count.
"""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from fleetplan.planner.scaling import DEMAND_RESOLUTION, LOAD_UNITS_PER_REPLICA
from fleetplan.planner.variables import Variables

BOUND_TOLERANCE = 1e-6
"""HiGHS keeps rows to 1e-7 of their scale; its bound is lowered by this share before it counts."""

INFINITE_ROW = 2**62


@dataclass(frozen=True, slots=True)
class HighsAnswer:
    """What HiGHS knows after a round, in units of the CP-SAT objective.

    Attributes
    ----------
    objective, bound : float or None
        Of the program with continuous loads.
    values : list[float] or None
        By variable, in units of the CP-SAT variables.
    """

    objective: float | None
    bound: float | None
    values: list[float] | None


class HighsRace:
    """HiGHS on one model in a child process, for as long as the context lasts.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    variables : Variables
        Says which variables are continuous for HiGHS.
    time_limit_s : float
        When the child gives up. [s]
    gap_ratio : float
        When it is content.
    on_answer : callable
        Called from another thread after every round.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        variables: Variables,
        time_limit_s: float,
        gap_ratio: float,
        on_answer: Callable[[HighsAnswer], None],
    ) -> None:
        self._scales = _scales(model, variables)
        self._payload = _npz(model, self._scales, time_limit_s, gap_ratio)
        self._cost_scale = 1.0
        self._on_answer = on_answer

    def __enter__(self) -> HighsRace:
        # A session of its own: Ctrl-C in the terminal is for the parent, which decides what to keep.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner.highs_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._thread.join()
        self._child.wait()

    def _talk(self) -> None:
        if self._child.stdin is None or self._child.stdout is None:
            raise RuntimeError("the HiGHS process has no pipes")
        try:
            with self._child.stdin as pipe:
                pipe.write(self._payload)
        except BrokenPipeError:
            # The race was called off before the child had read the program.
            return
        with self._child.stdout as answers:
            for line in answers:
                answer = json.loads(line)
                values = answer["values"]
                self._on_answer(
                    HighsAnswer(
                        answer["objective"],
                        None if answer["bound"] is None else _safe_bound(answer["bound"]),
                        None if values is None else [float(v) for v in np.array(values) * self._scales],
                    )
                )


def _safe_bound(bound: float) -> float:
    return bound - BOUND_TOLERANCE * abs(bound)


def _scales(model: cp_model.CpModel, variables: Variables) -> NDArray[np.float64]:
    """Units of the continuous variables, so that all columns are of the size of replicas."""
    scales = np.ones(len(model.proto.variables))
    for load in variables.load.values():
        scales[load.index] = LOAD_UNITS_PER_REPLICA
    for rate in (*variables.disaggregated.values(), *variables.unmet.values()):
        scales[rate.index] = DEMAND_RESOLUTION
    return scales


def _npz(
    model: cp_model.CpModel, scales: NDArray[np.float64], time_limit_s: float, gap_ratio: float
) -> bytes:
    """The program as an archive of plain arrays; rows are divided by their largest coefficient."""
    proto = model.proto
    values, columns, row_starts, row_lower, row_upper = [], [], [0], [], []
    for constraint in proto.constraints:
        linear = constraint.linear
        indices = np.array(list(linear.vars), dtype=np.int64)
        coefficients = np.array(list(linear.coeffs), dtype=float) * scales[indices]
        largest = float(np.abs(coefficients).max()) if coefficients.size else 1.0
        values.append(coefficients / largest)
        columns.append(indices)
        row_starts.append(row_starts[-1] + indices.size)
        # Only the first and the last of a domain's numbers matter: rows are intervals.
        lower, upper = linear.domain[0], linear.domain[1]
        row_lower.append(lower / largest if lower > -INFINITE_ROW else -math.inf)
        row_upper.append(upper / largest if upper < INFINITE_ROW else math.inf)
    cost = np.zeros(len(proto.variables))
    np.add.at(
        cost,
        np.array(list(proto.objective.vars), dtype=np.int64),
        np.array(list(proto.objective.coeffs), dtype=float),
    )
    buffer = io.BytesIO()
    np.savez(
        buffer,
        values=np.concatenate([*values, np.zeros(0)]),
        columns=np.concatenate([*columns, np.zeros(0, dtype=np.int64)]),
        row_starts=np.array(row_starts),
        row_lower=np.array(row_lower),
        row_upper=np.array(row_upper),
        shape=np.array([len(proto.constraints), len(proto.variables)]),
        lower=np.array([v.domain[0] for v in proto.variables], dtype=float) / scales,
        upper=np.array([v.domain[1] for v in proto.variables], dtype=float) / scales,
        integrality=(scales == 1.0).astype(np.int64),
        cost=cost * scales,
        time_limit_s=np.array(time_limit_s),
        gap_ratio=np.array(gap_ratio),
    )
    return buffer.getvalue()


def complete(
    model: cp_model.CpModel, variables: Variables, values: list[float], time_limit_s: float
) -> cp_model.CpSolver | None:
    """An exact solution of the integer model with the replicas and units that HiGHS found.

    Returns
    -------
    CpSolver or None
        None if rounding the rates down leaves those replicas too few.
    """
    fixed = model.clone()
    loose = {
        v.index
        for group in (variables.load, variables.disaggregated, variables.unmet)
        for v in group.values()
    }
    for index, value in enumerate(values):
        if index not in loose:
            domain = fixed.proto.variables[index].domain
            whole = round(value)
            del domain[:]
            domain.extend([whole, whole])
        else:
            fixed.add_hint(fixed.get_int_var_from_proto_index(index), round(value))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    status = solver.solve(fixed)
    return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
