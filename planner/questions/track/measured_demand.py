"""Demand of the next plan: the figures of a fleet file as they go on from what was measured."""

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
    """From the horizon of the plan to the next one.

    Attributes
    ----------
    before, after : tuple[str, ...]
        Periods of both.
    periods : int
        Between their first periods.
    calendar : Calendar
        Of both.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    periods: int
    calendar: Calendar


@dataclass(frozen=True, slots=True)
class DemandScale:
    """What demand is multiplied by: measured over planned by region, else of all regions, and growth."""

    shift: Shift
    regions: Sequence[str]
    by_region: Mapping[str, float]
    overall: float
    growth: Mapping[str, float] | float

    def factor(self, region: str | None, periods: int) -> float:
        """Return the factor in a region, so many periods after the figure."""
        ratio = self.by_region.get(region, self.overall) if region else self.overall
        growth = self.growth if isinstance(self.growth, float) else self.growth.get(region or "", 1.0)
        return (ratio if is_off(ratio) else 1.0) * growth**periods


def growths(stated: object, calendar: Calendar) -> Mapping[str, float] | float:
    """Return the growth that a service states, as a factor a period: by region, or one."""
    if isinstance(stated, Mapping):
        return {region: _growth(str(text), calendar) for region, text in stated.items()}
    return 1.0 if stated is None else _growth(str(stated), calendar)


def _growth(text: str, calendar: Calendar) -> float:
    return growth_per_period(text, calendar.months) or 1.0


def demand_from_now(node: object, scale: DemandScale, region: str | None, period: str | None) -> object:
    """Return demand as it goes on from what was measured: the same tree without the periods that are over."""
    shift = scale.shift
    if not isinstance(node, Mapping):
        # A figure without a period is that of the first one, and grows from it.
        return times(node, scale.factor(region, shift.periods if period is None else 0))
    if node and all(key in shift.before for key in node):
        return _demand_by_period(node, scale, region)
    return {
        key: demand_from_now(value, scale, str(key) if key in scale.regions else region, period)
        for key, value in node.items()
    }


def _demand_by_period(node: Mapping[str, object], scale: DemandScale, region: str | None) -> object:
    """Return the periods that are left; the first of them goes on from the last one that is over."""
    shift = scale.shift
    index = {period: k for k, period in enumerate(shift.before)}
    kept = {key: _scaled(node[key], scale, region, 0) for key in node if key in shift.after}
    over = [key for key in node if index[key] < shift.periods]
    if shift.after[0] not in kept and over:
        latest = max(over, key=lambda key: index[key])
        # Growth goes on after the last period that is given.
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
    """Return a figure with the digits that a fleet file shows."""
    return float(f"{value:.{_DIGITS}g}")


def is_off(ratio: float) -> bool:
    """Whether a measured ratio is worth a change of the file."""
    return abs(ratio - 1) >= NOTABLE_RATIO
