"""How fast fleets of every size are solved, how close to the optimum, and against what.

    python benchmarks/solve.py [--sizes small,medium] [--seeds 2] [--variants plain,head] [--flat]
                               [--out DIR] [--repeat] [--workers 2] [--backend dask://HOST:PORT]
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
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    # As a script, Python looks beside this file alone.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.fleets import write_fleet
from benchmarks.solve_families import FAMILIES, FleetFamily, SolveBar
from benchmarks.solve_runs import SolverRun, cpsat_alone, highs_alone, linear_usd, measured, ours, whole_model

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.candidates import prepare
from fleetplan.planner.formulation import (
    PlanningModel,
    fixed_usd,
)
from fleetplan.planner.jobs import LOCAL, connected
from fleetplan.planner.search import SearchLimits, default_workers, search
from fleetplan.scenarios.load import load_fleet

MEMORY_BAR_GIB: Final = 4.0
"""Of a large fleet, all processes together."""


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
    parser.add_argument("--workers", type=int, default=default_workers(), help="parallel searches")
    parser.add_argument("--backend", default=LOCAL, help="as plan solve has it")
    arguments = parser.parse_args()
    with connected(arguments.backend, arguments.workers) as cluster:
        met = solve_all(arguments, SearchLimits(workers=arguments.workers, cluster=cluster))
        if cluster is not None:
            print(f"{cluster.moved_bytes / 1e6:.1f} MB to and from the cluster, {cluster.lost or 'not lost'}")
    sys.exit(not met)


def solve_all(arguments: argparse.Namespace, limits: SearchLimits) -> bool:
    """Solve the fleets that were asked for; whether all bars are met."""
    print(f"{usable_cores()} cores, load {os.getloadavg()[0]:.1f} before the first solve")
    runs, missed = [], []
    family = FAMILIES[arguments.family]
    for size in (arguments.sizes or family.sizes).split(","):
        for variant in (arguments.variants or family.variants).split(","):
            if not family.bars(size, variant):
                continue
            own = [
                run
                for seed in range(1, arguments.seeds + 1)
                for run in solve_fleet(family, size, variant, seed, arguments.flat, limits)
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
    return not missed


def solve_fleet(
    family: FleetFamily, size: str, variant: str, seed: int, flat: bool, within: SearchLimits
) -> list[SolverRun]:
    """Solve one fleet by our search, and by one model each of CP-SAT and HiGHS."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = load_fleet(family.write(Path(folder), size, seed, variant), (), ())
        candidates, problem = prepare(fleet, lambda _: None)
    bars = family.bars(size, variant)
    limit_s = max(bar.seconds for bar in bars)
    gap_ratio = min((bar.gap_ratio for bar in bars if bar.gap_ratio is not None), default=0.0)
    # A little less than the bar, which is on what is reported; nobody stops early where solvers are compared.
    asked = 0.0 if flat else 0.98 * gap_ratio
    limits = replace(within, time_limit_s=limit_s, gap_ratio=asked, seed=seed)
    runs = [
        measured(
            SolverRun(size, variant, seed, "blocks", fixed_usd(problem)), ours(problem, candidates, limits)
        )
    ]
    if flat:
        solution = None if runs[0].result is None else runs[0].result.solution
        runs[0].linear_usd = linear_usd(whole_model(problem, solution), runs[0].fixed_usd)

        def build() -> PlanningModel:
            return whole_model(problem, solution)

        for name, solve in (("CP-SAT", cpsat_alone), ("HiGHS", highs_alone)):
            run = SolverRun(size, variant, seed, name, fixed_usd(problem))
            runs.append(measured(run, lambda run, solve=solve: solve(run, build, runs[0].wall_s)))
    for run in runs:
        print(line(run), flush=True)
    return runs


def line(run: SolverRun) -> str:
    """One run in one line."""
    plan, bound = run.at(run.wall_s)
    return (
        f"{run.size:13} {run.variant:15} seed {run.seed} {run.solver:6} "
        f"first plan {run.first_plan_s():6.1f} s  "
        f"gap {100 * run.gap(run.wall_s):6.2f} % (decidable {100 * run.decidable_gap(run.wall_s):6.2f} %) "
        f"after {run.wall_s:6.1f} s  plan {(plan or 0) / 1e6:9.4f} M  bound {(bound or 0) / 1e6:9.4f} M  "
        f"{run.memory_gib:4.1f} GiB  violations {run.violations}"
    )


def judge(family: FleetFamily, size: str, variant: str, runs: Sequence[SolverRun]) -> list[str]:
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


def against(mine: SolverRun, other: SolverRun) -> tuple[str, bool]:
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
            fleet = load_fleet(write_fleet(Path(folder), size, seed), (), ())
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


def write_steps(path: Path, runs: Sequence[SolverRun]) -> None:
    """Every step of every run as a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("size", "variant", "seed", "solver", "seconds", "plan_usd", "bound_usd", "gap"))
        for run in runs:
            for when, plan, bound in run.steps:
                row = (run.size, run.variant, run.seed, run.solver)
                writer.writerow((*row, round(when, 2), plan, bound, run.gap(when)))


def draw(path: Path, runs: Sequence[SolverRun], bars: Callable[[str, str], tuple[SolveBar, ...]]) -> None:
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
