"""What one of a set of replicas carries at most, from the lines of its candidate and what it may serve.

Lines say what a pool carries where latencies are limited under load: a large one more a replica than a small
one. A linear relaxation takes a part of the largest pool for a small one, and chooses what to run and to buy
by that. Years of three teams with limits on percentiles had gaps of 7.8 to 24 % after 60 s, and 2.4 to 10 %
once it knew how large a pool the demand asks for (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.scaling import line_units


def most_a_replica(lines: Sequence[CapacityLine], asked: int, most: int, parts: int = 1) -> int:
    """Load that a replica carries at most, whatever the size of its pool, rounded up. [parts of load units]

    A pool that carries all that is asked for carries no more, so the most is reached there or one replica
    before.

    Parameters
    ----------
    lines : Sequence[CapacityLine]
        Of its candidate.
    asked : int
        Load of all that the pool may serve. [parts of load units]
    most : int
        Replicas of the largest pool.
    parts : int
        Parts of a load unit.
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
