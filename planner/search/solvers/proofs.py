"""What is proven of one model, by whom, and which of it may be told.

The presolve of CP-SAT 9.15 cuts optima off and calls feasible models infeasible
(benchmarks/ortools-presolve.md). So what CP-SAT proves with presolve is a *claim*: it counts once a proof
that does not rest on that presolve confirms it. HiGHS and CP-SAT without presolve give such proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

CPSAT: Final = "CP-SAT"
WITHOUT_PRESOLVE: Final = "CP-SAT without presolve"
HIGHS: Final = "HiGHS"
VARIABLES: Final = "bounds of the variables"
"""Who proves something of a model. The last one needs no solver and cannot be wrong."""

CONFIRMED_RATIO: Final = 2e-6
"""Share of its size by which a claim may lie above the bound that confirms it. HiGHS lowers its bound by half
of that for its tolerances and stops its search the other half below its optimum. The false bounds that were
seen were 16 % to 300 % off."""

LARGEST_CONTRADICTION: Final = 1e-5
"""Share of its cost by which a plan may lie below a bound of HiGHS, which computes with tolerances."""

EXACT_RATIO: Final = 1e-9
"""The same below a bound of CP-SAT, which computes in integers: the float rounding of what it says."""

PROOFS_OF_INFEASIBILITY: Final = 2
"""Independent proofs that there is no plan, before that is told."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A lower bound on what is minimised, and where it is from. [objective units]"""

    bound: float
    source: str


@dataclass(slots=True)
class Proofs:
    """The proofs of one model.

    Parameters
    ----------
    least : float
        What the limits of the variables alone allow. [objective units]
    grain : float
        What HiGHS cannot tell from zero. [objective units]
    """

    least: float
    grain: float = 0.0
    _objective: float = math.inf
    _bounds: dict[str, float] = field(default_factory=dict)
    _infeasible: set[str] = field(default_factory=set)
    _distrusted: set[str] = field(default_factory=set)

    def prove(self, prover: str, bound: float) -> bool:
        """Note a lower bound; False where a plan contradicts it, so that its prover is distrusted."""
        if prover in self._distrusted or math.isnan(bound):
            return True
        if self.contradicts(prover, bound):
            self._withdraw(prover)
            return False
        self._bounds[prover] = max(bound, self._bounds.get(prover, -math.inf))
        return True

    def prove_infeasible(self, prover: str) -> bool:
        """Note a proof that there is no plan; False where there is one, so that its prover is distrusted."""
        if prover in self._distrusted:
            return True
        if self._objective < math.inf:
            self._withdraw(prover)
            return False
        self._infeasible.add(prover)
        return True

    def found(self, objective: float) -> tuple[str, ...]:
        """Note a plan; the provers that it contradicts, which are distrusted from now on."""
        self._objective = min(self._objective, objective)
        false = [prover for prover, bound in self._bounds.items() if self.contradicts(prover, bound)]
        false += sorted(self._infeasible - set(false))
        for prover in false:
            self._withdraw(prover)
        return tuple(false)

    def contradicts(self, prover: str, bound: float) -> bool:
        """Whether a plan lies further below a bound than its prover's tolerances explain."""
        if prover == HIGHS:
            return contradicted(bound, self._objective, self.grain)
        return bound - self._objective > EXACT_RATIO * abs(self._objective)

    def trusts(self, prover: str) -> bool:
        """Whether no plan has contradicted a prover."""
        return prover not in self._distrusted

    @property
    def told(self) -> Proof:
        """The best bound that may be told: no claim without its confirmation."""
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
        """The best bound that anyone trusted has proven, confirmed or not. [objective units]"""
        return max(self.least, *self._bounds.values()) if self._bounds else self.least

    @property
    def infeasible(self) -> bool:
        """Whether there is no plan, by two proofs."""
        return len(self._infeasible) >= PROOFS_OF_INFEASIBILITY

    @property
    def infeasible_by(self) -> str:
        """Who has proven that there is no plan."""
        others = sorted(self._infeasible - {CPSAT})
        if CPSAT in self._infeasible and others:
            return f"{CPSAT}, confirmed {_how(others[0])}"
        return " and ".join(sorted(self._infeasible))

    def calls_infeasible(self, prover: str) -> bool:
        """Whether a prover has proven that there is no plan."""
        return prover in self._infeasible

    def _withdraw(self, prover: str) -> None:
        self._distrusted.add(prover)
        self._bounds.pop(prover, None)
        self._infeasible.discard(prover)


def contradicted(bound: float, objective: float, grain: float = 0.0) -> bool:
    """Whether a plan lies further below a bound in floating point than its tolerances explain.

    Parameters
    ----------
    bound, objective : float
        Of whoever computes in floating point, and of a plan. [any one unit]
    grain : float
        What the former cannot tell from zero. [the same unit]
    """
    return bound - objective > LARGEST_CONTRADICTION * abs(objective) + grain


def _how(source: str) -> str:
    return "without presolve" if source == WITHOUT_PRESOLVE else f"by {source}"
