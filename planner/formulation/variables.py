"""Decisions of a plan as CP-SAT variables by key, and their labels in solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.registry import KeyPart, decided
from fleetplan.planner.problem import Cell, Problem
from fleetplan.planner.problem.kv_pairs import KvPairs

ReplicaKey = tuple[int, int, int]
"""(candidate index, pool index, moment index)"""

LineKey = tuple[int, int, int, int]
"""(candidate index, pool index, moment index, line index)"""

LoadKey = tuple[int, int, int, int]
"""(candidate index, class index, pool index, cell index); the cell gives moment and origin"""

AcquireKey = tuple[int, int, int]
"""(pool index, acquisition index, period index: of the order for a purchase, of the use for rent)"""

CellClassKey = tuple[int, int]
"""(cell index, class index)"""

PairKey = tuple[int, int, int]
"""(cell index, class index, index of the pair of groups that a request passes between)"""


_C, _P, _M, _I, _S = KeyPart.CANDIDATE, KeyPart.POOL, KeyPart.MOMENT, KeyPart.CELL, KeyPart.SERVICE
_R, _X = KeyPart.REGION, KeyPart.OTHER

Value = TypeVar("Value")
"""Variable of the model, or its value in a solution."""


@dataclass(frozen=True, slots=True)
class Decisions(Generic[Value]):
    """All decisions by group; a new group is one field with the parts of its keys.

    Attributes
    ----------
    replicas : dict[ReplicaKey, Value]
        Replicas of a candidate in a pool and moment.
    load : dict[LoadKey, Value]
        Load of a class of a cell on these replicas. [load units]
    disaggregated : dict[PairKey, Value]
        Rate served by a pair of groups of prefill and decode replicas. [rate units]
    unmet : dict[CellClassKey, Value]
        Unmet rate; absent if the policy forbids it. [rate units]
    worked : dict[CellClassKey, Value]
        Rate at which a moment serves an offline service. [rate units]
    put_off : dict[tuple[int, int, int], Value]
        Work by (cell where it arises, cell where it is done, class). [rate units x hour weights]
    switched : dict[ReplicaKey, Value]
        Replicas that did not run in the slice before, if changes within a day count.
    acquired : dict[AcquireKey, Value]
        Units ordered for purchase in a period, or rented for it.
    in_use : dict[tuple[int, int], Value]
        Whether a pool with a reserve runs any replica in a moment.
    hosts_in_use : dict[tuple[int, int], Value]
        Units of a pool and moment that replicas may fill, if its reserve is a percentage of them.
    configuration : dict[tuple[int, str, int], Value]
        Whether a candidate runs in a region and moment, if the policy limits their number.
    packed : dict[tuple[int, int, tuple[int, ...]], Value]
        Units of a pool and moment divided by a packing pattern.
    started : dict[ReplicaKey, Value]
        Replicas that did not run in the period before, if changes count.
    surviving, surviving_load, surviving_separate : dict
        After the loss of a region: replicas by (lost region, candidate, pool, moment), their loads by class,
        and the rates of separate phases by (lost region, service, class, pair, moment).
    surviving_pooled, surviving_pooled_replicas : dict
        `pooled` and `pooled_replicas` after the loss of a region.
    retired : dict[tuple[int, int], Value]
        Existing units that leave a pool at the start of a period.
    pooled, pooled_replicas : dict[LineKey, Value]
        Whether a line applies to a set of replicas, and to how many, under latency limits.
    lots : dict[AcquireKey, Value]
        Lots of an offer whose units come in lots.
    regret : dict[str, Value]
        Largest extra cost of any demand scenario, as `largest`, if regret is minimised. [objective units]
    """

    replicas: dict[ReplicaKey, Value] = decided(_C, _P, _M, kept=True)
    load: dict[LoadKey, Value] = decided(_C, _X, _P, _I, continuous=True, kept=True)
    disaggregated: dict[PairKey, Value] = decided(_I, _X, _X, continuous=True, kept=True)
    unmet: dict[CellClassKey, Value] = decided(_I, _X, continuous=True, kept=True)
    worked: dict[CellClassKey, Value] = decided(_I, _X, continuous=True)
    put_off: dict[tuple[int, int, int], Value] = decided(_I, _I, _X, continuous=True, kept=True)
    switched: dict[ReplicaKey, Value] = decided(_C, _P, _M)
    acquired: dict[AcquireKey, Value] = decided(_P, _X, _X, kept=True, growth=1)
    in_use: dict[tuple[int, int], Value] = decided(_P, _M)
    hosts_in_use: dict[tuple[int, int], Value] = decided(_P, _M)
    configuration: dict[tuple[int, str, int], Value] = decided(_C, _R, _M)
    packed: dict[tuple[int, int, tuple[int, ...]], Value] = decided(_P, _M, _X, kept=True)
    started: dict[ReplicaKey, Value] = decided(_C, _P, _M)
    surviving: dict[tuple[str, int, int, int], Value] = decided(_X, _C, _P, _M)
    surviving_load: dict[tuple[str, int, int, int, int], Value] = decided(
        _X, _C, _X, _P, _M, continuous=True, kept=True
    )
    surviving_separate: dict[tuple[str, str, int, int, int], Value] = decided(
        _X, _S, _X, _X, _M, continuous=True, kept=True
    )
    surviving_pooled: dict[tuple[str, int, int, int, int], Value] = decided(_X, _C, _P, _M, _X)
    surviving_pooled_replicas: dict[tuple[str, int, int, int, int], Value] = decided(_X, _C, _P, _M, _X)
    retired: dict[tuple[int, int], Value] = decided(_P, _X, kept=True, growth=-1)
    pooled: dict[LineKey, Value] = decided(_C, _P, _M, _X)
    pooled_replicas: dict[LineKey, Value] = decided(_C, _P, _M, _X)
    lots: dict[AcquireKey, Value] = decided(_P, _X, _X, growth=1)
    regret: dict[str, Value] = decided(_X, continuous=True)


@dataclass(frozen=True, slots=True)
class Variables(Decisions[cp_model.IntVar]):
    """All variables of one model.

    Attributes
    ----------
    kv_pairs : dict[CellClassKey, KvPairs]
        Pairs of prefill and decode replicas that may hand over requests.
    """

    kv_pairs: dict[CellClassKey, KvPairs] = field(default_factory=dict)


def replica_label(problem: Problem, key: ReplicaKey) -> str:
    """Return the solver label of a set of replicas."""
    c, p, m = key
    return f"{problem.candidates[c].label},{problem.pools[p].name},{problem.moments[m].label}"


def with_label(label: str, more: str) -> str:
    """Return a label, extended by another part if it is not empty."""
    return f"{label},{more}" if more else label


def cell_label(problem: Problem, cell: Cell, class_index: int) -> str:
    """Return the solver label of a cell and class."""
    request_class = problem.services[cell.service].classes[class_index].name
    return f"{cell.service},{request_class},{cell.region},{problem.moments[cell.moment].label}"
