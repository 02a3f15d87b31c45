r"""Integer supply: a lower bound that accounts for whole hosts and lots, unlike the Lagrangian bound.

The Lagrangian bound, at prices y of all linking rows, lets hosts and lots be bought in fractions; in fleets
of few hosts this separates it from the best plan. Here, prices vary for rows that join blocks with whole
variables of the master (capacity, power: the *local* rows). Those of all other rows with blocks (changes
between quarters) stay. Blocks joined by local rows form a *group*, such as what runs in one region and
quarter. For any prices y of a group's local rows and any values x of the master's variables, its blocks cost
at least::

    theta_g >= sum_{B in g} bound_B(c - A' y) + y (b - A_M x)

A program in x alone, with its integrality and one such cut per group and round, is a lower bound on every
plan. Its best x is the supply at which the next prices are computed, by the linear program over the known
columns. This is Benders decomposition of the supply, with Lagrangian relaxations of the blocks as
subproblems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.bound import Lagrangian, Priced
from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.master import Master
from fleetplan.planner.search.blocks.split import Split, components
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job, Rows
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY

LEAST_GROUPS: Final = 2
"""A single group gives one cut per round: too little for many variables."""

OWN_WEIGHT: Final = 0.8
"""Weight of the linear program's prices in the next ones; the rest comes from the best Lagrangian bound."""

LEAST_GAIN: Final = 2e-5
"""Rounds end after two in a row with a smaller gain. [share of the bound]"""

LEAST_ROUNDS: Final = 6
"""Least number of rounds: the first ones only learn what other supplies would cost."""

LEAST_STAKE: Final = 0.25
"""Least cost of fractional supply, as a share of the open cost, for which rounds pay off: not in fleets of
hundreds of replicas."""

BEST_SUPPLY_WEIGHT: Final = 0.6
"""Weight of the best supply in the supply at which prices are computed; the rest is a mean of earlier ones.
The best supply alone jumps, and its cuts say little about any other."""

MEMORY: Final = 0.5
"""Weight of the earlier mean in the next mean."""

PENALTY_RATIO: Final = 3.0
"""Largest price, as a multiple of the largest price of the best Lagrangian bound."""


@dataclass(frozen=True, slots=True, eq=False)
class _CostCuts:
    """`theta + coefficients @ x >= constants`, one row per group.

    A group touches few of the master's variables: all coefficients of hundreds of groups, round by round,
    would take gigabytes.
    """

    constants: FloatArray
    coefficients: sp.csr_array


class IntegerSupply:
    """Cuts on the cost of blocks as a function of the master's variables.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    master : Master
        Its variables, rows and costs.
    lagrangian : Lagrangian
        Prices linking rows into the objective.
    best : Priced
        Prices of the best Lagrangian bound; those of non-local rows stay.
    supply : FloatArray
        Scaled values of the master's variables in the master LP, as the first supply.

    Attributes
    ----------
    centre : FloatArray
        Prices of the best Lagrangian bound.
    """

    def __init__(
        self, parts: Split, master: Master, lagrangian: Lagrangian, best: Priced, supply: FloatArray
    ) -> None:
        self._parts = parts
        self._master = master
        self._lagrangian = lagrangian
        self.centre = best.duals
        self._mean = supply
        fractions = np.abs(supply - np.round(supply))[master.whole]
        # Approximate potential gain: the cost of fractional supply.
        self._at_stake = float(np.abs(master.cost[master.whole]) @ fractions)
        self._gains = [math.inf]
        by_block = _blocks_by_row(parts)
        with_blocks = np.diff(by_block.indptr) > 0
        whole = np.diff(master.rows[:, np.flatnonzero(master.whole)].tocsr().indptr) > 0
        self._local: BoolArray = with_blocks & whole
        self._fixed: BoolArray = with_blocks & ~whole
        self._own = np.flatnonzero(~with_blocks)
        self._group_of_row, self._group_of_block = _groups(by_block, self._local)
        self._n_groups = int(self._group_of_block.max(initial=-1)) + 1
        self._cuts: list[_CostCuts] = []
        local = np.flatnonzero(self._local)
        self._rows_of_groups = sp.csr_array(
            (np.ones(len(local)), (self._group_of_row[local], local)),
            shape=(self._n_groups, len(self._local)),
        )
        self._fixed_duals = np.where(self._fixed, self.centre, 0.0)
        self._constant = float(self._fixed_duals @ self._limits(self._fixed_duals))

    def pays(self, open_cost: float) -> bool:
        """Return whether another round is likely to pay off.

        Parameters
        ----------
        open_cost : float
            Difference of plan and bound. [objective units]
        """
        learning = len(self._gains) <= LEAST_ROUNDS
        gains = learning or max(self._gains[-2:]) > LEAST_GAIN
        return self._applies() and gains and self._at_stake > LEAST_STAKE * open_cost

    def note_gain(self, ratio: float) -> None:
        """Note the relative gain of a round's bound."""
        self._gains.append(ratio)

    def _applies(self) -> bool:
        """Return whether there is integer supply, in enough groups."""
        return bool(self._local.any()) and self._n_groups >= LEAST_GROUPS

    def cut(self, priced: Priced, block_bounds: FloatArray) -> None:
        """Add a cut from pricing all blocks; prices of non-local rows must be the centre's.

        Parameters
        ----------
        priced : Priced
            Prices.
        block_bounds : FloatArray
            Bound of every block at these prices. [objective units]
        """
        slack = BOUND_SAFETY * np.abs(block_bounds)
        blocks = np.bincount(self._group_of_block, block_bounds - slack, self._n_groups)
        duals = np.where(self._local, priced.duals, 0.0)
        limits = self._rows_of_groups @ (duals * self._limits(duals))
        coefficients = self._rows_of_groups @ (sp.diags_array(duals) @ self._master.rows)
        self._cuts.append(_CostCuts(blocks + limits, coefficients.tocsr()))

    def job(self, effort: Effort) -> Job:
        """Return the program in the master's variables and the cost of every group."""
        master, n_cuts = self._master, self._n_groups * len(self._cuts)
        cost = master.cost - master.rows.T @ self._fixed_duals
        # Unit of group costs that keeps the coefficients of cuts near one.
        unit = self._unit(cost)
        own = master.rows[self._own]
        coefficients = sp.vstack([cuts.coefficients for cuts in self._cuts]) / unit
        of_group = sp.vstack([sp.eye_array(self._n_groups)] * len(self._cuts))
        none = sp.csr_array((own.shape[0], self._n_groups))
        constants = np.concatenate([cuts.constants for cuts in self._cuts]) / unit
        free = np.full(self._n_groups, np.inf)
        rows = Rows(
            rows=sp.vstack([sp.hstack([own, none]), sp.hstack([coefficients, of_group])], format="csr"),
            row_lower=np.concatenate([master.row_lower[self._own], constants]),
            row_upper=np.concatenate([master.row_upper[self._own], np.full(n_cuts, np.inf)]),
            lower=np.concatenate([master.lower, -free]),
            upper=np.concatenate([master.upper, free]),
            whole=np.concatenate([master.whole, np.zeros(self._n_groups, dtype=bool)]),
        )
        return Job(rows, np.concatenate([cost, np.full(self._n_groups, unit)]), effort)

    def bound(self, answer: Answer) -> float:
        """Return the lower bound that the program's answer proves. [objective units]"""
        return answer.bound - BOUND_SAFETY * abs(answer.bound) + self._constant

    def prices_job(self, supply: FloatArray, columns: list[Column]) -> Job:
        """Return the linear program over columns at a supply, whose row duals give the next prices.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of the master's variables.
        columns : list[Column]
            At least one column per block.
        """
        rows, cost = self._master.column_rows(columns)
        n_columns, local = len(columns), np.flatnonzero(self._local)
        near = BEST_SUPPLY_WEIGHT * supply + (1 - BEST_SUPPLY_WEIGHT) * self._mean
        self._mean = MEMORY * self._mean + (1 - MEMORY) * supply
        used = self._master.rows[local] @ near
        n_blocks = len(self._parts.blocks)
        n_rows = len(local) + n_blocks
        kept = np.concatenate([local, len(self._local) + np.arange(n_blocks)])
        slack = sp.eye_array(n_rows, len(local)).tocsr()
        penalty = PENALTY_RATIO * float(np.abs(self.centre).max(initial=1.0))
        n_variables = n_columns + 2 * len(local)
        one = np.ones(n_blocks)
        program = Rows(
            rows=sp.hstack([rows[kept], slack, -slack], format="csr"),
            row_lower=np.concatenate([self._master.row_lower[local] - used, one]),
            row_upper=np.concatenate([self._master.row_upper[local] - used, one]),
            lower=np.zeros(n_variables),
            upper=np.full(n_variables, np.inf),
            whole=np.zeros(n_variables, dtype=bool),
        )
        priced = cost - rows[: len(self._local)].T @ self._fixed_duals
        return Job(program, np.concatenate([priced, np.full(2 * len(local), penalty)]), None)

    def next_prices(self, row_duals: FloatArray) -> FloatArray:
        """Return the prices of all linking rows from the duals of `prices_job`."""
        prices = self.centre.copy()
        own = row_duals[: int(self._local.sum())]
        prices[self._local] = OWN_WEIGHT * own + (1 - OWN_WEIGHT) * prices[self._local]
        return prices

    def _limits(self, duals: FloatArray) -> FloatArray:
        """Return each row's limit to which a price of its sign applies."""
        lower, upper = self._master.row_lower, self._master.row_upper
        return np.where(duals > 0, lower, np.where(duals < 0, upper, 0.0))

    @staticmethod
    def _unit(cost: FloatArray) -> float:
        """Return a hundredth of the largest cost."""
        return max(1.0, float(np.abs(cost).max(initial=0.0)) / 100)


def _blocks_by_row(parts: Split) -> sp.csr_array:
    """Return which blocks have entries in which linking rows."""
    entries = parts.program.rows[parts.linking_rows].tocoo()
    block = parts.block_of[entries.col]
    inside = block >= 0
    found = sp.csr_array(
        (np.ones(int(inside.sum())), (entries.row[inside], block[inside])),
        shape=(len(parts.linking_rows), len(parts.blocks)),
    )
    found.sum_duplicates()
    return found


def _groups(by_block: sp.csr_array, local: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the group of every linking row, -1 for non-local rows, and of every block."""
    joined = by_block[np.flatnonzero(local)]
    n_rows, n_blocks = joined.shape
    entries = joined.tocoo()
    size = n_rows + n_blocks
    graph = sp.coo_array((entries.data, (entries.row, n_rows + entries.col)), shape=(size, size))
    label = components(graph)
    names, group = np.unique(label[n_rows:], return_inverse=True)
    number = {int(name): position for position, name in enumerate(names)}
    of_row = np.full(len(local), -1, dtype=np.int64)
    # A local row has an entry in some block, so its label is a block's.
    of_row[local] = [number[int(name)] for name in label[:n_rows]]
    return of_row, group.astype(np.int64) if n_blocks else np.zeros(0, dtype=np.int64)
