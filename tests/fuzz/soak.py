"""Try many random fleets: `make soak`, or one again with `--first SEED --fleets 1 --keep FOLDER`.

With `--hours` no fleet begins after that time, and the count says how far it came.

Prints every failure with its seed, and at the end how the fleets ended, which keys, pairs, laws and commands
were tried, and what failed; exits with 1 if anything did.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from fleetplan.fleet.machine import usable_cores
from fleetplan.fleet.units import SECONDS_PER_HOUR
from tests.cache_home import own_cache_home
from tests.fuzz.command_lines import commands, small_fleet, tried
from tests.fuzz.fleets import random_fleet
from tests.fuzz.keys import KeyCoverage
from tests.fuzz.trial import Report, TrialEffort, try_fleet
from tests.planner.search.blocks.forced import send_all_to_areas, send_all_to_blocks

FLEETS = 10_000

OVERRUN_S = 10.0
"""How much longer than its limit a solve may take. [s]"""

EFFORT = TrialEffort(
    most_cells=6, time_limit_s=3.0, gap_ratio=1e-4, workers=2, laws=2, questions=2, tamperings=40,
    exports=3, explain=True, overrun_s=OVERRUN_S,
)  # fmt: skip

LARGE_EVERY = 50
"""Of so many fleets one is large enough for the search over blocks."""

LARGE_CELLS, LARGE_SERVICES = 12, 16
LARGE_EFFORT = replace(
    EFFORT, most_cells=LARGE_CELLS, time_limit_s=15.0, gap_ratio=0.02, laws=1, questions=1, tamperings=10
)

BLOCKS_EVERY = 10
"""Of so many fleets one is searched block by block and area by area, however small it is."""

LINES_EVERY = 10
"""Of so many fleets, one command line of every command is tried before the first."""

BLOCK = 5
"""Fleets that a process takes at a time."""

PROGRESS_S = 30.0
"""How often the count is printed. [s]"""


@dataclass(frozen=True)
class SoakOptions:
    """Options of the command line."""

    first: int
    fleets: int
    jobs: int
    keep: Path | None
    hours: float

    def batches(self) -> Iterator[range]:
        """Seeds of fleets before which command lines are tried, while there is time. [-]"""
        started, ends = time.monotonic(), self.first + self.fleets
        for start in range(self.first, ends, LINES_EVERY):
            if time.monotonic() - started > self.hours * SECONDS_PER_HOUR:
                return
            yield range(start, min(start + LINES_EVERY, ends))


def try_seeds(keep: Path | None, seeds: range) -> list[Report]:
    """Try the fleets of some seeds in a separate process with a separate cache."""
    with tempfile.TemporaryDirectory(prefix="soak-cache-") as cache:
        os.environ["XDG_CACHE_HOME"] = str(own_cache_home(Path(cache)))
        return [_try(seed, None if keep is None else keep / str(seed)) for seed in seeds]


def _try(seed: int, folder: Path | None) -> Report:
    if seed % LARGE_EVERY == LARGE_EVERY - 1:
        return try_fleet(seed, LARGE_EFFORT, folder, LARGE_SERVICES)
    with pytest.MonkeyPatch.context() as changed:
        if seed % BLOCKS_EVERY == 0:
            send_all_to_blocks(changed)
            send_all_to_areas(changed)
        return try_fleet(seed, EFFORT, folder)


def reports(asked: SoakOptions, batch: range) -> Iterator[Report]:
    """Try some fleets, as many at once as there are jobs."""
    blocks = [range(start, min(start + BLOCK, batch.stop)) for start in range(batch.start, batch.stop, BLOCK)]
    if asked.jobs == 1:
        for block in blocks:
            yield from try_seeds(asked.keep, block)
        return
    # Threads of the solvers do not survive a fork.
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        for found in pool.map(partial(try_seeds, asked.keep), blocks):
            yield from found


def wrong_lines(seed: int) -> Iterator[str]:
    """Try a command line of every command; yield every one that does not end as it should."""
    with tempfile.TemporaryDirectory(prefix="soak-lines-") as scratch:
        os.environ["XDG_CACHE_HOME"] = str(own_cache_home(Path(scratch) / "cache"))
        small = Path(scratch) / "small"
        small.mkdir()
        small_fleet(small)
        for command in commands():
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                words, wrong = tried(command, seed, small, Path(folder))
            if wrong:
                yield f"plan {words}: {wrong}"


def main() -> int:
    """Run from the command line; return the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fleets", type=int, default=FLEETS)
    options.add_argument("--first", type=int, default=0, help="seed of the first fleet")
    options.add_argument("--jobs", type=int, default=usable_cores())
    options.add_argument("--keep", type=Path, help="keep the files of every fleet in this folder")
    options.add_argument("--hours", type=float, default=math.inf, help="begin no more fleets after this time")
    asked = SoakOptions(**vars(options.parse_args()))
    kinds: Counter[str] = Counter()
    asked_of: Counter[str] = Counter()
    seen = KeyCoverage()
    failed: dict[int, list[str]] = {}
    told = started = time.monotonic()
    lines = 0
    for batch in asked.batches():
        for line in wrong_lines(batch.start):
            lines += 1
            print(line, flush=True)
        for report in reports(asked, batch):
            seen.add(random_fleet(report.seed, EFFORT.most_cells).file)
            kinds[report.kind] += 1
            asked_of += report.tried
            if report.failures:
                failed[report.seed] = report.failures
            for failure in report.failures:
                print(f"seed {report.seed}: {failure}", flush=True)
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                print(f"{seen.fleets} of {asked.fleets} fleets, {told - started:.0f} s; {seen}", flush=True)
    print(f"{seen.fleets} fleets, seeds {asked.first} on, in {time.monotonic() - started:.0f} s")
    print(f"covered: {seen}")
    for counts in (kinds, asked_of):
        for name, count in counts.most_common():
            print(f"  {count:6} {name}")
    print(f"{len(failed)} fleets failed: {', '.join(map(str, failed)) or 'none'}")
    print(f"{lines} command lines failed")
    return int(bool(failed or lines > 0))


if __name__ == "__main__":
    sys.exit(main())
