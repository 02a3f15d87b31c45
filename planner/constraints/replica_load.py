r"""Family 2, replica load: the loads of all classes on a set of replicas add up to at most their number.

For each candidate c, pool p and moment m, with S load units a replica and cells i of that moment::

    sum_{k,i} w[c,k,p,i] <= S n[c,p,m]                                    replica_load[...]

Where latencies are limited under load a pool carries less than its replicas do: requests that come together
wait, in a small pool longer than in a large one. The load of a pool as a function of its replicas lies above
each of a few lines, slope a and loss b in replicas, from pools of L replicas on. One of them is chosen, with
h telling which and g counting the replicas that stand by it::

    sum_{k,i} w[c,k,p,i] <= sum_j (floor(S a[c,j]) g[c,p,m,j] - ceil(S b[c,j]) h[c,p,m,j])
                                                                          replica_load[...]
    L[c,j] h[c,p,m,j] <= g[c,p,m,j] <= U h[c,p,m,j]                       pooled[...]
    sum_j h[c,p,m,j] <= 1                                                 one_line[...]
    sum_j g[c,p,m,j] <= n[c,p,m]                                          pooled_replicas[...]

A class that takes mu[c,k] requests/s alone uses 1/mu of a replica for each request/s: replicas are
shared by classes, which is what lets small requests run on small accelerators.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA, line_units
from fleetplan.planner.variables import ReplicaKey, Variables, replica_label


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every set of replicas."""
    loads: dict[ReplicaKey, list[cp_model.IntVar]] = defaultdict(list)
    for (c, _, p, cell), load in variables.load.items():
        loads[c, p, problem.cells[cell].moment].append(load)
    for key, replicas in variables.replicas.items():
        label = replica_label(problem, key)
        carried = LOAD_UNITS_PER_REPLICA * replicas
        if problem.candidates[key[0]].pooling:
            carried = _carried_by_lines(model, problem, variables, key)
        model.add(sum(loads[key]) <= carried).with_name(f"replica_load[{label}]")


def _carried_by_lines(
    model: cp_model.CpModel, problem: Problem, variables: Variables, key: ReplicaKey
) -> cp_model.LinearExpr:
    """What a set of replicas carries by the line that is chosen, with the rows of that choice."""
    replicas, label = variables.replicas[key], replica_label(problem, key)
    most = replicas.proto.domain[1]
    carried: list[cp_model.LinearExpr] = []
    chosen: list[cp_model.IntVar] = []
    pooled: list[cp_model.IntVar] = []
    for j, line in enumerate(problem.candidates[key[0]].pooling):
        by_line, count = variables.pooled[(*key, j)], variables.pooled_replicas[(*key, j)]
        slope, loss = line_units(line)
        carried.append(slope * count - loss * by_line)
        model.add(count <= most * by_line).with_name(f"pooled[{label},{j},most]")
        model.add(count >= line.least * by_line).with_name(f"pooled[{label},{j},least]")
        chosen.append(by_line)
        pooled.append(count)
    model.add(sum(chosen) <= 1).with_name(f"one_line[{label}]")
    model.add(sum(pooled) <= replicas).with_name(f"pooled_replicas[{label}]")
    return cp_model.LinearExpr.sum(carried)
