"""Moments: a period, the part of its days, and the demand that turns out, for which placements are decided.

What is bought, rented and retired belongs to periods; what runs belongs to moments. A fleet without
time-of-day slices and with one demand has one moment a period, so that both have the same index.
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
    """Fields of a row of a plan that belongs to a moment."""

    period: str
    slice: str | None
    scenario: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """One set of placements.

    Attributes
    ----------
    period : int
        Index into the periods: what stands then can be used.
    day_label : str
        The period, with the demand scenario where there are several; in solver names.
    before : int or None
        Index of the moment one period earlier, in the same slice and scenario; None in the first period.
    slice_before : int or None
        Index of the moment one slice earlier, for the first slice the last one of a day of the same kind;
        None where the day is whole.
    hours : float
        Of a day. [h]
    probability : float
        Of its demand scenario, 0 to 1.
    slice : str or None
        Part of the day; None where it is the whole day.
    day_kind : str or None
        Kind of day that it is a part of; None where all days are alike.
    days_share : Fraction
        Share of all days that are of the kind.
    scenario : str or None
        Demand scenario; None where demand is certain.
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
        """The period, with the demand scenario and the slice where there are several; in solver names."""
        return self.day_label if self.slice is None else f"{self.day_label},{self.slice}"

    @property
    def hours_share(self) -> float:
        """Share of the period's hours, 0 to 1."""
        return self.hours / HOURS_PER_DAY * float(self.days_share)

    @property
    def weight(self) -> float:
        """Share of the period's expected cost that a steady cost of the moment is; a period's add to 1."""
        return self.hours_share * self.probability

    @property
    def exact_weight(self) -> Fraction:
        """Weight as the fraction that the fleet file gives."""
        return self.hours_of_mean_day / exact(HOURS_PER_DAY) * exact(self.probability)

    @property
    def hours_of_mean_day(self) -> Fraction:
        """Hours of a day in the mean of all kinds of days. [h]"""
        return exact(self.hours) * self.days_share

    @property
    def case(self) -> DemandCase:
        """Slice and demand scenario, as the demand of a service names them."""
        return self.slice, self.scenario


def fleet_moments(fleet: Fleet) -> tuple[Moment, ...]:
    """The moments of a fleet: period by period, in it scenario by scenario, in that slice by slice."""
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
    """Position of the slice before each one.

    The first slice of a day comes after the last one of the day before, which is of the same kind: how often
    days of two kinds follow each other is left out.
    """
    of_kind: dict[str | None, list[int]] = {}
    for position, part in enumerate(slices):
        of_kind.setdefault(part.day_kind, []).append(position)
    return [
        of_kind[part.day_kind][of_kind[part.day_kind].index(position) - 1]
        for position, part in enumerate(slices)
    ]
