"""Programs that were solved before: questions about one fleet solve the same regions many times."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.request import ModelOutcome

MOST_OUTCOMES: Final = 64
"""Outcomes that are kept, those asked for last: some hundred kB each."""


class Remembered:
    """What was found of programs that serve everything at least cost; a copy elsewhere begins without any."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, ModelOutcome] = OrderedDict()

    def __reduce__(self) -> tuple[type[Remembered], tuple[()]]:
        return Remembered, ()

    def found(self, key: str) -> ModelOutcome | None:
        """What was found of the program of a key; None where it was not solved."""
        if key in self._outcomes:
            self._outcomes.move_to_end(key)
        return self._outcomes.get(key)

    def noted(self, key: str, outcome: ModelOutcome) -> ModelOutcome:
        """Note what was found of a program, where that is a plan, and return it."""
        if outcome.values is not None:
            self._outcomes[key] = outcome
            if len(self._outcomes) > MOST_OUTCOMES:
                self._outcomes.popitem(last=False)
        return outcome


def program_key(model: cp_model.CpModel) -> str:
    """Hash of a model and its objective, whatever its hints: equal ones have the same solutions."""
    plain = model.clone()
    plain.clear_hints()  # type: ignore[no-untyped-call]
    return hashlib.sha256(str(plain.proto).encode()).hexdigest()
