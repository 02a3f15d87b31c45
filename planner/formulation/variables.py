"""The decisions of a plan as CP-SAT variables, by their keys, and the labels that solvers name them by."""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Cell, Problem
from fleetplan.planner.problem.kv_pairs import Handovers

ReplicaKey = tuple[int, int, int]
"""(candidate index, pool index, moment index)"""

LineKey = tuple[int, int, int, int]
"""(candidate index, pool index, moment index, line index)"""

LoadKey = tuple[int, int, int, int]
"""(candidate index, class index, pool index, cell index); the cell has the moment and the origin"""

AcquireKey = tuple[int, int, int]
"""(pool index, acquisition index, period index: of the order for a purchase, of the use for rent)"""

CellClassKey = tuple[int, int]
"""(cell index, class index)"""

PairKey = tuple[int, int, int]
"""(cell index, class index, index of the pair of groups that a request passes between)"""


@dataclass(slots=True)
class Variables:
    """All variables of one model, by what they decide.

    Attributes
    ----------
    replicas : dict[ReplicaKey, IntVar]
        Replicas of a candidate in a pool and moment.
    load : dict[LoadKey, IntVar]
        Load that a class of a cell puts on these replicas. [load units]
    handovers : dict[CellClassKey, Handovers]
        Which prefill replicas may hand over to which decode replicas.
    disaggregated : dict[PairKey, IntVar]
        Rate served by a pair of groups of prefill and decode replicas. [rate units]
    unmet : dict[CellClassKey, IntVar]
        Rate left unserved; absent where the policy forbids it. [rate units]
    worked : dict[CellClassKey, IntVar]
        Rate at which a moment serves an offline service. [rate units]
    put_off : dict[tuple[int, int, int], IntVar]
        Work by (cell in which it arises, cell in which it is done, class). [rate units x hour weights]
    acquired : dict[AcquireKey, IntVar]
        Units ordered for purchase in a period, or rented for it.
    in_use : dict[tuple[int, int], IntVar]
        Whether a pool with a reserve runs anything in a moment.
    configuration : dict[tuple[int, str, int], IntVar]
        Whether a candidate runs in a region and moment, where the policy limits their number.
    packed : dict[tuple[int, int, tuple[int, ...]], IntVar]
        Units of a pool and moment that are divided by a packing pattern.
    started : dict[ReplicaKey, IntVar]
        Replicas that did not run in the period before; where changes count.
    switched : dict[ReplicaKey, IntVar]
        Replicas that did not run in the slice before; where changes within a day count.
    surviving, surviving_load, surviving_separate : dict
        Replicas by (lost region, candidate, pool, moment) after the loss of a region, their loads by class,
        and the rates by (lost region, service, class, pair, moment) that separate phases serve then.
    surviving_pooled, surviving_pooled_replicas : dict
        What `pooled` and `pooled_replicas` are, after the loss of a region.
    retired : dict[tuple[int, int], IntVar]
        Existing units that leave a pool at the start of a period.
    pooled, pooled_replicas : dict[LineKey, IntVar]
        Whether a set of replicas carries what one of its lines says, and how many replicas then do; where
        latencies are limited under load.
    lots : dict[AcquireKey, IntVar]
        Lots of an offer whose units come together.
    regret : dict[str, IntVar]
        The largest extra cost of any demand scenario, as `largest`; where it is minimised. [objective units]
    """

    replicas: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    load: dict[LoadKey, cp_model.IntVar] = field(default_factory=dict)
    handovers: dict[CellClassKey, Handovers] = field(default_factory=dict)
    disaggregated: dict[PairKey, cp_model.IntVar] = field(default_factory=dict)
    unmet: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    worked: dict[CellClassKey, cp_model.IntVar] = field(default_factory=dict)
    put_off: dict[tuple[int, int, int], cp_model.IntVar] = field(default_factory=dict)
    acquired: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)
    in_use: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    configuration: dict[tuple[int, str, int], cp_model.IntVar] = field(default_factory=dict)
    packed: dict[tuple[int, int, tuple[int, ...]], cp_model.IntVar] = field(default_factory=dict)
    started: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    switched: dict[ReplicaKey, cp_model.IntVar] = field(default_factory=dict)
    surviving: dict[tuple[str, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_load: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_separate: dict[tuple[str, str, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_pooled: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(default_factory=dict)
    surviving_pooled_replicas: dict[tuple[str, int, int, int, int], cp_model.IntVar] = field(
        default_factory=dict
    )
    retired: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    pooled: dict[LineKey, cp_model.IntVar] = field(default_factory=dict)
    pooled_replicas: dict[LineKey, cp_model.IntVar] = field(default_factory=dict)
    lots: dict[AcquireKey, cp_model.IntVar] = field(default_factory=dict)
    regret: dict[str, cp_model.IntVar] = field(default_factory=dict)


def replica_label(problem: Problem, key: ReplicaKey) -> str:
    """Label of a set of replicas in solver names."""
    c, p, m = key
    return f"{problem.candidates[c].label},{problem.pools[p].name},{problem.moments[m].label}"


def with_label(label: str, more: str) -> str:
    """A label with one more part, where there is one."""
    return f"{label},{more}" if more else label


def cell_label(problem: Problem, cell: Cell, class_index: int) -> str:
    """Label of a demand cell and class in solver names."""
    request_class = problem.services[cell.service].classes[class_index].name
    return f"{cell.service},{request_class},{cell.region},{problem.moments[cell.moment].label}"
