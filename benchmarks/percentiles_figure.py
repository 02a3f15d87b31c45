"""The figure of docs/traffic.md: TTFT of scenarios/percentiles.yaml, planned on means and for percentiles.

python benchmarks/percentiles_figure.py [docs/percentiles.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.replay import run_service
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.drawing import new_figure, save
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.replay.deployment import DeploymentBuilder, served_places
from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice, arriving
from fleetplan.planner.search import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET = Path(__file__).parents[1] / "scenarios" / "percentiles.yaml"
LIMIT_MS = 1000.0


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/percentiles.svg")
    figure, (axis,) = new_figure(1, 6.4, 3.8)
    for scenarios, name, colour in (
        ((), "planned for p95", "#1d4676"),
        (("means",), "planned on means", "#c02020"),
    ):
        ttft_ms, usd = replayed(scenarios)
        share = 1 - np.arange(1, ttft_ms.size + 1) / ttft_ms.size
        axis.plot(ttft_ms, share, color=colour, label=f"{name}: {usd / 1e3:.1f} k USD a quarter")
        print(f"{name}: {usd:,.0f} USD, p95 {np.quantile(ttft_ms, 0.95):,.0f} ms")
    axis.axvline(LIMIT_MS, color="black", linewidth=0.8, linestyle="--")
    axis.axhline(0.05, color="black", linewidth=0.8, linestyle="--")
    axis.set(xlabel="TTFT [ms]", ylabel="share of requests that take longer", yscale="log", ylim=(1e-3, 1))
    axis.set_xlim(0, 2600)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=9)
    save(figure, out)


def replayed(scenarios: tuple[str, ...]) -> tuple[FloatArray, float]:
    """TTFT of each request in rising order, and what the plan costs. [ms], [USD]"""
    outcome = plan_fleet(load_fleet(FLEET, scenarios, ()), SearchLimits(60.0, 5e-3, 1, 4)).outcome
    if not isinstance(outcome, Plan):
        raise SystemExit("no plan")
    fleet = load_fleet(FLEET)
    problem = build_problem(fleet, ())
    (place,) = served_places(problem, outcome.placements)
    choice = TrafficChoice(Arrivals.AS_PLANNED, 600.0)
    run = run_service(DeploymentBuilder(fleet, problem).deployment(place), arriving(place, choice, 0))
    return np.sort(run.ttft_ms), outcome.objective_usd


if __name__ == "__main__":
    main()
