"""Best plan and proofs of a model, shared by several solvers that search it at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, Proof, Proofs
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY
from fleetplan.planner.search.solvers.request import Enough, Listener, ModelOutcome, ModelStatus, Step

WITHDRAWN: Final = "withdrew a proof that a plan contradicts"
"""Detail of a step that withdraws a bound."""


@dataclass(slots=True)
class BestFound:
    """Best plan and bound of all solvers; threads write it under its lock.

    `cpsat` is the CP-SAT solver while it runs, `prover` the name under which its proofs count. `gave_way` is
    set when it ended for a second search of HiGHS. `listener` receives CP-SAT's plans.
    """

    enough: Enough
    on_step: Listener
    proofs: Proofs
    lock: threading.RLock = field(default_factory=threading.RLock)
    objective: float | None = None
    objective_source: str = CPSAT
    values: cp_model.CpSolver | None = None
    cpsat: cp_model.CpSolver | None = None
    prover: str = CPSAT
    gave_way: bool = False
    listener: Callable[[Sequence[int]], None] | None = None

    def share(self, solution: Sequence[int]) -> None:
        """Pass a plan of CP-SAT on to HiGHS."""
        if self.listener is not None:
            self.listener(solution)

    @contextmanager
    def sharing_with(self, listener: Callable[[Sequence[int]], None]) -> Iterator[None]:
        """Pass plans of CP-SAT on for as long as the context lives."""
        self.listener = listener
        try:
            yield
        finally:
            self.listener = None

    @property
    def told(self) -> Proof:
        """Return the best bound that may be reported."""
        with self.lock:
            return self.proofs.told

    def offer_objective(self, objective: float, source: str) -> bool:
        """Store an objective; return whether it is the best so far."""
        with self.lock:
            if self.objective is not None and objective >= self.objective:
                return False
            self.objective, self.objective_source = objective, source
            false = self.proofs.found(objective)
            self._tell(source, "found a better plan")
            for prover in false:
                self._withdrawn(prover)
            return True

    def offer_plan(self, values: cp_model.CpSolver, source: str) -> None:
        """Keep the values of a plan that is no worse than the best."""
        objective = values.objective_value
        with self.lock:
            if self.values is None or self.objective is None or objective <= self.objective:
                self.offer_objective(objective, source)
                self.values = values

    def offer_bound(self, bound: float, prover: str) -> None:
        """Store a proven bound."""
        with self.lock:
            before, claimed = self.proofs.told, self.claimed()
            if not self.proofs.prove(prover, bound):
                self._withdrawn(prover)
            elif self.proofs.told.bound > before.bound:
                self._tell(self.proofs.told.source, "raised the bound")
            elif self.claimed() and not claimed:
                self._tell(prover, "claimed a proof, not yet confirmed")

    def offer_infeasible(self, prover: str) -> None:
        """Store a proof of infeasibility."""
        with self.lock:
            if not self.proofs.prove_infeasible(prover):
                self._withdrawn(prover)
            elif self.proofs.infeasible:
                self._tell(prover, "confirmed infeasibility")
            else:
                self._tell(prover, "claimed infeasibility, not yet confirmed")

    def closed(self) -> bool:
        """Return whether the plan is good enough by the reportable bound."""
        with self.lock:
            return self._closes(self.proofs.told.bound)

    def settled(self) -> bool:
        """Return whether nothing is left to find or to prove."""
        with self.lock:
            return self.closed() or (self.proofs.infeasible and self.objective is None)

    def claimed(self) -> bool:
        """Return whether CP-SAT with presolve has proven all there is, and only a confirmation is missing."""
        with self.lock:
            if self.settled():
                return False
            return self.proofs.calls_infeasible(CPSAT) or self._closes(self.proofs.claimed)

    def calls_infeasible(self) -> bool:
        """Return whether HiGHS claims that there is no plan."""
        with self.lock:
            return self.proofs.calls_infeasible(HIGHS)

    def needs_other_proof(self) -> bool:
        """Return whether CP-SAT should go on without presolve: all is claimed, or a claim was false."""
        with self.lock:
            return self.claimed() or not self.proofs.trusts(CPSAT)

    def led_by_highs(self) -> bool:
        """Return whether HiGHS has both the best plan and the best bound."""
        with self.lock:
            if self.values is None or self.objective_source != HIGHS:
                return False
            return self.proofs.told.source == HIGHS and self.proofs.claimed <= self.proofs.told.bound

    def runs(self, solver: cp_model.CpSolver | None, prover: str = CPSAT) -> None:
        """Store which CP-SAT search is running; None when it has ended."""
        with self.lock:
            self.cpsat, self.prover = solver, prover

    def stop_cpsat(self) -> None:
        """Stop the running CP-SAT search."""
        with self.lock:
            if self.cpsat is not None:
                self.cpsat.stop_search()

    def outcome(self, deterministic_time: float) -> ModelOutcome:
        """Return the outcome so far."""
        with self.lock:
            told, objective = self.proofs.told, self.objective
            if self.values is None or objective is None:
                known, source = ModelStatus.UNKNOWN, told.source
                if self.proofs.infeasible:
                    known, source = ModelStatus.INFEASIBLE, self.proofs.infeasible_by
                return ModelOutcome(known, None, None, told.bound, source, deterministic_time)
            known = ModelStatus.SOLVED if self.closed() else ModelStatus.FOUND
            bound = min(told.bound, objective)
            return ModelOutcome(known, self.values, objective, bound, told.source, deterministic_time)

    def _closes(self, bound: float) -> bool:
        if self.objective is None:
            return False
        return bound >= self.objective or self.enough(self.objective, bound)

    def _withdrawn(self, prover: str) -> None:
        """Report a false proof, and end a CP-SAT search that started from it."""
        self._tell(prover, WITHDRAWN)
        if prover == self.prover == CPSAT:
            self.stop_cpsat()

    def _tell(self, source: str, detail: str) -> None:
        bound = self.proofs.told.bound
        self.on_step(Step(source, detail, self.objective, bound))


def proofs_of(model: cp_model.CpModel, continuous: frozenset[int]) -> Proofs:
    """Return the proofs known at first: the bound implied by the variables' limits."""
    objective, variables = model.proto.objective, model.proto.variables
    costs = [
        abs(float(cost)) * (max(variables[j].domain[1], 1) if j in continuous else 1)
        for j, cost in zip(objective.vars, objective.coeffs, strict=True)
    ]
    # HiGHS computes in units of the largest cost.
    return Proofs(least_of(model), BOUND_SAFETY * max(costs, default=1.0))


def least_of(model: cp_model.CpModel) -> float:
    """Return the least objective that the variables' limits allow. [objective units]"""
    objective = model.proto.objective
    least: float = objective.offset
    for column, cost in zip(objective.vars, objective.coeffs, strict=True):
        limits = model.proto.variables[column].domain
        least += min(cost * limits[0], cost * limits[1])
    return least
