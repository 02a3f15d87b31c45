"""Shapes of the day: demand of a region in steps of a quarter of an hour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fleetplan.fleet.inventory import Slice
from fleetplan.fleet.units import HOURS_PER_DAY

STEPS_PER_HOUR: Final = 4
"""Slices of the day are multiples of a quarter of an hour."""

STEPS_PER_DAY: Final = round(HOURS_PER_DAY * STEPS_PER_HOUR)

Ratios = tuple[float, ...]
"""Ratio of demand to the file's figure for each quarter of an hour from the start of the first slice; for
several kinds of days, one day after the other."""


@dataclass(frozen=True, slots=True)
class DayShape:
    """Course of demand over the day.

    Attributes
    ----------
    ratios : Mapping[str, Ratios]
        Ratios by region; 1 all day in other regions.
    """

    ratios: Mapping[str, Ratios]

    def peak(self, region: str, slices: Sequence[Slice], part: Slice | None) -> float:
        """Return the largest ratio in a slice, or of the day."""
        return max(self._within(region, slices, part))

    def mean(self, region: str, slices: Sequence[Slice], part: Slice | None) -> float:
        """Return the mean ratio of a slice, or of the day."""
        if part is None:
            return math.fsum(
                float(share)
                * _mean(self._within(region, slices, None)[day * STEPS_PER_DAY :][:STEPS_PER_DAY])
                for day, share in enumerate(day_shares(slices))
            )
        return _mean(self._within(region, slices, part))

    def _within(self, region: str, slices: Sequence[Slice], part: Slice | None) -> Ratios:
        day = self.ratios.get(region, (1.0,) * STEPS_PER_DAY * len(day_shares(slices)))
        if part is None:
            return day
        start, end = next((start, end) for each, start, end in slice_steps(slices) if each.name == part.name)
        # Slices of more than 24 hours have been rejected, but their demand is still read.
        return day[start:end] or day[-1:]


FLAT: Final = DayShape({})
"""The same demand all day."""


def _mean(ratios: Ratios) -> float:
    return math.fsum(ratios) / len(ratios)


def day_shares(slices: Sequence[Slice]) -> tuple[Fraction, ...]:
    """Return the share of each kind of day, in order; 1 if all days are equal."""
    return tuple({part.day_kind: part.days_share for part in slices}.values()) or (Fraction(1),)


def of_kinds(shapes: Sequence[DayShape], regions: Sequence[str]) -> DayShape:
    """Combine one shape per kind of day."""
    flat = (1.0,) * STEPS_PER_DAY * len(shapes)
    return DayShape(
        {
            region: tuple(
                ratio
                for day, shape in enumerate(shapes)
                for ratio in shape.ratios.get(region, flat)[day * STEPS_PER_DAY :][:STEPS_PER_DAY]
            )
            for region in regions
        }
    )


def slice_steps(slices: Sequence[Slice]) -> list[tuple[Slice, int, int]]:
    """Return each slice with its first step and the step after its last."""
    found, start = [], 0
    for part in slices:
        end = start + round(part.hours * STEPS_PER_HOUR)
        found.append((part, start, end))
        start = end
    return found


def shape_of_slices(regions: Sequence[str], slices: Sequence[Slice], ratios: Mapping[str, float]) -> DayShape:
    """Return a shape from one ratio per slice (default 1), equal in every region."""
    return DayShape(dict.fromkeys(regions, ratios_of_slices(slices, ratios)))


def ratios_of_slices(slices: Sequence[Slice], ratios: Mapping[str, float]) -> Ratios:
    """Return one ratio per slice (default 1), as steps."""
    if not slices:
        return (1.0,) * STEPS_PER_DAY
    steps = ((ratios.get(part.name, 1.0), end - start) for part, start, end in slice_steps(slices))
    return tuple(ratio for ratio, count in steps for _ in range(count))


def step_of_hour(hour: str) -> int | None:
    """Return the step of an hour such as 8 or 17.5; None for other texts."""
    try:
        step = float(hour) * STEPS_PER_HOUR
    except ValueError:
        return None
    return int(step) if step.is_integer() and 0 <= step < STEPS_PER_DAY else None


def ratios_of_hours(steps: Mapping[int, float], first_hour: float) -> Ratios:
    """Return the ratios of a day from an hour on, where each ratio holds until the next one.

    Parameters
    ----------
    steps : Mapping[int, float]
        Ratios by their first step from midnight; at least one.
    first_hour : float
        Hour of the first step of the result; any multiple of a quarter. [h]
    """
    held, day = steps[max(steps)], []
    for step in range(STEPS_PER_DAY):
        held = steps.get(step, held)
        day.append(held)
    first = round(first_hour * STEPS_PER_HOUR)
    return tuple(day[(first + step) % STEPS_PER_DAY] for step in range(STEPS_PER_DAY))
