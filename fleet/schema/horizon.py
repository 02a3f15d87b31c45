"""Schema of the horizon: its periods, the parts of a day, and its extension."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.demand import SliceSpec
from fleetplan.fleet.schema.values import TAG_MARK, Name, PositiveCount, Spec


class FiscalYearSpec(Spec):
    """Start of the fiscal year."""

    first_month: Annotated[int, Field(ge=1, le=12)]
    """First month of the fiscal year, 1 to 12."""
    named_after: Literal["end", "start"] = "end"
    """FY27 ends (end) or begins (start) in 2027."""


def _extension_form(value: object) -> str:
    return f"{TAG_MARK}until" if isinstance(value, str) else f"{TAG_MARK}quarters"


MOST_EXTENSION_QUARTERS: Final = 40
"""Ten years: no rent in the price book is agreed for longer."""

Extension: TypeAlias = Annotated[
    Annotated[Literal["terms"], Tag(f"{TAG_MARK}until")]
    | Annotated[int, Field(ge=1, le=MOST_EXTENSION_QUARTERS), Tag(f"{TAG_MARK}quarters")],
    Discriminator(_extension_form),
]


class HorizonSpec(Spec):
    """The periods to plan."""

    periods: Annotated[list[Name], Field(min_length=1)]
    """Quarters such as 2027Q1, months such as 2027-01, or fiscal quarters such as FY27-Q3, in order and of
    one kind."""
    period: Literal["quarter", "month"] | None = None
    """Length of a period; a month has 730 hours. Default: the length in the names, a quarter for names
    without a date."""
    fiscal_year: FiscalYearSpec | None = None
    """Fiscal year, for fiscal quarters."""
    slices: Annotated[list[SliceSpec], Field(min_length=1)] | None = None
    """Parts of every day, in the order of the day. Default: one slice of 24 hours. Installed hardware is the
    same all day; placements may change between slices."""
    day_kinds: Annotated[dict[Name, PositiveCount], Field(min_length=2)] | None = None
    """Two or more kinds of days with the number of each, such as {weekday: 5, weekend: 2}. Every kind has
    all slices, named like weekend-night; without slices it is one slice of 24 hours. Default: all days are
    equal."""
    first_slice_utc_hour: Annotated[float, Field(ge=0, lt=24, multiple_of=0.25)] = 0.0
    """Start of the first slice, for shapes of the day by local hour: a multiple of 0.25. [h UTC]"""
    extend_quarters: Extension | None = None
    """Quarters after the last period, to compare rent for a term, purchases and rent by the period over a
    longer time. They repeat the prices, limits and demand of the last period; demand with growth keeps
    growing. A number, or `terms`: until the last term that can start within the periods ends. The plan states
    their cost separately; their orders are assumptions. Default: none."""
