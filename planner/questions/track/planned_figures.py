"""Planned demand, load and cost in the structure of the measurements."""

from __future__ import annotations

from collections import defaultdict

from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.questions.track.actuals import ServedLoad


class PlannedFigures:
    """Figures of the plan in the structure of the actuals, for the most likely demand scenario."""

    def __init__(self, plan: Plan) -> None:
        likely = max(plan.demand_scenarios, key=lambda row: row.probability, default=None)
        self._scenario = None if likely is None else likely.name
        self.placements = [row for row in plan.placements if row.scenario == self._scenario]
        self.all_placements = plan.placements
        self.hardware = {row.pool: row.hardware for row in plan.pools}
        by_slice: dict[tuple[str, str, str], dict[str | None, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for asked in () if plan.inputs is None else plan.inputs.demand:
            if asked.scenario == self._scenario:
                by_slice[asked.service, asked.region, asked.period][asked.slice] += asked.requests_per_s
        self.demand = {key: max(parts.values()) for key, parts in by_slice.items()}
        self.loads = _planned_loads(self.placements)
        self.pools = [row for row in plan.pools if row.scenario == self._scenario]
        self.pool_usd: dict[tuple[str, str], float] = defaultdict(float)
        for row in plan.pools:
            self.pool_usd[row.pool, row.period] += row.usd + row.retirement_usd
        for placed in plan.placements:
            self.pool_usd[placed.pool, placed.period] += placed.running_usd
        self.usd_by_period = {
            period: sum(usd for (_, q), usd in self.pool_usd.items() if q == period)
            for period in plan.periods
        }

    def usd_by_origin(self, service: str, period: str) -> dict[str, dict[str, float]]:
        """Return the cost of a service in a period, by pool and by region of its requests. [USD]"""
        found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.all_placements:
            if (row.service, row.period) == (service, period):
                away = {origin: sum(rates.values()) for origin, rates in row.requests_per_s_by_origin.items()}
                # Replicas without requests are kept for their own region.
                served = row.requests_per_s or 1.0
                for origin, rate in ((row.region, served - sum(away.values())), *away.items()):
                    found[row.pool][origin] += row.usd * rate / served
        return found


def _planned_loads(placements: list[Placement]) -> dict[tuple[str, str, str], ServedLoad]:
    """Return the load of a service's replicas in a pool; prefill and decode serve the same requests."""
    requests: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    found: dict[tuple[str, str, str], ServedLoad] = defaultdict(ServedLoad)
    for row in placements:
        key = (row.service, row.pool, row.period)
        requests[key][row.phase] += row.requests_per_s
        found[key].busy_accelerators += row.accelerators * row.utilisation
    for key, phases in requests.items():
        twice = min(phases.get("prefill", 0.0), phases.get("decode", 0.0))
        found[key].requests = sum(phases.values()) - twice
    return found
