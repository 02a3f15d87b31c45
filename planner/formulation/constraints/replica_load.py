r"""Family 2, replica load: the loads of all classes on a set of replicas add up to at most their number.

For each candidate c, pool p and moment m, with S load units per replica and cells i of that moment::

    sum_{k,i} w[c,k,p,i] <= S n[c,p,m]                                    replica_load[...]

Under latency limits a pool carries less than its replicas alone: requests that arrive together wait, longer
in a small pool than in a large one. The load of a pool, as a function of its replicas, lies above each of a
few lines l with a slope and a loss in replicas, for pools of at least `least` replicas. pooled indicates the
chosen line, and pooled_replicas counts the replicas to which it applies::

    sum_{k,i} w[c,k,p,i] <= sum_l (floor(S slope[c,l]) pooled_replicas[l] - ceil(S loss[c,l]) pooled[l])
                                                                          replica_load[...]
    least[c,l] pooled[l] <= pooled_replicas[l] <= U pooled[l]             pooled[...]
    sum_l pooled[l] <= 1                                                  one_line[...]
    sum_l pooled_replicas[l] <= n[c,p,m]                                  pooled_replicas[...]
    sum_{k,i} w[c,k,p,i] <= most[c,p,m] n[c,p,m]                          replica_share[...]

The last row follows from the others for whole replicas, with `most` the largest load per replica in any pool
no larger than demand requires. A linear relaxation would use part of a large pool in place of a small one.

A class with a rate of mu[c,k] requests/s uses 1/mu of a replica per request/s: classes share replicas, which
lets small requests run on small accelerators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ortools.sat.python import cp_model

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.pool_lines import most_a_replica
from fleetplan.planner.formulation.scaling import line_units
from fleetplan.planner.formulation.variables import ReplicaKey, Variables, replica_label
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import load_parts
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

FAMILY = 2

LineVariables = Sequence[tuple[cp_model.IntVar, cp_model.IntVar]]
"""For each line: whether it is chosen, and the replicas to which it applies."""


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows of every set of replicas."""
    loads: dict[ReplicaKey, list[tuple[int, cp_model.IntVar]]] = defaultdict(list)
    parts = load_parts(problem)
    for (c, k, p, cell), load in variables.load.items():
        in_parts = max(parts[c]) // parts[c][k]
        loads[c, p, problem.cells[cell].moment].append((in_parts, load))
    for key, replicas in variables.replicas.items():
        label = replica_label(problem, key)
        lines = problem.candidates[key[0]].pooling
        chosen = [
            (variables.pooled[(*key, j)], variables.pooled_replicas[(*key, j)]) for j in range(len(lines))
        ]
        finest = max(parts[key[0]])
        carried = carried_load(model, lines, replicas, chosen, label, parts=finest)
        total = sum(size * load for size, load in loads[key])
        model.add(total <= carried).with_name(f"replica_load[{label}]")
        if lines and loads[key]:
            share = share_of_replicas(lines, replicas, loads[key], finest)
            model.add(total <= share).with_name(f"replica_share[{label}]")


def share_of_replicas(
    lines: Sequence[CapacityLine],
    replicas: cp_model.IntVar,
    loads: Sequence[tuple[int, cp_model.IntVar]],
    parts: int = 1,
) -> cp_model.LinearExpr:
    """Return the largest load of a set of replicas, whatever line is chosen. [parts of load units]

    Parameters
    ----------
    lines : Sequence[CapacityLine]
        Lines of a pool under latency limits.
    replicas : IntVar
        Number of replicas.
    loads : Sequence[tuple[int, IntVar]]
        Loads on them, each with its unit in parts of load units.
    parts : int
        Parts per load unit.
    """
    asked = sum(size * load.proto.domain[1] for size, load in loads)
    return most_a_replica(lines, asked, replicas.proto.domain[1], parts) * replicas


def carried_load(
    model: cp_model.CpModel,
    lines: Sequence[CapacityLine],
    replicas: cp_model.IntVar,
    chosen: LineVariables,
    label: str,
    prefix: str = "",
    parts: int = 1,
) -> cp_model.LinearExpr:
    """Return the load that replicas carry, by the chosen line if there are any. [parts of load units]

    Parameters
    ----------
    model : CpModel
        Receives the rows of the choice.
    lines : Sequence[CapacityLine]
        Lines of a pool under latency limits; empty without limits.
    replicas : IntVar
        Number of replicas.
    chosen : LineVariables
        Choice of a line, one pair per line.
    label, prefix : str
        Label of the rows, and prefix of their names.
    parts : int
        Parts per load unit.
    """
    if not lines:
        return LOAD_UNITS_PER_REPLICA * parts * replicas
    most = replicas.proto.domain[1]
    carried: list[cp_model.LinearExpr] = []
    for j, (line, (by_line, count)) in enumerate(zip(lines, chosen, strict=True)):
        slope, loss = line_units(line, parts)
        carried.append(slope * count - loss * by_line)
        model.add(count <= most * by_line).with_name(f"{prefix}pooled[{label},{j},most]")
        model.add(count >= line.least * by_line).with_name(f"{prefix}pooled[{label},{j},least]")
    by_lines, counts = zip(*chosen, strict=True)
    model.add(sum(by_lines) <= 1).with_name(f"{prefix}one_line[{label}]")
    model.add(sum(counts) <= replicas).with_name(f"{prefix}pooled_replicas[{label}]")
    return cp_model.LinearExpr.sum(carried)
