"""The fleet as a picture: regions, their pools, and which service runs on how much of each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetplan.planner.plan import Plan, PoolUse
from fleetplan.planner.report.html.moments import Moment, in_order, moments


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a pool.

    Attributes
    ----------
    name : str
        A service, or what the part is kept for.
    style : str
        Class of the style sheet.
    accelerators : int
        Its size.
    share : float
        Of the pool, 0 to 1.
    """

    name: str
    style: str
    accelerators: int
    share: float


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """A pool as a bar, as wide as it is large beside the largest of the fleet.

    Attributes
    ----------
    use : PoolUse
        Its figures.
    width_ratio : float
        Of the widest bar, 0 to 1.
    segments : tuple[Segment, ...]
        From left to right.
    """

    use: PoolUse
    width_ratio: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class RegionPicture:
    """A region with its pools; `power_kw` is what it may draw, None without a limit. [kW]"""

    name: str
    accelerators: int
    power_kw: float | None
    pools: tuple[PoolPicture, ...]


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """The fleet at one moment."""

    label: str
    regions: tuple[RegionPicture, ...]


def fleet_pictures(plan: Plan) -> tuple[FleetPicture, ...]:
    """Return one picture a moment."""
    widest = max((use.accelerators for use in plan.pools), default=1)
    colours = in_order([row.service for row in plan.placements])
    return tuple(_picture(plan, moment, colours, max(widest, 1)) for moment in moments(plan))


def _picture(plan: Plan, moment: Moment, colours: dict[str, int], widest: int) -> FleetPicture:
    power = {} if plan.inputs is None else {each.name: each.power_kw for each in plan.inputs.regions}
    pools: dict[str, list[PoolPicture]] = defaultdict(list)
    for use in plan.pools:
        if use.moment_key == moment.key and use.accelerators:
            parts = _segments(use, moment, colours)
            pools[use.region].append(PoolPicture(use, use.accelerators / widest, parts))
    return FleetPicture(
        moment.label,
        tuple(
            RegionPicture(
                name,
                sum(each.use.accelerators for each in pictures),
                power.get(name, {}).get(moment.key[0]),
                tuple(sorted(pictures, key=lambda each: -each.use.accelerators)),
            )
            for name, pictures in pools.items()
        ),
    )


def _segments(use: PoolUse, moment: Moment, colours: dict[str, int]) -> tuple[Segment, ...]:
    running: dict[str, int] = defaultdict(int)
    for row in moment.placements:
        if row.pool == use.pool:
            running[row.service] += row.accelerators
    parts = [
        (name, f"s{colours[name] % 12}", count)
        for name, count in sorted(running.items(), key=lambda item: colours[item[0]])
    ]
    idle = use.accelerators - sum(running.values()) - use.reserve_accelerators - use.maintenance_accelerators
    parts += [
        ("reserve", "reserve", use.reserve_accelerators),
        ("out of service", "maintenance", use.maintenance_accelerators),
        ("idle", "idle", idle),
    ]
    return tuple(
        Segment(name, style, count, count / use.accelerators) for name, style, count in parts if count > 0
    )
