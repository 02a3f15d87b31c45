"""Patterns: ways to run a block, gathered while blocks are priced, and their exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from ortools.sat.python import cp_model

from fleetplan.planner.decomposition.blocks import Block, Split
from fleetplan.planner.decomposition.matrix import FloatArray, IntArray, Program
from fleetplan.planner.decomposition.relaxation import Relaxation
from fleetplan.planner.solvers.cpsat import configured_solver

SAME_PATTERN_DECIMALS = 4
"""Patterns whose scaled values agree to so many decimals are one."""

EXACT_DETERMINISTIC_LIMIT = 1.0
"""Effort to find the whole loads of a pattern; most take a hundredth. [solver units]"""


@dataclass(slots=True, eq=False)
class Pattern:
    """One way to run a block.

    Attributes
    ----------
    block : int
        Its block.
    values : FloatArray
        Scaled values of the block's variables; loads are continuous.
    cost : float
        Of its variables. [objective units]
    entries : tuple[IntArray, FloatArray]
        What it adds to which linking rows (positions among them), scaled.
    """

    block: int
    values: FloatArray
    cost: float
    entries: tuple[IntArray, FloatArray]


@dataclass(slots=True, eq=False)
class PatternPool:
    """All patterns that were found.

    Parameters
    ----------
    parts, relaxation, cost
        The program in blocks, its relaxation, and the scaled cost of its variables.
    """

    parts: Split
    relaxation: Relaxation
    cost: FloatArray
    patterns: list[Pattern] = field(default_factory=list)
    _seen: dict[tuple[int, bytes], Pattern] = field(default_factory=dict)
    _links: list[sp.csr_array] = field(default_factory=list)

    def __post_init__(self) -> None:
        linking = self.relaxation.rows[self.parts.linking_rows].tocsc()
        self._links = [linking[:, block.columns].tocsr() for block in self.parts.blocks]

    def add(self, block: int, values: FloatArray) -> bool:
        """Remember a pattern; True if it is new."""
        before = len(self.patterns)
        self.known(block, values)
        return len(self.patterns) > before

    def known(self, block: int, values: FloatArray) -> Pattern:
        """The pattern with these scaled values, remembered from now on."""
        key = (block, np.round(values, SAME_PATTERN_DECIMALS).tobytes())
        if key not in self._seen:
            added = self._links[block] @ values
            rows = np.flatnonzero(np.abs(added) > 0)
            columns = self.parts.blocks[block].columns
            pattern = Pattern(block, values, float(self.cost[columns] @ values), (rows, added[rows]))
            self._seen[key] = pattern
            self.patterns.append(pattern)
        return self._seen[key]

    def cheapest(self, costs: Sequence[FloatArray]) -> dict[int, FloatArray]:
        """Values of the cheapest known pattern of each block that has one.

        Parameters
        ----------
        costs : Sequence[FloatArray]
            Of the variables of every block. [objective units]
        """
        best: dict[int, tuple[float, FloatArray]] = {}
        for pattern in self.patterns:
            price = float(costs[pattern.block] @ pattern.values)
            if pattern.block not in best or price < best[pattern.block][0]:
                best[pattern.block] = price, pattern.values
        return {block: values for block, (_, values) in best.items()}

    def blocks_without(self) -> list[int]:
        """Blocks that have no pattern yet."""
        having = {pattern.block for pattern in self.patterns}
        return [block for block in range(len(self.parts.blocks)) if block not in having]

    def of(self, blocks: set[int]) -> Iterator[Pattern]:
        """Patterns of some blocks."""
        return (pattern for pattern in self.patterns if pattern.block in blocks)


class ExactPatterns:
    """Whole values of patterns, found once for each.

    Parameters
    ----------
    parts, relaxation
        The program in blocks and its relaxation.
    """

    def __init__(self, parts: Split, relaxation: Relaxation) -> None:
        self._parts = parts
        self._relaxation = relaxation
        self._known: dict[int, IntArray | None] = {}
        self._keep: list[Pattern] = []

    def values(self, pattern: Pattern) -> IntArray | None:
        """Whole values of the block's variables, or None where rounding leaves the replicas too few."""
        if id(pattern) not in self._known:
            self._keep.append(pattern)
            self._known[id(pattern)] = self._find(pattern)
        return self._known[id(pattern)]

    def _find(self, pattern: Pattern) -> IntArray | None:
        block = self._parts.blocks[pattern.block]
        whole = self._relaxation.whole[block.columns]
        unscaled = np.round(pattern.values * self._relaxation.column_scale[block.columns]).astype(np.int64)
        if whole.all():
            return unscaled
        program = self._parts.program
        lower = np.where(whole, unscaled, program.lower[block.columns])
        upper = np.where(whole, unscaled, program.upper[block.columns])
        model, variables = block_model(program, block, lower, upper)
        for variable, value in zip(variables, unscaled.tolist(), strict=True):
            model.add_hint(variable, value)
        cost = program.cost[block.columns]
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, cost.tolist()))
        solver = configured_solver(60.0, seed=1, workers=1)
        solver.parameters.max_deterministic_time = EXACT_DETERMINISTIC_LIMIT
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return np.array([solver.value(variable) for variable in variables], dtype=np.int64)


def block_model(
    program: Program, block: Block, lower: IntArray, upper: IntArray
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """A block as a model of its own, within bounds and without an objective."""
    model = cp_model.CpModel()
    bounds = zip(lower.tolist(), upper.tolist(), strict=True)
    variables = [model.new_int_var(least, most, "") for least, most in bounds]
    rows: sp.csr_array = program.rows[block.rows][:, block.columns].tocsr()
    limits = zip(program.row_lower[block.rows].tolist(), program.row_upper[block.rows].tolist(), strict=True)
    for number, (least, most) in enumerate(limits):
        entries = slice(rows.indptr[number], rows.indptr[number + 1])
        terms = [variables[index] for index in rows.indices[entries]]
        model.add_linear_constraint(
            cp_model.LinearExpr.weighted_sum(terms, rows.data[entries].tolist()), least, most
        )
    return model, variables
