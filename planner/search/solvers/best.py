"""The best plan and the proofs of a model while several solvers search it at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, Proof, Proofs
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY
from fleetplan.planner.search.solvers.request import Enough, Listener, ModelOutcome, ModelStatus, Step

WITHDRAWN: Final = "proof withdrawn: there is a better plan"
"""What is told of a bound that a plan contradicts."""


@dataclass(slots=True)
class Best:
    """The best of all solvers; their threads write it under its lock.

    `cpsat` is CP-SAT while it runs, `prover` what its proofs count as; `gave_way` says that it ended for a
    second search of HiGHS.
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

    @property
    def told(self) -> Proof:
        """The best bound that may be told."""
        with self.lock:
            return self.proofs.told

    def offer_objective(self, objective: float, source: str) -> bool:
        """Note an objective; True if it is the best so far."""
        with self.lock:
            if self.objective is not None and objective >= self.objective:
                return False
            self.objective, self.objective_source = objective, source
            false = self.proofs.found(objective)
            self._tell(source, "a better plan")
            for prover in false:
                self._withdrawn(prover)
            return True

    def offer_plan(self, values: cp_model.CpSolver, source: str) -> None:
        """Keep the values of a plan if it is no worse than the best."""
        objective = values.objective_value
        with self.lock:
            if self.values is None or self.objective is None or objective <= self.objective:
                self.offer_objective(objective, source)
                self.values = values

    def offer_bound(self, bound: float, prover: str) -> None:
        """Note a bound that somebody has proven."""
        with self.lock:
            before, claimed = self.proofs.told, self.claimed()
            if not self.proofs.prove(prover, bound):
                self._withdrawn(prover)
            elif self.proofs.told.bound > before.bound:
                self._tell(self.proofs.told.source, "a better bound")
            elif self.claimed() and not claimed:
                self._tell(prover, "a proof to be confirmed")

    def offer_infeasible(self, prover: str) -> None:
        """Note that somebody has proven that there is no plan."""
        with self.lock:
            if not self.proofs.prove_infeasible(prover):
                self._withdrawn(prover)
            elif self.proofs.infeasible:
                self._tell(prover, "no plan, confirmed")
            else:
                self._tell(prover, "no plan, to be confirmed")

    def closed(self) -> bool:
        """Whether the plan is good enough by what may be told."""
        with self.lock:
            return self._closes(self.proofs.told.bound)

    def settled(self) -> bool:
        """Whether there is nothing left to find or to prove."""
        with self.lock:
            return self.closed() or (self.proofs.infeasible and self.objective is None)

    def claimed(self) -> bool:
        """Whether CP-SAT with presolve has nothing left to prove, and only a confirmation is missing."""
        with self.lock:
            if self.settled():
                return False
            return self.proofs.calls_infeasible(CPSAT) or self._closes(self.proofs.claimed)

    def needs_other_proof(self) -> bool:
        """Whether CP-SAT is to go on without presolve: it has claimed all there is, or a false bound."""
        with self.lock:
            return self.claimed() or not self.proofs.trusts(CPSAT)

    def led_by_highs(self) -> bool:
        """Whether HiGHS has the better plan and the better bound."""
        with self.lock:
            if self.values is None or self.objective_source != HIGHS:
                return False
            return self.proofs.told.source == HIGHS and self.proofs.claimed <= self.proofs.told.bound

    def runs(self, solver: cp_model.CpSolver | None, prover: str = CPSAT) -> None:
        """Note which search of CP-SAT is running; None when it has ended."""
        with self.lock:
            self.cpsat, self.prover = solver, prover

    def stop_cpsat(self) -> None:
        """End the search of CP-SAT that is running."""
        with self.lock:
            if self.cpsat is not None:
                self.cpsat.stop_search()

    def outcome(self, deterministic_time: float) -> ModelOutcome:
        """What is known by now."""
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
        """Tell of a false proof; CP-SAT ends a search that began with it."""
        self._tell(prover, WITHDRAWN)
        if prover == self.prover == CPSAT:
            self.stop_cpsat()

    def _tell(self, source: str, detail: str) -> None:
        bound = self.proofs.told.bound
        self.on_step(Step(source, detail, self.objective, bound))


def proofs_of(model: cp_model.CpModel, continuous: frozenset[int]) -> Proofs:
    """Nothing is proven of a model but what the limits of its variables say."""
    objective, variables = model.proto.objective, model.proto.variables
    costs = [
        abs(float(cost)) * (max(variables[j].domain[1], 1) if j in continuous else 1)
        for j, cost in zip(objective.vars, objective.coeffs, strict=True)
    ]
    # HiGHS computes in units of the largest cost.
    return Proofs(least_of(model), BOUND_SAFETY * max(costs, default=1.0))


def least_of(model: cp_model.CpModel) -> float:
    """What the limits of the variables alone allow of a model's objective. [objective units]"""
    objective = model.proto.objective
    least: float = objective.offset
    for column, cost in zip(objective.vars, objective.coeffs, strict=True):
        limits = model.proto.variables[column].domain
        least += min(cost * limits[0], cost * limits[1])
    return least
