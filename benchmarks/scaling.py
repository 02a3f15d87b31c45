"""Where the time and the memory of a large fleet go, and what more cores bring.

    python -m benchmarks.scaling stages --size xl [--seed 1] [--search 600]
    python -m benchmarks.scaling cores --size medium [--seed 1] [--work 10] [--cores 2,8,32,128] [--alone]

`stages` prints the time, the work of a core and the memory after each stage before the search: fleet file,
candidates, model, blocks. With `--search` it searches for so many seconds, and prints its steps with the
memory of the client and of the largest worker, and whether the plan is verified.

`cores` searches as `--deterministic` does, in the same steps on every number of cores, once with one worker
and once with two. Each job is measured by the work of its process, so that a busy machine changes little. The
measured jobs are scheduled on other numbers of cores (benchmarks/job_schedule.py): with a client that waits
for all blocks, as in a search that repeats, and with one that goes on early, as in every other. The critical
path is what no number of cores shortens; the batches that it is longest in are listed. The check compares
what two workers bring in the schedule with what they brought; `--alone` leaves it out.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.fleet_sizes import SIZES
from benchmarks.fleets import write_fleet
from benchmarks.job_schedule import UNLIMITED, JobBatch, MeasuredJob, batches_of, critical_s, makespan_s
from benchmarks.solve_runs import GIB, children, resident_bytes

from fleetplan.fleet.figures import counted
from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.assemble import build_plan, provenance, solve_record, within_budgets
from fleetplan.planner.candidates import CandidateSet, prepare
from fleetplan.planner.formulation import PlanningModel, build_model
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import Progress, SearchLimits, Stop, default_workers, search
from fleetplan.planner.search.blocks.solve import decomposed, solve_in_blocks
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.job_times import JobTime
from fleetplan.planner.search.solvers.request import SolverLimits
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_fleet

SAMPLE_S: Final = 0.5
"""How often the memory is looked at. [s]"""

LISTED_BATCHES: Final = 8
"""Batches that are listed: those that the critical path is longest in."""


class StageTable:
    """Prints what each stage took."""

    def __init__(self) -> None:
        self._began_s, self._work_s = time.monotonic(), time.process_time()
        print(f"{'time':>9} {'core':>9} {'memory':>10}  stage")

    def end(self, stage: str) -> None:
        """Print a stage that has ended."""
        took, worked = time.monotonic() - self._began_s, time.process_time() - self._work_s
        gib = resident_bytes(os.getpid()) / GIB
        print(f"{took:7.1f} s {worked:7.1f} s {gib:6.2f} GiB  {stage}", flush=True)
        self._began_s, self._work_s = time.monotonic(), time.process_time()


class LargestWorker:
    """Looks at the memory of this process and of its children, for as long as the context lasts."""

    def __init__(self) -> None:
        self.client = self.worker = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> LargestWorker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self.client = max(self.client, resident_bytes(os.getpid()))
            self.worker = max([self.worker, *map(resident_bytes, children(os.getpid()))])

    def __str__(self) -> str:
        return f"client {self.client / GIB:.2f} GiB, largest worker {self.worker / GIB:.2f} GiB"


def problem_of(size: str, seed: int, ended: Callable[[str], None]) -> tuple[CandidateSet, Problem]:
    """Candidates and problem of a seeded fleet, each stage told when it has ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_fleet(Path(folder), size, seed)
        fleet = load_fleet(path, (), ())
        ended("fleet file")
        candidates, problem = prepare(fleet, lambda _: None)
        ended("candidates and problem")
    return candidates, problem


def blocks_of(problem: Problem, ended: Callable[[str], None]) -> tuple[PlanningModel, Split]:
    """The model of cost of a problem that serves everything, and its blocks."""
    planning = build_model(problem, allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    ended(f"model: {len(planning.model.proto.variables):,} variables")
    parts = decomposed(planning)
    if parts is None:
        raise SystemExit("the model is too small for blocks")
    ended(f"{len(parts.blocks):,} blocks, {len(parts.linking_rows):,} linking rows")
    return planning, parts


def run_stages(size: str, seed: int, search_s: float) -> None:
    """Print what each stage takes, and what a search finds."""
    stages = StageTable()
    candidates, problem = problem_of(size, seed, stages.end)
    if not search_s:
        blocks_of(problem, stages.end)
        return
    began_s = time.monotonic()
    with LargestWorker() as memory:

        def watch(progress: Progress) -> None:
            plan, bound = progress.objective_usd, progress.bound_usd
            gap = f"{100 * (plan - bound) / plan:.2f} %" if plan and bound is not None else "no plan"
            print(f"{time.monotonic() - began_s:7.1f} s  gap {gap}, {memory}  {progress.source}", flush=True)

        limits = SearchLimits(search_s, 0.001, seed, default_workers())
        result = search(problem, limits, watch, holds=within_budgets)
        stages.end(f"search: {memory}")
    if result.solution is None:
        print(f"no plan after {result.wall_s:.0f} s")
        return
    made_from = provenance(problem.fleet, candidates, limits)
    plan = build_plan(problem, candidates, result, made_from, solve_record(result))
    stages.end(f"plan: {len(verify(problem, plan))} violations")


class MeasuredSeats(ProcessSeats):
    """Processes of this machine whose work is measured job by job."""

    worked = threading.local()

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Let a process do jobs, and note what it worked for each."""
        before = _work_s(self.processes[seat].process.pid)
        answers = super().ask(seat, jobs)
        self.worked.seconds = (_work_s(self.processes[seat].process.pid) - before) / len(jobs)
        return answers


def _work_s(pid: int) -> float:
    """Time that a process has worked on a core; HiGHS has one thread. [s]"""
    # Nanoseconds; the ticks of /proc/PID/stat are as long as a block.
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


@dataclass(frozen=True, slots=True)
class MeasuredSearch:
    """A search that repeats, with some workers.

    Attributes
    ----------
    wall_s : float
        What it took. [s]
    batches : list[JobBatch]
        Its jobs.
    """

    wall_s: float
    batches: list[JobBatch]


def measured_search(planning: PlanningModel, parts: Split, work_s: float, workers: int) -> MeasuredSearch:
    """Search with some workers, and measure each job."""
    jobs: list[MeasuredJob] = []

    def note(job: JobTime) -> None:
        # Told by the thread that has asked for it.
        jobs.append(
            MeasuredJob(
                job.batch, job.kind, job.began_s, job.began_s + job.wall_s, MeasuredSeats.worked.seconds
            )
        )

    def seats(programs: Programs) -> MeasuredSeats:
        return MeasuredSeats(workers, programs)

    limits = SolverLimits(work_s, 1, workers, Stop(), seats=seats, on_job=note)
    began_s, client_s = time.monotonic(), time.process_time()
    solve_in_blocks(planning, parts, limits, lambda *_: False, lambda _: None, reproducible=True)
    client_s = time.process_time() - client_s
    return MeasuredSearch(time.monotonic() - began_s, batches_of(jobs, client_s, len(parts.blocks)))


def run_cores(size: str, seed: int, work_s: float, cores: Sequence[int], alone: bool) -> None:
    """Print what more cores bring, and the check against two unless one is to be alone."""
    _, problem = problem_of(size, seed, lambda _: None)
    planning, parts = blocks_of(problem, lambda _: None)
    measure = partial(measured_search, planning, parts, work_s)
    one = measure(1)
    batches = one.batches
    _print_schedule(f"{size}, seed {seed}", batches, cores)
    if alone:
        return
    two = measure(2)
    brought = f"{one.wall_s / two.wall_s:.2f} times ({one.wall_s:.1f} s, {two.wall_s:.1f} s)"
    scheduled = [makespan_s(each, 1) / makespan_s(each, 2) for each in (batches, two.batches)]
    print(f"check: two workers brought {brought}; in the schedule {scheduled[0]:.2f} times by the jobs of")
    print(f"one worker, {scheduled[1]:.2f} times by those of two")


def _print_schedule(fleet: str, batches: Sequence[JobBatch], cores: Sequence[int]) -> None:
    """Print what numbers of cores bring, and where the critical path is long."""
    n_jobs = sum(len(batch.job_s) for batch in batches)
    client_s = sum(batch.client_s for batch in batches)
    job_s = sum(sum(batch.job_s) for batch in batches)
    print(f"{fleet}: {n_jobs:,} jobs of {job_s:.1f} s in {len(batches)} batches, ", end="")
    print(f"client {client_s:.1f} s")
    alone = makespan_s(batches, 1)
    print(f"{'cores':>9} {'waits for all':>22} {'goes on early':>22}")
    for count in (*cores, UNLIMITED):
        sides = [makespan_s(batches, count, early) for early in (False, True)]
        cells = "".join(f"{side:9.1f} s, {alone / side:5.1f} times" for side in sides)
        print(f"{'critical' if count == UNLIMITED else count:>9} {cells}")
    longest = sorted(range(len(batches)), key=lambda number: -critical_s(batches[number]))
    for number in sorted(longest[:LISTED_BATCHES]):
        batch = batches[number]
        print(
            f"batch {number}: client {batch.client_s:.1f} s, {counted(len(batch.job_s), batch.kind)} of "
            f"{sum(batch.job_s):.1f} s, the longest {max(batch.job_s):.1f} s"
        )


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("stages", "cores"))
    parser.add_argument("--size", choices=SIZES, default="medium")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--search", type=float, default=0.0, help="time of the search of `stages` [s]")
    parser.add_argument("--work", type=float, default=10.0, help="work of the search of `cores` [s]")
    parser.add_argument("--alone", action="store_true", help="without the check of `cores`")
    parser.add_argument("--cores", default="2,8,32,128", help="joined by commas")
    arguments = parser.parse_args()
    print(f"{usable_cores()} cores, load {os.getloadavg()[0]:.1f}")
    if arguments.what == "stages":
        run_stages(arguments.size, arguments.seed, arguments.search)
    else:
        cores = [int(n) for n in arguments.cores.split(",")]
        run_cores(arguments.size, arguments.seed, arguments.work, cores, arguments.alone)


if __name__ == "__main__":
    main()
