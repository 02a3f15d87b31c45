"""Proofs about one model, their sources, and which may be reported.

CP-SAT 9.15's presolve cuts off optima and calls feasible models infeasible (benchmarks/ortools-presolve.md).
Proofs of CP-SAT with presolve are therefore *claims*: they count once a proof without presolve confirms them,
by HiGHS or by CP-SAT. HiGHS's own presolve is off but for basic rules (benchmarks/highs-presolve.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

CPSAT: Final = "CP-SAT"
WITHOUT_PRESOLVE: Final = "CP-SAT without presolve"
HIGHS: Final = "HiGHS"
VARIABLES: Final = "bounds of the variables"
"""Sources of proofs. The last needs no solver and cannot be wrong."""

CONFIRMED_RATIO: Final = 2e-6
"""Relative excess of a claim over the bound that confirms it. HiGHS lowers its bound by half of it for its
tolerances, and stops up to the other half below its optimum. The false bounds seen were 16 % to 300 % off."""

LARGEST_CONTRADICTION: Final = 1e-5
"""Relative amount by which a plan may lie below a bound of HiGHS, which computes with tolerances."""

EXACT_RATIO: Final = 1e-9
"""The same for CP-SAT, which computes in integers: float rounding of its output."""

PROOFS_OF_INFEASIBILITY: Final = 2
"""Independent proofs required to report infeasibility."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Lower bound on the objective, and its source. [objective units]"""

    bound: float
    source: str


@dataclass(slots=True)
class Proofs:
    """Proofs about one model.

    Parameters
    ----------
    least : float
        Least objective that the variables' limits allow. [objective units]
    grain : float
        Amount that HiGHS cannot distinguish from zero. [objective units]
    """

    least: float
    grain: float = 0.0
    _objective: float = math.inf
    _bounds: dict[str, float] = field(default_factory=dict)
    _infeasible: set[str] = field(default_factory=set)
    _distrusted: set[str] = field(default_factory=set)

    def prove(self, prover: str, bound: float) -> bool:
        """Store a lower bound; return False if a plan contradicts it, which discredits the prover."""
        if prover in self._distrusted or math.isnan(bound):
            return True
        if self.contradicts(prover, bound):
            self._withdraw(prover)
            return False
        self._bounds[prover] = max(bound, self._bounds.get(prover, -math.inf))
        return True

    def prove_infeasible(self, prover: str) -> bool:
        """Store a proof of infeasibility; return False if a plan contradicts it and discredits the prover."""
        if prover in self._distrusted:
            return True
        if self._objective < math.inf:
            self._withdraw(prover)
            return False
        self._infeasible.add(prover)
        return True

    def found(self, objective: float) -> tuple[str, ...]:
        """Store a plan; return the provers that it contradicts, which are discredited from now on."""
        self._objective = min(self._objective, objective)
        false = [prover for prover, bound in self._bounds.items() if self.contradicts(prover, bound)]
        false += sorted(self._infeasible - set(false))
        for prover in false:
            self._withdraw(prover)
        return tuple(false)

    def contradicts(self, prover: str, bound: float) -> bool:
        """Return whether a plan lies below a bound by more than its prover's tolerances."""
        if prover == HIGHS:
            return contradicted(bound, self._objective, self.grain)
        return bound - self._objective > EXACT_RATIO * abs(self._objective)

    def trusts(self, prover: str) -> bool:
        """Return whether no plan has contradicted a prover."""
        return prover not in self._distrusted

    @property
    def told(self) -> Proof:
        """Return the best reportable bound: no claim without confirmation."""
        best = Proof(self.least, VARIABLES)
        for prover in (HIGHS, WITHOUT_PRESOLVE):
            bound = self._bounds.get(prover, -math.inf)
            if bound > best.bound:
                best = Proof(bound, prover)
        claim = self._bounds.get(CPSAT, -math.inf)
        near = claim - best.bound <= CONFIRMED_RATIO * abs(claim)
        if best.source == VARIABLES or claim < best.bound or not near:
            return best
        return Proof(claim, f"{CPSAT}, confirmed {_how(best.source)}")

    @property
    def claimed(self) -> float:
        """Return the best bound of any trusted prover, confirmed or not. [objective units]"""
        return max(self.least, *self._bounds.values()) if self._bounds else self.least

    @property
    def infeasible(self) -> bool:
        """Return whether infeasibility has two proofs."""
        return len(self._infeasible) >= PROOFS_OF_INFEASIBILITY

    @property
    def infeasible_by(self) -> str:
        """Return the provers of infeasibility."""
        others = sorted(self._infeasible - {CPSAT})
        if CPSAT in self._infeasible and others:
            return f"{CPSAT}, confirmed {_how(others[0])}"
        return " and ".join(sorted(self._infeasible))

    def calls_infeasible(self, prover: str) -> bool:
        """Return whether a prover has proven infeasibility."""
        return prover in self._infeasible

    def _withdraw(self, prover: str) -> None:
        self._distrusted.add(prover)
        self._bounds.pop(prover, None)
        self._infeasible.discard(prover)


def contradicted(bound: float, objective: float, grain: float = 0.0) -> bool:
    """Return whether a plan lies below a floating-point bound by more than its tolerances.

    Parameters
    ----------
    bound, objective : float
        Floating-point bound, and objective of the plan. [any common unit]
    grain : float
        Amount that the prover cannot distinguish from zero. [same unit]
    """
    return bound - objective > LARGEST_CONTRADICTION * abs(objective) + grain


def _how(source: str) -> str:
    return "without presolve" if source == WITHOUT_PRESOLVE else f"by {source}"
