"""Services in the report: capacity against demand, and latency against the limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.plan.inputs import PlanInputs
from fleetplan.planner.report.html.moments import in_order, moments
from fleetplan.planner.report.html.svg import INK, LIMIT, Frame, draw, series, short, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_SERVICES = 12
"""Maximum number of services with figures, by cost; the page refers to tables for the others."""

LONGEST_TICK = 18
"""Maximum length of a label below the axis; longer labels leave no room for the figure. [letters]"""

LABEL_LETTERS = 36
"""Total length of labels that fit side by side below a figure. [letters]"""


@dataclass(frozen=True, slots=True)
class Meter:
    """A latency with its limit.

    Attributes
    ----------
    value_ms, limit_ms : float
        Latency and limit, including the time outside inference if it counts. [ms]
    ratio : float
        Latency divided by its limit.
    """

    value_ms: float
    limit_ms: float | None

    @property
    def ratio(self) -> float | None:
        """Return the latency divided by its limit, or None without a limit."""
        return None if not self.limit_ms else self.value_ms / self.limit_ms


@dataclass(frozen=True, slots=True)
class LatencyMeters:
    """Latency of a service in a region in its worst moment and class, or the reason for a missing TPOT."""

    service: str
    region: str
    ttft: Meter | None
    tpot: Meter | None
    no_tpot: str = "not known"


def latency_rows(plan: Plan) -> tuple[LatencyMeters, ...]:
    """Return one row per service and region, without latencies that are unknown."""
    targets = {} if plan.inputs is None else {each.name: each for each in plan.inputs.services}
    groups: dict[tuple[str, str], list[Placement]] = defaultdict(list)
    for row in plan.placements:
        groups[row.service, row.region].append(row)
    found = []
    for (service, region), rows in groups.items():
        target = targets.get(service)
        outside_ms = 0.0 if target is None else target.outside_ms
        ttft = _worst(row.ttft_ms for row in rows if row.phase != "decode")
        tpot = _worst(row.tpot_ms for row in rows if row.phase != "prefill")
        found.append(
            LatencyMeters(
                service,
                region,
                None
                if ttft is None
                else Meter(ttft + outside_ms, None if target is None else target.ttft_ms),
                None if tpot is None else Meter(tpot, None if target is None else target.tpot_ms),
                "one token" if target is not None and target.ends_with_prompts else "not known",
            )
        )
    return tuple(row for row in found if row.ttft is not None or row.tpot is not None)


def _worst(latencies: Iterable[float | None]) -> float | None:
    return max((each for each in latencies if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class CapacityView:
    """Capacity of a service's replicas, and its demand.

    Attributes
    ----------
    service : str
        Name of the service.
    labels : tuple[str, ...]
        Labels of the moments.
    by_hardware : dict[str, tuple[float, ...]]
        Rate sustained within the latency limits, by hardware and moment. [requests/s]
    demand, planned : tuple[float, ...]
        Peak demand, without and with headroom. [requests/s]
    """

    service: str
    labels: tuple[str, ...]
    by_hardware: dict[str, tuple[float, ...]]
    demand: tuple[float, ...]
    planned: tuple[float, ...]


def capacities(plan: Plan, inputs: PlanInputs) -> tuple[CapacityView, ...]:
    """Return the capacity of the largest services, the most expensive first."""
    return tuple(_capacity(plan, inputs, name) for name in largest_services(plan))


def largest_services(plan: Plan) -> tuple[str, ...]:
    """Return the most expensive services, at most `LARGEST_SERVICES`."""
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.service] += row.usd
    return tuple(sorted(usd, key=lambda name: -usd[name])[:LARGEST_SERVICES])


def _capacity(plan: Plan, inputs: PlanInputs, service: str) -> CapacityView:
    every = moments(plan)
    headroom = next(each.headroom for each in inputs.services if each.name == service)
    sustained: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(every))
    demand = []
    for position, moment in enumerate(every):
        rows = [row for row in moment.placements if row.service == service]
        for row in _limiting(rows):
            if row.utilisation > 0:
                sustained[row.hardware][position] += row.requests_per_s / row.utilisation
        demand.append(
            sum(
                each.requests_per_s
                for each in inputs.demand
                if each.service == service and (each.period, each.slice, each.scenario) == moment.key
            )
        )
    return CapacityView(
        service,
        tuple(moment.label for moment in every),
        {name: tuple(values) for name, values in sustained.items()},
        tuple(demand),
        tuple(rate * (1 + headroom) for rate in demand),
    )


@dataclass(frozen=True, slots=True)
class CapacityBar:
    """Capacity of a service as a bar, in a plan with only one moment.

    Attributes
    ----------
    service : str
        Name of the service.
    parts : tuple[tuple[str, float], ...]
        Hardware and its width relative to the page, 0 to 1.
    demand_at, planned_at : float
        Positions of peak demand and of demand with headroom, 0 to 1.
    sustained, demand, planned : float
        Capacity within the latency limits, peak demand, and demand with headroom. [requests/s]
    """

    service: str
    parts: tuple[tuple[str, float], ...]
    demand_at: float
    planned_at: float
    sustained: float
    demand: float
    planned: float


WIDEST_BAR = 2.0
"""Ratio of capacity to peak demand at which a bar is cut; the text next to it states the full figure."""


def capacity_bars(views: Sequence[CapacityView]) -> tuple[CapacityBar, ...]:
    """Return one bar per service, with peak demand at the same position; none for several moments.

    A chart per service would show only one bar each.
    """
    if any(len(view.labels) != 1 or view.demand[0] <= 0 for view in views):
        return ()
    sums = [sum(values[0] for values in view.by_hardware.values()) for view in views]
    ratios = [max(total, view.planned[0]) / view.demand[0] for total, view in zip(sums, views, strict=True)]
    scale = min(max(ratios, default=1.0), WIDEST_BAR)
    found = []
    for total, view in zip(sums, views, strict=True):
        demand, parts, room = view.demand[0], [], 1.0
        for name, values in view.by_hardware.items():
            parts.append((name, min(values[0] / demand / scale, room)))
            room -= parts[-1][1]
        found.append(
            CapacityBar(
                view.service,
                tuple(parts),
                1 / scale,
                min(view.planned[0] / demand / scale, 1.0),
                total,
                demand,
                view.planned[0],
            )
        )
    return tuple(found)


def _limiting(rows: list[Placement]) -> list[Placement]:
    """Return aggregated replicas, and each region's disaggregated phase that sustains the lower rate."""
    kept = [row for row in rows if row.phase == "aggregated"]
    for region in dict.fromkeys(row.region for row in rows):
        phases = [
            [row for row in rows if row.region == region and row.phase == phase]
            for phase in ("prefill", "decode")
        ]
        if all(phases):
            kept += min(phases, key=lambda part: sum(r.requests_per_s / (r.utilisation or 1) for r in part))
    return kept


def capacity_figure(capacity: CapacityView, colours: dict[str, int]) -> Markup:
    """Return bars of capacity stacked by hardware, with demand and planned demand drawn above them."""

    def paint(axes: Axes) -> None:
        positions = range(len(capacity.labels))
        bottom = [0.0] * len(capacity.labels)
        for name, values in capacity.by_hardware.items():
            axes.bar(positions, values, 0.55, bottom, color=series(colours[name]))
            bottom = [low + value for low, value in zip(bottom, values, strict=True)]
        for position in positions:
            ends = (position - 0.38, position + 0.38)
            axes.hlines(capacity.demand[position], *ends, color=INK, lw=1.6)
            axes.hlines(capacity.planned[position], *ends, color=LIMIT, lw=1.2, ls=(0, (3, 1.5)))
        axes.set_xticks(list(positions), [short(each, LONGEST_TICK) for each in capacity.labels])
        if sum(map(len, capacity.labels)) > LABEL_LETTERS:
            for text in axes.get_xticklabels():
                text.set(rotation=40, horizontalalignment="right")
        axes.set_xlim(-0.6, len(capacity.labels) - 0.4)
        axes.set_ylim(0, 1.08 * max(*bottom, *capacity.planned, 1e-9))
        axes.yaxis.set_major_formatter(lambda rate, _: thousands(rate))
        axes.set_ylabel("requests/s")
        axes.grid(visible=True, axis="y")
        axes.set_title(short(capacity.service))

    slanted = sum(map(len, capacity.labels)) > LABEL_LETTERS
    frame = Frame(3.7, 2.7, bottom_in=0.95) if slanted else Frame(3.7, 2.1, bottom_in=0.26)
    return draw(paint, f"capacity against demand of {capacity.service}", frame)


def hardware_colours(plan: Plan) -> dict[str, int]:
    """Return the colour index of each hardware, the same in every figure."""
    return in_order([row.hardware for row in plan.placements])
