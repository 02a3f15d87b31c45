"""Look up the operators of several steps together.

A look-up takes about a millisecond for a few rows and little more for a thousand, and a search reads the same
tables for every phase of every service.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fleetplan.perfmodel.operators import DIMENSIONS, WEIGHT_KINDS, IntArray, OperatorKind
from fleetplan.perfmodel.optables import OperatorTimes, UnsupportedDtype
from fleetplan.perfmodel.steps.folding import FoldedOperator, Shape
from fleetplan.perfmodel.steps.latency import OperatorTimesSource

_Table = tuple[OperatorKind, str]


class SharedLookups:
    """Steps that wait for the times of their operators.

    When the first step needs its times, every table is read once for the operators of all steps.
    """

    def __init__(self) -> None:
        self._waiting: list[PendingOperators] = []

    def ask(self, operators: Sequence[FoldedOperator], source: OperatorTimesSource) -> PendingOperators:
        """Queue the operators of a step for look-up in a source."""
        asked = PendingOperators(self, operators, source)
        self._waiting.append(asked)
        return asked

    def answer(self) -> None:
        """Look up the operators of all steps that wait.

        Raises
        ------
        WorkInterruptedError
            The time of an interruptible computation is over.
        """
        sharing: dict[tuple[OperatorTimesSource, _Table], list[PendingOperators]] = {}
        for asked in self._waiting:
            for table in asked.by_table:
                sharing.setdefault((asked.source, table), []).append(asked)
        # Operators that may show that a step cannot run come first; no other table is then read for it.
        for source, table in sorted(sharing, key=_cannot_fail):
            together = sharing[source, table]
            _answer(source, table, [asked for asked in together if asked.error is None])
        self._waiting = []


class PendingOperators:
    """Operators of one step, by the tables that hold their times.

    Parameters
    ----------
    lookups : SharedLookups
        Queue.
    operators, source
        Operators to look up, and their source.

    Attributes
    ----------
    source : OperatorTimesSource
        Source of the tables.
    by_table : dict[tuple[OperatorKind, str], list[FoldedOperator]]
        Operators by kind and data type, in the order of their first use.
    answers : dict[tuple[OperatorKind, str], list[OperatorTimes]]
        Times of the operators of each table, after look-up.
    error : UnsupportedDtype or None
        Reason why the step cannot run; nothing else of it is then looked up.
    """

    def __init__(
        self, lookups: SharedLookups, operators: Sequence[FoldedOperator], source: OperatorTimesSource
    ) -> None:
        self._lookups = lookups
        self.source = source
        self.by_table: dict[_Table, list[FoldedOperator]] = {}
        for each in operators:
            self.by_table.setdefault((each.operator.kind, each.operator.dtype), []).append(each)
        self.answers: dict[_Table, list[OperatorTimes]] = {}
        self.error: UnsupportedDtype | None = None

    def found(self) -> list[tuple[FoldedOperator, OperatorTimes]]:
        """Return each operator with its times in its own shape, table by table.

        Raises
        ------
        UnsupportedDtype
            The accelerator has no matrix units for a data type of the step.
        WorkInterruptedError
            As `SharedLookups.answer`.
        """
        if not self.answers:
            self._lookups.answer()
        if self.error is not None:
            raise self.error
        return [
            pair
            for table, operators in self.by_table.items()
            for pair in zip(operators, self.answers[table], strict=True)
        ]


def _cannot_fail(asked: tuple[OperatorTimesSource, _Table]) -> bool:
    _, (kind, _) = asked
    return kind not in WEIGHT_KINDS


def _answer(source: OperatorTimesSource, table: _Table, together: list[PendingOperators]) -> None:
    """Look up the operators of one table for all steps that ask for it."""
    if not together:
        return
    kind, dtype = table
    operators = [each for asked in together for each in asked.by_table[table]]
    dims = {
        name: np.concatenate([_flat(each.operator.dims[name], each.shape) for each in operators])
        for name in DIMENSIONS[kind]
    }
    try:
        found = source.times_of_distinct(kind, dtype, dims)
    except UnsupportedDtype as error:
        for asked in together:
            asked.error = error
        return
    start = 0
    for asked in together:
        times: list[OperatorTimes] = []
        for each in asked.by_table[table]:
            rows = slice(start, start + math.prod(each.shape))
            latency_ms, provenance = found.latency_ms[rows], found.provenance[rows]
            times.append(OperatorTimes(latency_ms.reshape(each.shape), provenance.reshape(each.shape)))
            start = rows.stop
        asked.answers[table] = times


def _flat(values: IntArray, shape: Shape) -> IntArray:
    """Return the values of a broadcast shape, one after the other; most have it already, or are one value."""
    if values.shape == shape:
        return values.ravel()
    if values.size == 1:
        return np.full(math.prod(shape), values.flat[0])
    return np.broadcast_to(values, shape).ravel()
