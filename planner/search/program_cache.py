"""Cache of solved programs: questions about one fleet solve the same regions many times."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.request import ModelOutcome

MOST_OUTCOMES: Final = 64
"""Cached outcomes, least recently used dropped first: a few hundred kB each."""


class ProgramCache:
    """Cache of outcomes of least-cost programs that serve all demand; pickled copies start empty."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, ModelOutcome] = OrderedDict()

    def __reduce__(self) -> tuple[type[ProgramCache], tuple[()]]:
        return ProgramCache, ()

    def found(self, key: str) -> ModelOutcome | None:
        """Return the cached outcome of a program; None if it was not solved."""
        if key in self._outcomes:
            self._outcomes.move_to_end(key)
        return self._outcomes.get(key)

    def noted(self, key: str, outcome: ModelOutcome) -> ModelOutcome:
        """Cache an outcome that has a plan, and return it."""
        if outcome.values is not None:
            self._outcomes[key] = outcome
            if len(self._outcomes) > MOST_OUTCOMES:
                self._outcomes.popitem(last=False)
        return outcome


def program_key(model: cp_model.CpModel) -> str:
    """Hash a model and its objective without hints; equal hashes have equal solutions."""
    plain = model.clone()
    plain.clear_hints()  # type: ignore[no-untyped-call]
    return hashlib.sha256(str(plain.proto).encode()).hexdigest()
