"""Latency under load: closed forms against the simulator, both against published rows, and its speed.

    python benchmarks/queueing.py [--measurements FILE.csv] [--quick] [--seed 1]

Exits with 1 where a bar is missed. Without `--measurements` the published rows are those that
aiconfigurator-core carries, and what is compared with them is the answer of `plan predict`.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
from benchmarks.queueing_bars import (
    AMPLE_KV,
    QueueingBar,
    capacity_cells,
    closed_bars,
    drawn,
    engine_tables,
    open_bars,
    pool_bars,
    simulated_closed,
)
from benchmarks.queueing_measured import MeasuredRow, measured_rows

from fleetplan.perfmodel.queueing.pool import Variability, waiting
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.replay.pools import run_engines
from fleetplan.perfmodel.serving import renewal_times_ms

SPEED_BAR: Final = 150_000
"""Simulated requests of continuous batching a CPU second."""

SLACK_BAR: Final = 0.05
"""Mean utilisation that the capacity function gives away."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, help="a file of published measurements")
    parser.add_argument("--quick", action="store_true", help="fewer cells, shorter simulations")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    bars = [
        _textbook(),
        *pool_bars(options.seed, options.quick),
        *open_bars(options.seed, options.quick),
        *closed_bars(options.seed, options.quick),
    ]
    rows = measured_rows(options.measurements, options.seed)
    bars += _measured(rows)
    for bar in bars:
        print(bar)
    cells, over, slack = capacity_cells(options.seed, options.quick)
    kept = over == 0 and slack <= SLACK_BAR
    print(
        f"capacity function: {over} of {cells} cells promise too much, mean slack {slack:.3f}"
        f"   bar 0, {SLACK_BAR:g}   {'met' if kept else 'MISSED'}"
    )
    speeds = _speeds(options.seed)
    fast = min(speeds.values()) >= SPEED_BAR
    told = ", ".join(f"{name} {speed:,.0f}" for name, speed in speeds.items())
    print(f"simulated requests a CPU second: {told}   bar {SPEED_BAR:,}   {'met' if fast else 'MISSED'}")
    return 0 if kept and fast and all(bar.met for bar in bars) else 1


def _textbook() -> QueueingBar:
    """M/M/n by Erlang's formula added up, and M/G/1 by Pollaczek and Khinchine."""
    errors = []
    for load in (0.3, 0.7, 0.95):
        for servers in (1, 3, 20):
            offered, term, below = servers * load, 1.0, 0.0
            for k in range(servers):
                below += term
                term *= offered / (k + 1)
            last = term / (1 - load)
            expected = last / (below + last) / (servers * (1 - load))
            ours = waiting(np.array([float(servers)]), np.array([load]), Variability(1.0, 1.0)).mean[0]
            errors.append(ours / expected - 1)
        constant = waiting(np.array([1.0]), np.array([load]), Variability(1.0, 0.0)).mean[0]
        errors.append(constant / (load / (2 * (1 - load))) - 1)
    return QueueingBar("M/M/n and M/D/1, mean wait against textbooks", np.array(errors), 1.0, 1.0)


def _measured(rows: list[MeasuredRow]) -> list[QueueingBar]:
    if not rows:
        print("no published rows: aiconfigurator-core is not installed, and no --measurements are given")
        return []
    measured = np.array([row.measured_ms for row in rows])
    errors = np.array([row.predicted_ms for row in rows]) / measured - 1
    simulated = np.array([row.simulated_ms for row in rows]) / measured - 1
    chosen = np.array([row.seventy_billion for row in rows])
    frameworks = np.array([row.framework for row in rows])
    return [
        QueueingBar("published mean TTFT, 70B on H100/H200: simulated", simulated[chosen], 10.0, 22.0),
        QueueingBar("published mean TTFT, 70B on H100/H200: predict", errors[chosen], 10.0, 22.0),
        QueueingBar("published TTFT, all closed loops: predict", errors, 28.0, inf),
        *(
            QueueingBar(f"  under {name}", errors[frameworks == name], inf, inf)
            for name in sorted(set(frameworks.tolist()))
        ),
    ]


def _speeds(seed: int) -> dict[str, float]:
    """Simulated requests a CPU second: one engine under open load, sixteen behind a router, a closed loop."""
    budget, costs, _ = next(engine_tables(quick=True))
    count = 60_000
    limits = EngineLimits(256, budget, AMPLE_KV)
    speeds = {}
    for name, engines in (("open loop", 1), ("16 engines, least loaded", 16)):
        arrivals = renewal_times_ms(6.0 * engines, 1.0, count, np.random.default_rng(seed))
        requests = drawn((1024, 256), arrivals, seed)
        start = time.process_time()
        run_engines(costs, limits, requests, engines, "least-loaded", seed)
        speeds[name] = count / (time.process_time() - start)
    requests = drawn((1024, 256), np.zeros(count), seed)
    start = time.process_time()
    simulated_closed(costs, limits, requests, 64, 15.0)
    speeds["closed loop"] = count / (time.process_time() - start)
    return speeds


if __name__ == "__main__":
    sys.exit(main())
