"""Patterns: ways to run a block, gathered while blocks are priced, and their exact integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from ortools.sat.python import cp_model

from fleetplan.planner.search.blocks.matrix import FloatArray, IntArray, Program
from fleetplan.planner.search.blocks.relaxation import Relaxation
from fleetplan.planner.search.blocks.split import Block, Split
from fleetplan.planner.search.solvers.cpsat import configured_solver

SAME_PATTERN_DECIMALS = 4
"""Patterns whose scaled values agree to so many decimals are one."""

EXACT_DETERMINISTIC_LIMIT = 1.0
"""Effort to find the whole loads of a pattern; most take a hundredth. [solver units]"""

WHOLE_TOLERANCE = 1e-5
"""How far above a whole number a value may be and still stand for it. [variable units]"""


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

    def price(self, duals: FloatArray) -> float:
        """Its cost at some prices of all linking rows. [objective units]"""
        rows, added = self.entries
        return self.cost - float(duals[rows] @ added)


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
    _of_block: list[list[Pattern]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._of_block = [[] for _ in self.parts.blocks]
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
            self._of_block[block].append(pattern)
        return self._seen[key]

    def replace(self, pattern: Pattern, values: FloatArray) -> None:
        """Take another pattern for one that is not exact, now and whenever it is found again."""
        key = (pattern.block, np.round(pattern.values, SAME_PATTERN_DECIMALS).tobytes())
        # Two masters that chose at once may both have chosen it.
        if self._seen[key] is not pattern:
            return
        self._seen[key] = self.known(pattern.block, values)
        self.patterns.remove(pattern)
        self._of_block[pattern.block].remove(pattern)

    def cheapest(self, block: int, cost: FloatArray) -> FloatArray | None:
        """Values of the cheapest known pattern of a block; None without any.

        Parameters
        ----------
        block : int
            The block.
        cost : FloatArray
            Of its variables. [objective units]
        """
        own = self._of_block[block]
        return min(own, key=lambda pattern: float(cost @ pattern.values)).values if own else None

    def promising(
        self, blocks: Sequence[int], duals: FloatArray, most: int, besides: Iterable[Pattern]
    ) -> list[Pattern]:
        """The cheapest patterns of some blocks, and others.

        Parameters
        ----------
        blocks : Sequence[int]
            The blocks.
        duals : FloatArray
            Prices of all linking rows.
        most : int
            Patterns of a block.
        besides : Iterable[Pattern]
            These are promising, whatever they cost, if they are of the blocks.
        """
        others: dict[int, list[Pattern]] = {block: [] for block in blocks}
        for pattern in besides:
            if pattern.block in others:
                others[pattern.block].append(pattern)
        found: list[Pattern] = []
        for block, own in others.items():
            cheapest = sorted(self._of_block[block], key=lambda each: each.price(duals))[:most]
            # Once each, in an order that is the same in every run.
            found += {id(pattern): pattern for pattern in (*cheapest, *own)}.values()
        return found

    def nearly_mixed(self, duals: FloatArray, more: int, besides: Iterable[Pattern]) -> list[Pattern]:
        """Some patterns, and the others that cost least more than the cheapest of their block.

        Parameters
        ----------
        duals : FloatArray
            Prices of all linking rows in the linear master, where what it mixes is the cheapest.
        more : int
            How many others.
        besides : Iterable[Pattern]
            The patterns.
        """
        found = {id(pattern): pattern for pattern in besides}
        others: list[tuple[float, Pattern]] = []
        for own in self._of_block:
            prices = [pattern.price(duals) for pattern in own]
            least = min(prices, default=0.0)
            others += [
                (price - least, pattern)
                for price, pattern in zip(prices, own, strict=True)
                if id(pattern) not in found
            ]
        others.sort(key=lambda each: each[0])
        return [*found.values(), *(pattern for _, pattern in others[:more])]

    def blocks_without(self) -> list[int]:
        """Blocks that have no pattern yet."""
        return [block for block, own in enumerate(self._of_block) if not own]

    def of(self, blocks: Sequence[int]) -> Iterator[Pattern]:
        """Patterns of some blocks."""
        return (pattern for block in blocks for pattern in self._of_block[block])


class PatternMemory:
    """Patterns of a model's blocks, for the next solve of it with another objective or more linking rows."""

    def __init__(self) -> None:
        self._values: dict[tuple[bytes, bytes], list[FloatArray]] = {}

    def keep(self, pool: PatternPool) -> None:
        """Remember all patterns of a pool instead of what was remembered."""
        self._values = {}
        for pattern in pool.patterns:
            key = _key(pool.parts.blocks[pattern.block])
            self._values.setdefault(key, []).append(pattern.values)

    def recall(self, pool: PatternPool) -> bool:
        """Add what is remembered of its blocks to a pool; True if there is something for each."""
        remembered = [self._values.get(_key(block), ()) for block in pool.parts.blocks]
        for number, own in enumerate(remembered):
            for values in own:
                pool.add(number, values)
        return all(remembered)


def _key(block: Block) -> tuple[bytes, bytes]:
    return block.columns.tobytes(), block.rows.tobytes()


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
        """Whole values of the block's variables, or None where a replica more of each is too few.

        HiGHS keeps rows within a tolerance: one pattern of a thousand lacks a replica.
        """
        if id(pattern) not in self._known:
            self._keep.append(pattern)
            self._known[id(pattern)] = self._find(pattern)
        return self._known[id(pattern)]

    def mended(self, pattern: Pattern) -> FloatArray | None:
        """Scaled values of a pattern that lacks replicas, with them; None if it lacks none."""
        columns = self._parts.blocks[pattern.block].columns
        exact = self.values(pattern)
        if exact is None:
            return None
        scaled: FloatArray = exact / self._relaxation.column_scale[columns]
        whole = self._relaxation.whole[columns]
        return None if np.array_equal(scaled[whole], np.round(pattern.values[whole])) else scaled

    def _find(self, pattern: Pattern) -> IntArray | None:
        program, block = self._parts.program, self._parts.blocks[pattern.block]
        unscaled = pattern.values * self._relaxation.column_scale[block.columns]
        rounded = _rounded(program, block, unscaled)
        if rounded is not None:
            return rounded
        values: IntArray = np.round(unscaled).astype(np.int64)
        exact = self._nearest(block, values, more=0)
        return exact if exact is not None else self._nearest(block, values, more=1)

    def _nearest(self, block: Block, values: IntArray, more: int) -> IntArray | None:
        """The values of a block that are nearest to some, whole variables the same or up to so many more.

        Near rather than cheap: other blocks rely on what a pattern adds to the rows they share.
        """
        program, columns = self._parts.program, block.columns
        whole, highest = self._relaxation.whole[columns], program.upper[columns]
        lower = np.where(whole, values, program.lower[columns])
        upper = np.where(whole, np.minimum(values + more, highest), highest)
        model, variables = block_model(program, block, lower, upper)
        apart = []
        for variable, value, far in zip(variables, values.tolist(), (upper - lower).tolist(), strict=True):
            model.add_hint(variable, value)
            if far:
                distance = model.new_int_var(0, far, "")
                model.add(distance >= variable - value)
                model.add(distance >= value - variable)
                apart.append(distance)
        model.minimize(sum(apart))
        solver = configured_solver(60.0, seed=1, workers=1)
        solver.parameters.max_deterministic_time = EXACT_DETERMINISTIC_LIMIT
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return np.array([solver.value(variable) for variable in variables], dtype=np.int64)


def _rounded(program: Program, block: Block, values: FloatArray) -> IntArray | None:
    """Values rounded to the nearest, or all up, where that keeps the block's rows: four of five patterns."""
    rows: sp.csr_array = program.rows[block.rows][:, block.columns]
    lower, upper = program.row_lower[block.rows], program.row_upper[block.rows]
    highest = program.upper[block.columns]
    for tried in (np.round(values), np.minimum(np.ceil(values - WHOLE_TOLERANCE), highest)):
        whole: IntArray = tried.astype(np.int64)
        used = rows @ whole
        if (used >= lower).all() and (used <= upper).all():
            return whole
    return None


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
