"""How fast fleets of every size are solved, how close to the optimum, and against what.

    python benchmarks/solve.py [--sizes small,medium] [--seeds 2] [--variants plain,head] [--flat]
                               [--out DIR] [--repeat]
    python benchmarks/solve.py --family realistic [--sizes team,company] [--variants plain,day+region-loss]

Each fleet of benchmarks/fleets.py, or of benchmarks/realistic, is solved as `plan solve` does it, one
process a core, until the last of its bars; every plan is verified without the solver. `--flat` solves the
same integer model, for the same time and in the same run, by one CP-SAT model and by HiGHS too, nobody
stopping early, and its linear relaxation. Where our plan leaves demand unmet, their model is the last one
that our search solves: the least cost that leaves no more unmet of any priority. `--repeat` solves small
and medium fleets three times with `--deterministic`. The gap is (plan - proven bound) / plan of the whole
TCO; beside it stands the gap of what can be decided, without the cost of what exists. Times begin with the
model's first variable; candidates are evaluated before. The last line says `all bars met` or names the bars
missed.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
import scipy.sparse as sp
from benchmarks.fleets import write_fleet
from benchmarks.solve_families import FAMILIES, Bar, Family
from ortools.sat.python import cp_model
from scipy.optimize import linprog

from fleetplan.planner.assemble import build_plan, provenance, solve_record, within_budgets
from fleetplan.planner.candidates import CandidateSet, prepare
from fleetplan.planner.formulation import (
    PlanningModel,
    Solution,
    build_model,
    fixed_usd,
    total_cost,
    unmet_demand,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import Progress, SearchLimits, SearchResult, default_workers, search
from fleetplan.planner.search.blocks.matrix import read_program
from fleetplan.planner.search.blocks.relaxation import relax
from fleetplan.planner.search.solvers.highs_race import HighsAnswer, HighsRace, complete
from fleetplan.planner.search.unmet_prices import rounding_of
from fleetplan.planner.units import USD_RESOLUTION
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_expanded_fleet

GIB: Final = 2**30

COMPLETION_S: Final = 10.0
"""Time to make HiGHS's last plan exact. [s]"""


MEMORY_BAR_GIB: Final = 4.0
"""Of a large fleet, all processes together."""


@dataclass(slots=True)
class Run:
    """What one solver did on one fleet.

    Attributes
    ----------
    steps : list[tuple[float, float | None, float | None]]
        Time, best plan and best bound after every step of the stage that minimises cost. [s; USD; USD]
    wall_s : float
        The whole solve. [s]
    memory_gib : float
        Most memory of all its processes together.
    result : SearchResult or None
        Of our search.
    linear_usd : float or None
        Bound of the linear relaxation, where it was asked for.
    exact_usd : float or None
        Of HiGHS's last plan with its replicas and supply, and loads that keep every row in exact integers;
        None where there are none, and of other solvers, whose plans are exact.
    """

    size: str
    variant: str
    seed: int
    solver: str
    fixed_usd: float
    steps: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    wall_s: float = 0.0
    memory_gib: float = 0.0
    result: SearchResult | None = None
    violations: int = 0
    linear_usd: float | None = None
    exact_usd: float | None = None

    def at(self, seconds: float) -> tuple[float | None, float | None]:
        """The best plan and bound known by a time. [USD]"""
        plan = bound = None
        for when, better, higher in self.steps:
            if when <= seconds:
                plan, bound = better or plan, higher or bound
        return plan, bound

    def gap(self, seconds: float) -> float:
        """Gap at a time; 1 without a plan or a bound."""
        plan, bound = self.at(seconds)
        return 1.0 if not plan or bound is None else max(0.0, (plan - bound) / plan)

    def decidable_gap(self, seconds: float) -> float:
        """The same without the cost of what exists."""
        plan, bound = self.at(seconds)
        if not plan or bound is None or plan <= self.fixed_usd:
            return 1.0
        return max(0.0, (plan - bound) / (plan - self.fixed_usd))

    def first_plan_s(self) -> float:
        """Time of the first plan; infinite without one. [s]"""
        return min((when for when, plan, _ in self.steps if plan), default=float("inf"))


def main() -> None:
    """Solve the fleets that were asked for and print what was reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--family", choices=tuple(FAMILIES), default="random")
    parser.add_argument("--sizes", help="joined by commas")
    parser.add_argument("--variants", help="joined by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--flat", action="store_true", help="CP-SAT and HiGHS on the whole model as well")
    parser.add_argument("--repeat", action="store_true", help="three deterministic runs of each fleet")
    parser.add_argument("--out", type=Path, help="folder for gaps.csv and gap.svg")
    arguments = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} before the first solve")
    runs, missed = [], []
    family = FAMILIES[arguments.family]
    for size in (arguments.sizes or family.sizes).split(","):
        for variant in (arguments.variants or family.variants).split(","):
            if not family.bars(size, variant):
                continue
            own = [
                run
                for seed in range(1, arguments.seeds + 1)
                for run in solve_fleet(family, size, variant, seed, arguments.flat)
            ]
            runs += own
            missed += judge(family, size, variant, own)
            if arguments.repeat and variant == "plain" and size in ("small", "medium"):
                missed += repeats(size, arguments.seeds)
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_steps(arguments.out / "gaps.csv", runs)
        draw(arguments.out / "gap.svg", runs, family.bars)
    print("all bars met" if not missed else "bars missed: " + "; ".join(missed))
    sys.exit(bool(missed))


def solve_fleet(family: Family, size: str, variant: str, seed: int, flat: bool) -> list[Run]:
    """Solve one fleet by our search, and by one model each of CP-SAT and HiGHS."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = load_expanded_fleet(family.write(Path(folder), size, seed, variant), (), ())
        candidates, problem = prepare(fleet, lambda _: None)
    bars = family.bars(size, variant)
    limit_s = max(bar.seconds for bar in bars)
    gap_ratio = min((bar.gap_ratio for bar in bars if bar.gap_ratio is not None), default=0.0)
    # A little less than the bar, which is on what is reported; nobody stops early where solvers are compared.
    asked = 0.0 if flat else 0.98 * gap_ratio
    limits = SearchLimits(limit_s, asked, seed, default_workers())
    runs = [
        measured(Run(size, variant, seed, "blocks", fixed_usd(problem)), ours(problem, candidates, limits))
    ]
    if flat:
        solution = None if runs[0].result is None else runs[0].result.solution
        runs[0].linear_usd = linear_usd(whole_model(problem, solution), runs[0].fixed_usd)

        def build() -> PlanningModel:
            return whole_model(problem, solution)

        for name, solve in (("CP-SAT", cpsat_alone), ("HiGHS", highs_alone)):
            run = Run(size, variant, seed, name, fixed_usd(problem))
            runs.append(measured(run, lambda run, solve=solve: solve(run, build, runs[0].wall_s)))
    for run in runs:
        print(line(run), flush=True)
    return runs


def ours(problem: Problem, candidates: CandidateSet, limits: SearchLimits) -> Callable[[Run], None]:
    """Our search, its plan verified."""

    def solve(run: Run) -> None:
        started = time.monotonic()

        def watch(progress: Progress) -> None:
            plan, bound = progress.objective_usd, progress.bound_usd
            run.steps.append((time.monotonic() - started, plan, bound))

        result = search(problem, limits, watch, holds=within_budgets)
        run.wall_s = time.monotonic() - started
        run.steps.append((run.wall_s, result.objective_usd, result.bound_usd))
        run.result = result
        if result.solution is not None:
            made_from = provenance(problem.fleet, candidates, limits)
            plan = build_plan(problem, candidates, result, made_from, solve_record(result))
            run.violations = len(verify(problem, plan))

    return solve


def whole_model(problem: Problem, solution: Solution | None) -> PlanningModel:
    """The fleet as one model of cost, in which no more demand of any priority is unmet than in our plan."""
    left = {} if solution is None else solution.unmet
    planning = build_model(problem, allow_unmet=bool(left))
    planning.model.minimize(total_cost(problem, planning.variables))
    units = {planning.variables.unmet[key].index: unserved for key, unserved in left.items()}
    for priority in {service.priority for service in problem.fleet.services} if left else ():
        unmet = unmet_demand(problem, planning.variables, priority)
        if isinstance(unmet, int):
            continue
        flat = cp_model.FlatIntExpr(cp_model.LinearExpr.sum([unmet]))
        ours = sum(
            int(each) * units.get(variable.index, 0)
            for variable, each in zip(flat.vars, flat.coeffs, strict=True)
        )
        planning.model.add(unmet <= ours + rounding_of(unmet))
    return planning


def cpsat_alone(run: Run, build: Callable[[], PlanningModel], limit_s: float) -> None:
    """CP-SAT with its default search on the whole model."""
    started = time.monotonic()
    planning = build()
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.1, limit_s - (time.monotonic() - started))
    solver.parameters.num_workers = len(os.sched_getaffinity(0))

    class Watch(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            usd = self.objective_value / USD_RESOLUTION, self.best_objective_bound / USD_RESOLUTION
            run.steps.append((time.monotonic() - started, usd[0] + run.fixed_usd, usd[1] + run.fixed_usd))

    status = solver.solve(planning.model, Watch())
    bound = solver.best_objective_bound / USD_RESOLUTION + run.fixed_usd
    plan = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        plan = solver.objective_value / USD_RESOLUTION + run.fixed_usd
    run.wall_s = time.monotonic() - started
    run.steps.append((run.wall_s, plan, bound))


def linear_usd(planning: PlanningModel, existing_usd: float) -> float:
    """What the linear relaxation of the whole model costs. [USD]"""
    relaxed = relax(read_program(planning.model), planning.continuous)
    unit = float(np.abs(planning.model.proto.objective.coeffs).max())
    cost = read_program(planning.model).cost * relaxed.column_scale / unit
    sides = [(relaxed.rows, relaxed.row_upper), (-relaxed.rows, -relaxed.row_lower)]
    kept = [(rows[np.flatnonzero(np.isfinite(limit))], limit[np.isfinite(limit)]) for rows, limit in sides]
    answer = linprog(
        cost,
        A_ub=sp.vstack([rows for rows, _ in kept], format="csr"),
        b_ub=np.concatenate([limit for _, limit in kept]),
        bounds=np.column_stack([relaxed.lower, relaxed.upper]),
        method="highs",
    )
    return float(answer.fun) * unit / USD_RESOLUTION + existing_usd


def highs_alone(run: Run, build: Callable[[], PlanningModel], limit_s: float) -> None:
    """HiGHS on the whole model with continuous loads; its last plan is made exact, in time of its own."""
    started = time.monotonic()
    planning = build()
    cost = dict(zip(planning.model.proto.objective.vars, planning.model.proto.objective.coeffs, strict=True))

    last: list[float] | None = None

    def hear(answer: HighsAnswer) -> None:
        nonlocal last
        plan = None
        if answer.values is not None:
            last = answer.values
            plan = sum(each * answer.values[j] for j, each in cost.items()) / USD_RESOLUTION + run.fixed_usd
        bound = None if answer.bound is None else answer.bound / USD_RESOLUTION + run.fixed_usd
        run.steps.append((time.monotonic() - started, plan, bound))

    left_s = max(1.0, limit_s - (time.monotonic() - started))
    with HighsRace(planning.model, planning.continuous, left_s, 1e-4, hear):
        time.sleep(left_s + 0.5)
    run.wall_s = time.monotonic() - started
    exact = None if last is None else complete(planning.model, planning.continuous, last, COMPLETION_S)
    if exact is not None:
        run.exact_usd = exact.objective_value / USD_RESOLUTION + run.fixed_usd


def measured(run: Run, solve: Callable[[Run], None]) -> Run:
    """A run with the most memory that it had, children included."""
    ended = threading.Event()
    most = 0

    def sample() -> None:
        nonlocal most
        while not ended.wait(0.25):
            most = max(most, sum(_resident_bytes(pid) for pid in (os.getpid(), *_children(os.getpid()))))

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    solve(run)
    ended.set()
    watcher.join()
    run.memory_gib = most / GIB
    return run


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], stdout=subprocess.PIPE, check=False)
    return [int(each) for each in listed.stdout.split()]


def _resident_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def line(run: Run) -> str:
    """One run in one line."""
    plan, bound = run.at(run.wall_s)
    return (
        f"{run.size:13} {run.variant:15} seed {run.seed} {run.solver:6} "
        f"first plan {run.first_plan_s():6.1f} s  "
        f"gap {100 * run.gap(run.wall_s):6.2f} % (decidable {100 * run.decidable_gap(run.wall_s):6.2f} %) "
        f"after {run.wall_s:6.1f} s  plan {(plan or 0) / 1e6:9.4f} M  bound {(bound or 0) / 1e6:9.4f} M  "
        f"{run.memory_gib:4.1f} GiB  violations {run.violations}"
    )


def judge(family: Family, size: str, variant: str, runs: Sequence[Run]) -> list[str]:
    """The bars that the fleets of one size and variant miss, by the median over seeds or the worst one."""
    own = [run for run in runs if run.solver == "blocks"]
    missed = []
    for bar in family.bars(size, variant):
        of_seeds, worst = (max, " of every seed") if bar.each_seed else (statistics.median, "")
        if bar.gap_ratio is None:
            reached = of_seeds([run.first_plan_s() for run in own])
            text, good = f"first plan{worst} {reached:.1f} s (bar {bar.seconds:g} s)", reached <= bar.seconds
        else:
            reached = of_seeds([run.gap(bar.seconds) for run in own])
            text = f"{100 * reached:.2f} %{worst} after {bar.seconds:g} s (bar {100 * bar.gap_ratio:g} %)"
            good = reached <= bar.gap_ratio
        missed += report(size, variant, text, good)
    if size == "large":
        most = max(run.memory_gib for run in own)
        missed += report(size, variant, f"{most:.1f} GiB (bar {MEMORY_BAR_GIB:g})", most < MEMORY_BAR_GIB)
    broken = sum(run.violations for run in own)
    without = sum(run.result is None or run.result.solution is None for run in own)
    text = f"{len(own) - without} plans of {len(own)}, {broken} violations"
    missed += report(size, variant, text, not broken and not without)
    for run in own:
        if run.linear_usd is not None:
            bound = run.at(run.wall_s)[1] or 0.0
            text = (
                f"seed {run.seed}: bound {bound / 1e6:.4f} M, linear relaxation {run.linear_usd / 1e6:.4f} M"
            )
            missed += report(size, variant, text, bound >= run.linear_usd * (1 - 1e-6))
    for other in runs:
        if other.solver == "blocks":
            continue
        mine = next(run for run in own if run.seed == other.seed)
        missed += report(size, variant, *against(mine, other))
    return missed


def against(mine: Run, other: Run) -> tuple[str, bool]:
    """Whether our plan is no worse than another solver's after the same time."""
    plan, _ = mine.at(mine.wall_s)
    theirs, _ = other.at(mine.wall_s + 1)
    if theirs is None:
        return f"seed {mine.seed}: {other.solver} has no plan", True
    good = plan is not None and plan <= theirs * (1 + 1e-6)
    text = f"seed {mine.seed}: plan {(plan or 0) / 1e6:.6f} M, {other.solver} {theirs / 1e6:.6f} M"
    if other.solver == "HiGHS":
        exact = "cannot be made exact" if other.exact_usd is None else f"{other.exact_usd / 1e6:.6f} M exact"
        text = f"{text} ({exact})"
    return text, good


def report(size: str, variant: str, text: str, good: bool) -> list[str]:
    """Print one bar; its text where it is missed."""
    print(f"  {'met   ' if good else 'MISSED'} {size} {variant}: {text}", flush=True)
    return [] if good else [f"{size} {variant}: {text}"]


def repeats(size: str, seeds: int) -> list[str]:
    """Whether three deterministic runs of each fleet give the same plan and bound, and what they take."""
    missed = []
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            fleet = load_expanded_fleet(write_fleet(Path(folder), size, seed), (), ())
            _, problem = prepare(fleet, lambda _: None)
        found, walls = [], []
        for _ in range(3):
            started = time.monotonic()
            limits = SearchLimits(20.0, 0.001, seed, default_workers(), reproducible=True)
            result = search(problem, limits)
            walls.append(time.monotonic() - started)
            found.append((result.solution, result.objective_usd, result.bound_usd))
        same = all(each == found[0] for each in found)
        plan, bound = found[0][1], found[0][2]
        gap = 100 * (plan - bound) / plan if plan and bound is not None else 100.0
        verdict = "the same" if same else "DIFFERENT"
        text = f"deterministic, seed {seed}: gap {gap:.2f} %, {max(walls):.1f} s, {verdict}"
        missed += report(size, "plain", text, same)
    return missed


def write_steps(path: Path, runs: Sequence[Run]) -> None:
    """Every step of every run as a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("size", "variant", "seed", "solver", "seconds", "plan_usd", "bound_usd", "gap"))
        for run in runs:
            for when, plan, bound in run.steps:
                row = (run.size, run.variant, run.seed, run.solver)
                writer.writerow((*row, round(when, 2), plan, bound, run.gap(when)))


def draw(path: Path, runs: Sequence[Run], bars: Callable[[str, str], tuple[Bar, ...]]) -> None:
    """Gap over time, a panel for each size and variant."""
    import matplotlib as mpl  # noqa: PLC0415 - only who wants the plot waits for it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    panels = list(dict.fromkeys((run.size, run.variant) for run in runs))
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False)
    colours = {"blocks": "tab:blue", "CP-SAT": "tab:orange", "HiGHS": "tab:green"}
    for axis, (size, variant) in zip(axes[0], panels, strict=True):
        named: set[str] = set()
        for run in (run for run in runs if (run.size, run.variant) == (size, variant)):
            times = sorted({when for when, _, _ in run.steps})
            label = run.solver if run.solver not in named else None
            named.add(run.solver)
            gaps = [max(100 * run.gap(when), 1e-2) for when in times]
            axis.step(times, gaps, where="post", color=colours[run.solver], lw=1, label=label)
        for bar in bars(size, variant):
            if bar.gap_ratio is not None:
                axis.plot(bar.seconds, 100 * bar.gap_ratio, "kv", ms=6)
        axis.set(xscale="log", yscale="log", xlabel="time [s]", ylabel="gap [%]", title=f"{size}, {variant}")
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
