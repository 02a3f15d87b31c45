"""Moments: combinations of period, slice of the day and demand scenario, for which placements are decided.

Purchases, rents and retirements belong to periods, placements to moments. A fleet without slices and
scenarios has one moment per period, with the same index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypedDict

from fleetplan.fleet.inventory import DemandCase, Fleet, Slice, demand_cases
from fleetplan.fleet.units import HOURS_PER_DAY
from fleetplan.planner.units import exact


class RowMoment(TypedDict):
    """Fields that identify the moment of a plan row."""

    period: str
    slice: str | None
    scenario: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """One set of placements.

    Attributes
    ----------
    period : int
        Period index: its installed units can be used.
    day_label : str
        Period, with the demand scenario if there are several; used in solver names.
    before : int or None
        Index of the same slice and scenario one period earlier; None in the first period.
    slice_before : int or None
        Index of the slice before, where the last slice of the same kind of day precedes the first; None if
        the day is whole.
    hours : float
        Length within a day. [h]
    probability : float
        Probability of its demand scenario, 0 to 1.
    slice : str or None
        Slice of the day; None for the whole day.
    day_kind : str or None
        Kind of day that it belongs to; None if all days are equal.
    days_share : Fraction
        Share of days of this kind.
    scenario : str or None
        Demand scenario; None if demand is certain.
    """

    period: int
    day_label: str
    before: int | None = None
    slice_before: int | None = None
    hours: float = HOURS_PER_DAY
    probability: float = 1.0
    slice: str | None = None
    day_kind: str | None = None
    days_share: Fraction = Fraction(1)
    scenario: str | None = None

    @property
    def label(self) -> str:
        """Return the period, with demand scenario and slice if there are several; used in solver names."""
        return self.day_label if self.slice is None else f"{self.day_label},{self.slice}"

    @property
    def hours_share(self) -> float:
        """Return the share of the period's hours, 0 to 1."""
        return self.hours / HOURS_PER_DAY * float(self.days_share)

    @property
    def weight(self) -> float:
        """Return the share of a steady cost in the period's expected cost; a period's moments add up to 1."""
        return self.hours_share * self.probability

    @property
    def exact_weight(self) -> Fraction:
        """Return the weight as an exact fraction of the fleet file's numbers."""
        return self.hours_of_mean_day / exact(HOURS_PER_DAY) * exact(self.probability)

    @property
    def hours_of_mean_day(self) -> Fraction:
        """Return the hours of a day, averaged over all kinds of days. [h]"""
        return exact(self.hours) * self.days_share

    @property
    def case(self) -> DemandCase:
        """Return slice and demand scenario, as a service's demand names them."""
        return self.slice, self.scenario


def fleet_moments(fleet: Fleet) -> tuple[Moment, ...]:
    """Return the moments of a fleet, ordered by period, scenario and slice."""
    cases = demand_cases(fleet.slices, fleet.demand_scenarios)
    before = _slices_before(fleet.slices)
    moments: list[Moment] = []
    for q, period in enumerate(fleet.periods):
        for position, (part, scenario) in enumerate(cases):
            index = len(moments)
            place = position % len(before) if before else 0
            moments.append(
                Moment(
                    period=q,
                    day_label=period if scenario is None else f"{period},{scenario.name}",
                    before=index - len(cases) if q else None,
                    slice_before=None
                    if not before or before[place] == place
                    else index + before[place] - place,
                    hours=HOURS_PER_DAY if part is None else part.hours,
                    probability=1.0 if scenario is None else scenario.probability,
                    slice=None if part is None else part.name,
                    day_kind=None if part is None else part.day_kind,
                    days_share=Fraction(1) if part is None else part.days_share,
                    scenario=None if scenario is None else scenario.name,
                )
            )
    return tuple(moments)


def _slices_before(slices: Sequence[Slice]) -> list[int]:
    """Return the position of the slice before each.

    The first slice of a day follows the last of a day of the same kind; transitions between kinds of days are
    ignored.
    """
    of_kind: dict[str | None, list[int]] = {}
    for position, part in enumerate(slices):
        of_kind.setdefault(part.day_kind, []).append(position)
    return [
        of_kind[part.day_kind][of_kind[part.day_kind].index(position) - 1]
        for position, part in enumerate(slices)
    ]
