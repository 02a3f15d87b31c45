"""Demand of the next plan: update the figures of a fleet file from measured demand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.fleet.schema.quantities import growth_per_period
from fleetplan.planner.questions.track.variances import NOTABLE_RATIO

_FIRST_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Shift:
    """Shift from the horizon of the plan to the next horizon.

    Attributes
    ----------
    before, after : tuple[str, ...]
        Periods of the two horizons.
    periods : int
        Number of periods between their first periods.
    calendar : Calendar
        Calendar of both horizons.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    periods: int
    calendar: Calendar


@dataclass(frozen=True, slots=True)
class DemandScale:
    """Factor on demand: ratio of measured to planned demand (by region or overall), and growth."""

    shift: Shift
    regions: Sequence[str]
    by_region: Mapping[str, float]
    overall: float
    growth: Mapping[str, float] | float

    def factor(self, region: str | None, periods: int) -> float:
        """Return the factor in a region, a number of periods after the figure."""
        ratio = self.by_region.get(region, self.overall) if region else self.overall
        growth = self.growth if isinstance(self.growth, float) else self.growth.get(region or "", 1.0)
        return (ratio if is_off(ratio) else 1.0) * growth**periods


def growths(stated: object, calendar: Calendar) -> Mapping[str, float] | float:
    """Return the growth stated by a service as a factor per period, by region or one for all."""
    if isinstance(stated, Mapping):
        return {region: _growth(str(text), calendar) for region, text in stated.items()}
    return 1.0 if stated is None else _growth(str(stated), calendar)


def _growth(text: str, calendar: Calendar) -> float:
    return growth_per_period(text, calendar.months) or 1.0


def demand_from_now(node: object, scale: DemandScale, region: str | None, period: str | None) -> object:
    """Return a tree of demand figures scaled to the measured demand, without past periods."""
    shift = scale.shift
    if not isinstance(node, Mapping):
        # A figure without a period belongs to the first period and grows from there.
        return times(node, scale.factor(region, shift.periods if period is None else 0))
    if node and all(key in shift.before for key in node):
        return _demand_by_period(node, scale, region)
    return {
        key: demand_from_now(value, scale, str(key) if key in scale.regions else region, period)
        for key, value in node.items()
    }


def _demand_by_period(node: Mapping[str, object], scale: DemandScale, region: str | None) -> object:
    """Return the remaining periods; the first of them continues the last past period."""
    shift = scale.shift
    index = {period: k for k, period in enumerate(shift.before)}
    kept = {key: _scaled(node[key], scale, region, 0) for key in node if key in shift.after}
    over = [key for key in node if index[key] < shift.periods]
    if shift.after[0] not in kept and over:
        latest = max(over, key=lambda key: index[key])
        # Growth starts after the last stated period.
        periods = 0 if kept else shift.periods - index[latest]
        kept = {shift.after[0]: _scaled(node[latest], scale, region, periods), **kept}
    return kept[shift.after[0]] if set(kept) == {shift.after[0]} else kept


def _scaled(node: object, scale: DemandScale, region: str | None, periods: int) -> object:
    if isinstance(node, Mapping):
        return {
            key: _scaled(value, scale, str(key) if key in scale.regions else region, periods)
            for key, value in node.items()
        }
    return times(node, scale.factor(region, periods))


def times(value: object, ratio: float) -> object:
    """Return a figure times a ratio: a number, the first number of a quantity, or those of a mapping."""
    if ratio == 1.0:
        return value
    if isinstance(value, Mapping):
        return {key: times(each, ratio) for key, each in value.items()}
    if isinstance(value, str):
        return _FIRST_NUMBER.sub(lambda found: f"{rounded(float(found[0]) * ratio):g}", value, count=1)
    return rounded(value * ratio) if isinstance(value, int | float) else value


def rounded(value: float) -> float:
    """Return a figure rounded to the digits of a fleet file."""
    return float(f"{value:.{_DIGITS}g}")


def is_off(ratio: float) -> bool:
    """Return whether a measured ratio is large enough to change the file."""
    return abs(ratio - 1) >= NOTABLE_RATIO
