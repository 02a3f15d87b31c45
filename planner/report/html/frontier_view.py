"""Pareto frontiers of each service: rate per accelerator against latency, and the plan's configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from fleetplan.planner.landscape.frontier_points import FrontierPoint
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import ServiceInput
from fleetplan.planner.report.html.svg import INK, LIMIT, Frame, draw, series, short, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FRAME: Final = Frame(3.7, 2.3)


@dataclass(frozen=True, slots=True)
class ChosenConfiguration:
    """A configuration of the plan on the axes of a frontier."""

    hardware: str
    config: str
    latency_ms: float
    requests_per_s_per_accelerator: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """Frontiers of one service and phase.

    Attributes
    ----------
    service, phase : str
        Names of the service and the phase.
    latency : str
        TTFT or TPOT.
    limit_ms : float or None
        Latency limit of inference. [ms]
    lines : dict[str, tuple[FrontierPoint, ...]]
        Points by hardware over all variants of a model, fastest first.
    chosen : tuple[ChosenConfiguration, ...]
        Configurations in the plan.
    """

    service: str
    phase: str
    latency: str
    limit_ms: float | None
    lines: dict[str, tuple[FrontierPoint, ...]]
    chosen: tuple[ChosenConfiguration, ...]


def frontiers(plan: Plan, points: Sequence[FrontierPoint], services: Sequence[str]) -> tuple[Frontier, ...]:
    """Return the frontiers of the phases that the plan runs, for these services in this order."""
    stated = {} if plan.inputs is None else {each.name: each for each in plan.inputs.services}
    lines: dict[tuple[str, str], dict[str, list[FrontierPoint]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        if not point.latency_ms:
            # No latency is known for this phase.
            continue
        name = _without_variant(point.hardware, stated.get(point.service))
        lines[point.service, point.phase][name].append(point)
    found = []
    for service in services:
        running = {row.phase for row in plan.placements if row.service == service}
        for phase in ("prefill", "decode", "aggregated"):
            own = lines.get((service, phase))
            if phase not in running or own is None:
                continue
            by_ttft = phase == "prefill" or (service in stated and stated[service].ends_with_prompts)
            found.append(
                Frontier(
                    service,
                    phase,
                    "TTFT" if by_ttft else "TPOT",
                    _limit_ms(stated[service], by_ttft) if service in stated else None,
                    {name: _best(each) for name, each in own.items()},
                    _chosen(plan, service, phase, by_ttft),
                )
            )
    return tuple(found)


def _without_variant(hardware: str, service: ServiceInput | None) -> str:
    """Return the hardware of a point without its variant prefix: `fp8/H100-SXM` becomes H100-SXM."""
    for each in () if service is None else service.variants:
        if each.name and hardware.startswith(f"{each.name}/"):
            return hardware.removeprefix(f"{each.name}/")
    return hardware


def _best(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Return the nondominated points, fastest first; all variants of a model form one line."""
    found: list[FrontierPoint] = []
    for point in sorted(points, key=lambda p: (p.latency_ms, -p.requests_per_s_per_accelerator)):
        if not found or point.requests_per_s_per_accelerator > found[-1].requests_per_s_per_accelerator:
            found.append(point)
    return tuple(found)


def _limit_ms(service: ServiceInput, by_ttft: bool) -> float | None:
    if not by_ttft:
        return service.tpot_ms
    return None if service.ttft_ms is None else service.ttft_ms - service.outside_ms


def _chosen(plan: Plan, service: str, phase: str, by_ttft: bool) -> tuple[ChosenConfiguration, ...]:
    found: dict[tuple[str, str], ChosenConfiguration] = {}
    for row in plan.placements:
        latency_ms = row.ttft_ms if by_ttft else row.tpot_ms
        if (row.service, row.phase) != (service, phase) or latency_ms is None or row.utilisation <= 0:
            continue
        rate = row.requests_per_s / row.utilisation / row.accelerators
        found[row.hardware, row.config] = ChosenConfiguration(row.hardware, row.config, latency_ms, rate)
    return tuple(found.values())


def frontier_figure(frontier: Frontier, colours: dict[str, int]) -> Markup:
    """Return a figure with one line per hardware, the latency limit, and rings around the plan's choices."""
    from matplotlib.ticker import LogLocator, NullLocator  # noqa: PLC0415  (as in svg.draw)

    def paint(axes: Axes) -> None:
        for name, points in frontier.lines.items():
            axes.plot(
                [point.latency_ms for point in points],
                [point.requests_per_s_per_accelerator for point in points],
                ".-",
                markersize=3.5,
                lw=1.1,
                color=series(colours[name]),
            )
        for each in frontier.chosen:
            at = (each.latency_ms, each.requests_per_s_per_accelerator)
            axes.plot(*at, "o", ms=9, mew=1.6, mfc="none", mec=INK)
            axes.plot(*at, "o", ms=4, color=series(colours[each.hardware]))
        if frontier.limit_ms is not None:
            axes.axvline(frontier.limit_ms, color=LIMIT, lw=1.2, ls=(0, (3, 1.5)))
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        # Within two decades, 1, 2 and 5 have room for labels; wider ranges label only powers of ten.
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axes.xaxis.set_major_formatter(lambda latency_ms, _: thousands(latency_ms))
        axes.yaxis.set_major_formatter(lambda rate, _: thousands(rate))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"{frontier.latency} [ms]")
        axes.set_ylabel("requests/s per accelerator")
        axes.set_title(f"{short(frontier.service)}: {frontier.phase}")
        axes.grid(visible=True)

    return draw(paint, f"frontier of {frontier.service} {frontier.phase}", _FRAME)
