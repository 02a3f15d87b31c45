"""Program that searches with jobs on a cluster; it prints each step and the result."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

from tests.planner.random_fleets import large_case

from fleetplan.planner.jobs import connected
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search import Progress, SearchLimits, Stop, search
from fleetplan.planner.search.blocks import solve as block_solve


def main(backend: str, limits: SearchLimits, size: tuple[int, int, int, int], wait_for: int) -> None:
    """Search over blocks when the cluster has enough threads; SIGTERM stops the search."""
    block_solve.LEAST_VARIABLES, block_solve.LEAST_BLOCKS, block_solve.LARGEST_BLOCK_SHARE = 0, 1, 1.0
    case = large_case(*size)
    problem = build_problem(case.fleet, case.candidates)
    stop = Stop()
    signal.signal(signal.SIGTERM, lambda *_: stop.request())

    def tell(progress: Progress) -> None:
        print("step", progress.source, progress.objective_usd, flush=True)

    with connected(backend, 1) as cluster:
        while cluster is not None and len(cluster.threads) < wait_for:
            time.sleep(0.02)
        result = search(problem, replace(limits, cluster=cluster), tell, stop)
        print("found", result.objective_usd, result.bound_usd, result.solution is not None, flush=True)
        print("lost", "" if cluster is None else cluster.lost, flush=True)
