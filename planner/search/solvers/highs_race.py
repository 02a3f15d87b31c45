"""The CP-SAT model as a mixed-integer program, and HiGHS racing on it beside CP-SAT.

CP-SAT is quick to find plans and weak at bounds on covering problems; HiGHS is the other way round. Loads
and rates are continuous for HiGHS: its bound holds for the integer model, which is a restriction, and its
plans are completed by CP-SAT before they count.
"""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.highs_program import ANY_NODES, archive, column_scales, cost_unit
from fleetplan.planner.search.solvers.request import Enough
from fleetplan.planner.search.work import nodes_within

BOUND_SAFETY: Final = 1e-6
"""Share of the objective that a bound is lowered by: HiGHS computes with tolerances of that size."""

COMPLETION_GAP: Final = 1e-7
"""Share of the objective at which a completed plan is good enough. Its replicas are decided, only loads are
not: to prove the last 3e-8 of a small fleet took 2.5 s, to come this near 3 ms."""

GAP_MARGIN: Final = 0.9
"""Part of the gap that HiGHS is asked for: completing its plan in whole loads costs a little."""

FINEST_GAP: Final = 1e-6
"""The smallest gap that it is asked for."""

ONE_MORE: Final = b"one more\n"
"""Asks the process for one search more."""


@dataclass(frozen=True, slots=True)
class HighsAnswer:
    """What HiGHS knows after a round, in units of the CP-SAT objective and variables.

    Attributes
    ----------
    bound : float or None
        No solution has a lower objective.
    values : list[float] or None
        By variable, of the best plan with continuous loads.
    infeasible : bool
        Whether there is no plan, within tolerances.
    iterations : int
        Of its simplex, where it has ended.
    """

    bound: float | None
    values: list[float] | None
    infeasible: bool = False
    iterations: int = 0

    def besides(self, earlier: HighsAnswer) -> HighsAnswer:
        """The best of this answer and an earlier one: each is better than those before it."""
        return HighsAnswer(
            earlier.bound if self.bound is None else self.bound,
            earlier.values if self.values is None else self.values,
            self.infeasible or earlier.infeasible,
            max(self.iterations, earlier.iterations),
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A CP-SAT model written down for the HiGHS process.

    Attributes
    ----------
    message : bytes
        What the process reads: the length of an archive, a line break, and the archive.
    scales : NDArray[float64], shape (n_variables,)
        Units of its columns.
    cost_unit : float
        Unit of its objective. [objective units]
    offset : float
        Constant part of the objective, which the process does not know. [objective units]
    entries : int
        Of its rows.
    """

    message: bytes
    scales: NDArray[np.float64]
    cost_unit: float
    offset: float
    entries: int

    def answer(self, line: bytes) -> HighsAnswer:
        """What a line of the process says, in units of the CP-SAT model."""
        written = json.loads(line)
        bound, values = written["bound"], written["values"]
        return HighsAnswer(
            None if bound is None else self.cost_unit * (bound - BOUND_SAFETY * abs(bound)) + self.offset,
            None if values is None else (np.array(values) * self.scales).tolist(),
            written["infeasible"],
            written["iterations"],
        )


def program(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    time_limit_s: float,
    gap_ratio: float,
    work_limit_s: float = math.inf,
) -> Program:
    """Write a model down for HiGHS.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    continuous : frozenset[int]
        Indices of the variables that HiGHS need not keep whole.
    time_limit_s : float
        When the process gives up. [s]
    gap_ratio : float
        When it is content.
    work_limit_s : float
        When it ends in the time of planner/search/work.py, by its nodes, of which it searches one. [s]
    """
    scales = column_scales(model, continuous)
    unit = cost_unit(model, scales)
    entries = sum(len(constraint.linear.vars) for constraint in model.proto.constraints)
    nodes = ANY_NODES if math.isinf(work_limit_s) else min(nodes_within(work_limit_s, entries), ANY_NODES)
    written = archive(model, scales, unit, continuous, time_limit_s, gap_ratio, nodes)
    message = b"%d\n%b" % (len(written), written)
    return Program(message, scales, unit, model.proto.objective.offset, entries)


def gap_for(objective: float, enough: Enough) -> float:
    """The gap of the program that is enough, with a margin for completing its plan in integers."""
    low, high = 0.0, 1.0
    while high - low > FINEST_GAP:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(objective, objective * (1 - middle)) else (low, middle)
    return max(low * GAP_MARGIN, FINEST_GAP)


class HighsRace:
    """HiGHS on one model in a child process, for as long as the context lasts.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    continuous : frozenset[int]
        Indices of the variables that HiGHS need not keep whole.
    time_limit_s : float
        When the child gives up. [s]
    gap_ratio : float
        When it is content.
    on_answer : callable
        Called from another thread with the newest of what HiGHS has said since the last call.
    searches : int
        How many it begins with, one core each; they differ in their seeds.

    Attributes
    ----------
    ended : threading.Event
        Set when HiGHS will say no more, and all of it has been passed on.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        continuous: frozenset[int],
        time_limit_s: float,
        gap_ratio: float,
        on_answer: Callable[[HighsAnswer], None],
        searches: int = 1,
    ) -> None:
        self.ended = threading.Event()
        self._program = program(model, continuous, time_limit_s, gap_ratio)
        self._on_answer = on_answer
        self._said: SimpleQueue[bytes | None] = SimpleQueue()
        self._heard: SimpleQueue[HighsAnswer | None] = SimpleQueue()
        self._said.put(self._program.message + ONE_MORE * (searches - 1))

    def __enter__(self) -> HighsRace:
        # A session of its own: Ctrl-C in the terminal is for the parent, which decides what to keep.
        self._child = subprocess.Popen(
            # By its path: the child needs no fleetplan, and must start where the package is not installed.
            [sys.executable, str(Path(__file__).with_name("highs_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._talk, self._listen, self._pass_on)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        for thread in self._threads:
            thread.join()
        self._child.wait()

    def search_more(self) -> None:
        """Begin one search more."""
        self._said.put(ONE_MORE)

    def _talk(self) -> None:
        if self._child.stdin is None:
            raise RuntimeError("the HiGHS process has no pipes")
        # The race may be called off before the child has read everything.
        with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
            while (said := self._said.get()) is not None:
                pipe.write(said)
                pipe.flush()

    def _listen(self) -> None:
        if self._child.stdout is None:
            raise RuntimeError("the HiGHS process has no pipes")
        try:
            with self._child.stdout as answers:
                for line in answers:
                    self._heard.put(self._program.answer(line))
        finally:
            self._heard.put(None)
            self._said.put(None)

    def _pass_on(self) -> None:
        """Pass answers on; of those that came while one was being heard, what is best of them."""
        try:
            while (answer := self._heard.get()) is not None:
                while not self._heard.empty():
                    later = self._heard.get()
                    if later is None:
                        self._on_answer(answer)
                        return
                    answer = later.besides(answer)
                self._on_answer(answer)
        finally:
            self.ended.set()


def complete(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    values: list[float],
    time_limit_s: float,
    reproducible: bool = False,
) -> cp_model.CpSolver | None:
    """An exact solution of the integer model with the replicas and units that HiGHS found.

    The limit is on solver units instead of wall time where the answer must not depend on the machine.

    Returns
    -------
    CpSolver or None
        None if rounding the rates down leaves those replicas too few.
    """
    fixed = model.clone()
    fixed.clear_hints()  # type: ignore[no-untyped-call]
    for index, value in enumerate(values):
        variable = fixed.get_int_var_from_proto_index(index)
        if index in continuous:
            fixed.add_hint(variable, min(round(value), variable.proto.domain[1]))
        else:
            fixed.add(variable == round(value))
    solver = configured_solver(math.inf if reproducible else time_limit_s, seed=1, workers=1)
    if reproducible:
        solver.parameters.max_deterministic_time = time_limit_s
    solver.parameters.relative_gap_limit = COMPLETION_GAP
    status = solver.solve(fixed)
    return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
