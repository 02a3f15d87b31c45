"""The fleet as a picture: regions, their pools, and the accelerators of each service in each pool."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Plan, PoolUse
from fleetplan.planner.report.html.moments import MomentView, moments
from fleetplan.planner.report.html.svg import SERIES_COLOURS

OWN_COLOURS = 11
"""Services with a colour each; all others share a twelfth colour."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a pool.

    Attributes
    ----------
    name : str
        A service, or the purpose of the part, such as reserve.
    style : str
        CSS class.
    accelerators : int
        Size of the part. [accelerators]
    share : float
        Share of the pool, 0 to 1.
    """

    name: str
    style: str
    accelerators: int
    share: float


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """A pool as a bar, with a width relative to the largest pool of the fleet.

    Attributes
    ----------
    use : PoolUse
        Figures of the pool.
    width_ratio : float
        Width relative to the widest bar, 0 to 1.
    segments : tuple[Segment, ...]
        Parts of the bar from left to right.
    """

    use: PoolUse
    width_ratio: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class RegionPicture:
    """A region with its pools, its power draw and its power limit (None: no limit). [kW]"""

    name: str
    accelerators: int
    drawn_kw: float
    power_kw: float | None
    pools: tuple[PoolPicture, ...]


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """The fleet at one moment."""

    label: str
    regions: tuple[RegionPicture, ...]


def fleet_pictures(plan: Plan) -> tuple[FleetPicture, ...]:
    """Return one picture per moment."""
    widest = max((use.accelerators for use in plan.pools), default=1)
    styles = service_styles(plan)
    return tuple(_picture(plan, moment, styles, max(widest, 1)) for moment in moments(plan))


def service_styles(plan: Plan) -> dict[str, str]:
    """Return the CSS class of the most expensive services, which have a colour each; the others share one."""
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.service] += row.usd
    # With one service too many, "other services" would contain only that one.
    most = OWN_COLOURS if len(usd) > SERIES_COLOURS else SERIES_COLOURS
    dearest = set(sorted(usd, key=lambda name: -usd[name])[:most])
    own = [name for name in usd if name in dearest]
    return {name: f"s{index}" for index, name in enumerate(own)}


def _picture(plan: Plan, moment: MomentView, styles: dict[str, str], widest: int) -> FleetPicture:
    power = {} if plan.inputs is None else {each.name: each.power_kw for each in plan.inputs.regions}
    pools: dict[str, list[PoolPicture]] = defaultdict(list)
    for use in plan.pools:
        if use.moment_key == moment.key and use.accelerators:
            parts = _segments(use, moment, styles)
            pools[use.region].append(PoolPicture(use, use.accelerators / widest, parts))
    return FleetPicture(
        moment.label,
        tuple(
            RegionPicture(
                name,
                sum(each.use.accelerators for each in pictures),
                sum(each.use.power_kw for each in pictures),
                power.get(name, {}).get(moment.key[0]),
                tuple(sorted(pictures, key=lambda each: -each.use.accelerators)),
            )
            for name, pictures in pools.items()
        ),
    )


def _segments(use: PoolUse, moment: MomentView, styles: dict[str, str]) -> tuple[Segment, ...]:
    running: dict[str, int] = defaultdict(int)
    for row in moment.placements:
        if row.pool == use.pool:
            running[row.service] += row.accelerators
    parts = [(name, style, running[name]) for name, style in styles.items() if name in running]
    others = {name: count for name, count in running.items() if name not in styles}
    if others:
        names = next(iter(others)) if len(others) == 1 else counted(len(others), "other service")
        parts.append((names, "other", sum(others.values())))
    kept = use.reserve_accelerators + use.maintenance_accelerators
    parts += [
        # A replica of several hosts takes them whole, and the services pay for all of it.
        ("rest of its hosts", "rest", use.used_accelerators - sum(running.values())),
        ("reserve", "reserve", use.reserve_accelerators),
        ("out of service", "maintenance", use.maintenance_accelerators),
        ("idle", "idle", use.accelerators - use.used_accelerators - kept),
    ]
    return tuple(
        Segment(name, style, count, count / use.accelerators) for name, style, count in parts if count > 0
    )
