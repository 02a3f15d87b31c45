r"""A bound that knows that supply is whole, which the Lagrangian bound does not.

Prices y of all linking rows give the Lagrangian bound. It lets hosts and lots be bought in fractions, and in
fleets of few hosts that is what keeps it from the best plan. Here the prices of rows that hold whole
variables of the master beside blocks (capacity, power: the *local* rows) vary while those of all other rows
with blocks (changes between quarters) stay. Blocks that local rows join are a *group*, such as what runs in
one region and quarter. For any prices y of the local rows of a group g, whatever the master's variables x
are, its blocks cost no less than::

    theta_g >= sum_{B in g} bound_B(c - A' y) + y (b - A_M x)

A program in x alone, whole where it is whole, with one such cut a group and round, is a lower bound on every
plan. Its best x says at which supply the next prices are to be found: those of the linear program over the
columns known so far. This is Benders' decomposition of the supply, with blocks as their Lagrangian.
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
"""One group has one cut a round, which says too little about many variables."""

OWN_WEIGHT: Final = 0.8
"""Share of the linear program's prices in the next ones; the rest are those of the best Lagrangian bound."""

LEAST_GAIN: Final = 2e-5
"""Rounds end when two in a row raised the bound by less. [bound]"""

LEAST_ROUNDS: Final = 6
"""They go on for so long in any case: the first ones only learn what other supplies would cost."""

LEAST_STAKE: Final = 0.25
"""They are worth their time where fractions of supply cost at least this share of what plan and bound differ
by: not in fleets of hundreds of replicas."""

BEST_SUPPLY_WEIGHT: Final = 0.6
"""Share of the best supply in the one that prices are found at; the rest is the mean of those before. At the
best one alone, which changes in leaps, cuts say little about any other."""

MEMORY: Final = 0.5
"""Share of the mean so far in the next mean."""

PENALTY_RATIO: Final = 3.0
"""Most that a price may be, over the largest price of the best Lagrangian bound."""


@dataclass(frozen=True, slots=True, eq=False)
class _CostCuts:
    """`theta + coefficients @ x >= constants`, a row for each group.

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
        Its variables, rows and cost.
    lagrangian : Lagrangian
        Prices blocks.
    best : Priced
        Prices of the best Lagrangian bound; those of rows that are not local stay.
    supply : FloatArray
        Scaled values of the master's variables to begin near, of the master LP.

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
        # About what there is to gain: the cost of the fractions of supply.
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
        """Whether another round is worth its time.

        Parameters
        ----------
        open_cost : float
            What plan and bound differ by. [objective units]
        """
        learning = len(self._gains) <= LEAST_ROUNDS
        gains = learning or max(self._gains[-2:]) > LEAST_GAIN
        return self._applies() and gains and self._at_stake > LEAST_STAKE * open_cost

    def note_gain(self, ratio: float) -> None:
        """Note by what share of it a round has raised the bound."""
        self._gains.append(ratio)

    def _applies(self) -> bool:
        """Whether there is any integer supply, in groups that are small enough to tell apart."""
        return bool(self._local.any()) and self._n_groups >= LEAST_GROUPS

    def cut(self, priced: Priced, block_bounds: FloatArray) -> None:
        """Note what pricing all blocks has shown; prices of rows that are not local must be the centre's.

        Parameters
        ----------
        priced : Priced
            The prices.
        block_bounds : FloatArray
            Of every block at these prices. [objective units]
        """
        slack = BOUND_SAFETY * np.abs(block_bounds)
        blocks = np.bincount(self._group_of_block, block_bounds - slack, self._n_groups)
        duals = np.where(self._local, priced.duals, 0.0)
        limits = self._rows_of_groups @ (duals * self._limits(duals))
        coefficients = self._rows_of_groups @ (sp.diags_array(duals) @ self._master.rows)
        self._cuts.append(_CostCuts(blocks + limits, coefficients.tocsr()))

    def job(self, effort: Effort) -> Job:
        """The program in the master's variables and the cost of every group."""
        master, n_cuts = self._master, self._n_groups * len(self._cuts)
        cost = master.cost - master.rows.T @ self._fixed_duals
        # Costs of groups in a unit that keeps the coefficients of cuts near one.
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
        """The lower bound that the program's answer proves. [objective units]"""
        return answer.bound - BOUND_SAFETY * abs(answer.bound) + self._constant

    def prices_job(self, supply: FloatArray, columns: list[Column]) -> Job:
        """The linear program over columns at a supply, whose row duals lead to the next prices.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of the master's variables.
        columns : list[Column]
            At least one of every block.
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
        """Prices of all linking rows from the duals of `prices_job`."""
        prices = self.centre.copy()
        own = row_duals[: int(self._local.sum())]
        prices[self._local] = OWN_WEIGHT * own + (1 - OWN_WEIGHT) * prices[self._local]
        return prices

    def _limits(self, duals: FloatArray) -> FloatArray:
        """The limit of each row that a price of its sign is paid on."""
        lower, upper = self._master.row_lower, self._master.row_upper
        return np.where(duals > 0, lower, np.where(duals < 0, upper, 0.0))

    @staticmethod
    def _unit(cost: FloatArray) -> float:
        """A hundredth of the largest cost."""
        return max(1.0, float(np.abs(cost).max(initial=0.0)) / 100)


def _blocks_by_row(parts: Split) -> sp.csr_array:
    """Which blocks have entries in which linking rows."""
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
    """Group of every linking row, -1 where it is not local, and of every block."""
    joined = by_block[np.flatnonzero(local)]
    n_rows, n_blocks = joined.shape
    entries = joined.tocoo()
    size = n_rows + n_blocks
    graph = sp.coo_array((entries.data, (entries.row, n_rows + entries.col)), shape=(size, size))
    label = components(graph)
    names, group = np.unique(label[n_rows:], return_inverse=True)
    number = {int(name): position for position, name in enumerate(names)}
    of_row = np.full(len(local), -1, dtype=np.int64)
    # A local row has an entry in some block, so its name is a block's.
    of_row[local] = [number[int(name)] for name in label[:n_rows]]
    return of_row, group.astype(np.int64) if n_blocks else np.zeros(0, dtype=np.int64)
