"""Largest load per replica, given the candidate's lines and the demand.

Lines state what a pool carries under latency limits: a large pool carries more per replica than a small one.
A linear relaxation uses part of the largest pool in place of a small one, and decides replicas and purchases
by that. Limiting the pool to the size that demand requires reduces the gaps of three teams' years with
percentile limits from 7.8 to 24 % to 2.4 to 10 % after 60 s (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.scaling import line_units


def most_a_replica(lines: Sequence[CapacityLine], asked: int, most: int, parts: int = 1) -> int:
    """Return the largest load per replica for any pool size, rounded up. [parts of load units]

    A pool that carries all demand carries no more when larger, so the maximum is there or one replica before.

    Parameters
    ----------
    lines : Sequence[CapacityLine]
        Lines of the candidate.
    asked : int
        Demand that the pool may serve. [parts of load units]
    most : int
        Replicas of the largest pool.
    parts : int
        Parts per load unit.
    """
    found = 0
    for line in lines:
        slope, loss = line_units(line, parts)
        if slope == 0:
            continue
        enough = max(line.least, -(-(asked + loss) // slope))
        for size in (min(enough, most), enough - 1):
            if line.least <= size <= most:
                found = max(found, -(-min(slope * size - loss, asked) // size))
    return found
