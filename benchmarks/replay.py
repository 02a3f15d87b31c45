"""Whether plans made for percentiles keep them in replay, and how many accelerators that costs.

    python benchmarks/replay.py [--seeds 100] [--duration 300]

Each service of benchmarks/replay_fleet.yaml is planned, replayed with as many seeds, and replayed again with
ever fewer replicas of the same configurations until fewer than 99 of 100 seeds keep the limits: the smallest
number found by that search is what the plan is compared with. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetplan.perfmodel.replay import run_service
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.replay.deployment import DeploymentBuilder, ServedPlace, served_places
from fleetplan.planner.replay.outcome import place_outcome
from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice, arriving
from fleetplan.planner.search import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET: Final = Path(__file__).with_name("replay_fleet.yaml")
KEPT_BAR: Final = 0.99
EXTRA_BAR: Final = 0.10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--duration", type=float, default=300.0, help="simulated seconds a seed")
    options = parser.parse_args()
    fleet = load_fleet(FLEET)
    planned = plan_fleet(fleet, SearchLimits(120.0, 1e-3, seed=1, workers=8))
    if not isinstance(planned.outcome, Plan):
        print("no plan")
        return 1
    builder = DeploymentBuilder(fleet, planned.problem)
    good = True
    for place in served_places(planned.problem, planned.outcome.placements):
        good &= _compare(builder, place, options.seeds, options.duration)
    return 0 if good else 1


def _compare(builder: DeploymentBuilder, place: ServedPlace, seeds: int, duration_s: float) -> bool:
    ours = accelerators(place.rows)
    kept = kept_share(builder, place, seeds, duration_s)
    fewest = accelerators(_fewest(builder, place, seeds, duration_s)) if kept >= KEPT_BAR else ours
    extra = ours / fewest - 1
    met = kept >= KEPT_BAR and extra <= EXTRA_BAR
    runs = ", ".join(f"{row.phase[0].upper()} {row.replicas}x {row.config}" for row in place.rows)
    print(
        f"{place.service.name:30s} kept by {kept:.0%} of {seeds} seeds; {ours} accelerators, {fewest} are "
        f"the fewest that do: {extra:+.1%}   {'met' if met else 'MISSED'}   ({runs})",
        flush=True,
    )
    return met


def accelerators(rows: Sequence[Placement]) -> int:
    """Accelerators of placements."""
    return sum(row.accelerators for row in rows)


def kept_share(builder: DeploymentBuilder, place: ServedPlace, seeds: int, duration_s: float) -> float:
    """Share of the seeds with which every limit holds; seeds that no longer matter are not run."""
    deployment = builder.deployment(place)
    missed = 0
    for seed in range(1, seeds + 1):
        choice = TrafficChoice(Arrivals.AS_PLANNED, duration_s, seed=seed)
        run = run_service(deployment, arriving(place, choice, 0), seed=seed)
        missed += not place_outcome(place, run, duration_s).holds
        if missed > 2 * (1 - KEPT_BAR) * seeds + 1:
            break
    return 1 - missed / seeds


def _fewest(
    builder: DeploymentBuilder, place: ServedPlace, seeds: int, duration_s: float
) -> tuple[Placement, ...]:
    rows = place.rows
    while True:
        for fewer in _one_less(rows):
            if kept_share(builder, replace(place, rows=fewer), seeds, duration_s) >= KEPT_BAR:
                rows = fewer
                break
        else:
            return rows


def _one_less(rows: tuple[Placement, ...]) -> Iterator[tuple[Placement, ...]]:
    """Placements with one replica less, that of the most accelerators first."""
    order = sorted(range(len(rows)), key=lambda k: -rows[k].accelerators / rows[k].replicas)
    for k in order:
        row = rows[k]
        if row.replicas > 1:
            less = {
                "replicas": row.replicas - 1,
                "accelerators": row.accelerators - row.accelerators // row.replicas,
            }
            yield (*rows[:k], row.model_copy(update=less), *rows[k + 1 :])


if __name__ == "__main__":
    sys.exit(main())
