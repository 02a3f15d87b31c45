"""Plan many random fleets and set each plan beside the independent optimum: `make soak FLEETS=10000`.

Prints how many agree, and the seed and figures of every fleet that does not; exits with 1 if there is any.
A fleet of a seed is written with `--write FOLDER --first SEED --fleets 1`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.oracles.independent.compare import FAILED, Comparison, Verdict, compare
from tests.oracles.independent.fleets import random_fleet
from tests.oracles.independent.worker import Oracle

from fleetplan.fleet.machine import usable_cores

FLEETS = 1000
TIME_LIMIT_S = 5.0
"""Of a plan; most fleets take a tenth of it."""

SOLVER_WORKERS = 8
"""As the command line takes on a machine of up to eight cores."""

BLOCK = 10
"""Fleets that a process takes at a time."""

PROGRESS_S = 30.0
"""How often the count is printed. [s]"""


def compare_seeds(seeds: range) -> list[tuple[int, Comparison]]:
    """Compare the fleets of some seeds, in a process of their own."""
    found = []
    with Oracle() as oracle, tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for seed in seeds:
            path = random_fleet(seed).write(Path(folder) / str(seed))
            found.append((seed, compare(path, oracle, time_limit_s=TIME_LIMIT_S, workers=SOLVER_WORKERS)))
    return found


def comparisons(first: int, fleets: int, jobs: int) -> Iterator[tuple[int, Comparison]]:
    """Compare many fleets, as many at once as there are jobs."""
    ends = first + fleets
    blocks = [range(start, min(start + BLOCK, ends)) for start in range(first, ends, BLOCK)]
    if jobs == 1:
        for block in blocks:
            yield from compare_seeds(block)
        return
    # Threads of the solvers do not survive a fork.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for found in pool.map(compare_seeds, blocks):
            yield from found


def main() -> int:
    """Run from the command line; return the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fleets", type=int, default=FLEETS)
    options.add_argument("--first", type=int, default=0, help="seed of the first fleet")
    options.add_argument("--jobs", type=int, default=usable_cores())
    options.add_argument("--write", type=Path, help="write the fleets to this folder instead")
    asked = options.parse_args()
    if asked.write is not None:
        for seed in range(asked.first, asked.first + asked.fleets):
            print(random_fleet(seed).write(asked.write / str(seed)))
        return 0
    counts: Counter[Verdict] = Counter()
    told = started = time.monotonic()
    for seed, comparison in comparisons(asked.first, asked.fleets, asked.jobs):
        counts[comparison.verdict] += 1
        if comparison.verdict in (*FAILED, Verdict.OPEN):
            print(f"seed {seed}: {comparison.verdict}: {comparison.text}", flush=True)
        if time.monotonic() - told > PROGRESS_S:
            told = time.monotonic()
            print(f"{counts.total()} of {asked.fleets} fleets, {told - started:.0f} s", flush=True)
    print(f"{counts.total()} fleets in {time.monotonic() - started:.0f} s:")
    for verdict in Verdict:
        print(f"  {counts[verdict]:6} {verdict}")
    return int(any(counts[verdict] for verdict in FAILED))


if __name__ == "__main__":
    sys.exit(main())
