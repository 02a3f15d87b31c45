"""Schema of parts of the day, uncertain demand and offline work."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.values import TAG_MARK, DemandTree, Name, NotNegative, Positive, Spec, UsdPerHost

Probability: TypeAlias = Annotated[float, Field(gt=0, le=1)]


def _form(value: object) -> str:
    return f"{TAG_MARK}by_name" if isinstance(value, dict) else f"{TAG_MARK}once"


RatioByService: TypeAlias = Annotated[
    Annotated[NotNegative, Tag(f"{TAG_MARK}once")]
    | Annotated[dict[Name, NotNegative], Tag(f"{TAG_MARK}by_name")],
    Discriminator(_form),
]


class SliceSpec(Spec):
    """A part of every day, in the order of the day."""

    name: Name
    """Name in demand and plans."""
    hours: Annotated[float, Field(gt=0, le=24, multiple_of=0.25)]
    """Length in steps of 0.25 h; all slices add up to 24. [h]"""


class DayShapeSpec(Spec):
    """A shape of the day that services name in `demand_by_slice`: exactly one of these keys."""

    by_slice: Annotated[dict[Name, NotNegative], Field(min_length=1)] | None = None
    """Demand of each slice divided by the service's figure, in every region; 1 for slices that you leave
    out."""
    by_region: Annotated[dict[Name, dict[Name, NotNegative]], Field(min_length=1)] | None = None
    """The same by region; names every region."""
    by_local_hour: Annotated[dict[str, NotNegative], Field(min_length=1)] | None = None
    """The same by local time (`regions.*.utc_offset_hours`): each ratio holds from its hour (0 to 23.75, in
    quarters) to the next hour given. A slice takes its largest ratio, an offline service the mean."""
    by_day_kind: Annotated[dict[Name, Name], Field(min_length=1)] | None = None
    """The shape of each kind of day, by name: {weekday: office, weekend: quiet}."""


def _shape_form(value: object) -> str:
    return f"{TAG_MARK}by_slice" if isinstance(value, dict) else f"{TAG_MARK}named"


DemandBySlice: TypeAlias = Annotated[
    Annotated[Name, Tag(f"{TAG_MARK}named")]
    | Annotated[dict[Name, NotNegative], Field(min_length=1), Tag(f"{TAG_MARK}by_slice")],
    Discriminator(_shape_form),
]


class DemandScenarioSpec(Spec):
    """A demand scenario."""

    name: Name
    """Name in plans and reports."""
    probability: Probability
    """Probability; those of all scenarios add up to 1."""
    estimate: Literal["low", "mid", "high"] = "mid"
    """Figure of an estimate {low, mid, high} to use."""
    demand_ratio: RatioByService = 1.0
    """Factor on the demand of the file: for all services, or by service (default 1)."""


class UncertaintySpec(Spec):
    """Uncertain demand: one set of purchases for all scenarios, placements for each.

    Scenarios with equal demand count as one.
    """

    scenarios: Annotated[list[DemandScenarioSpec], Field(min_length=1)] | None = None
    """Demand scenarios. Default: low, mid and high with probabilities of 0.3, 0.4 and 0.3, which suit
    estimates at the 10th, 50th and 90th percentile."""
    objective: Literal["expected-cost", "least-regret"] = "expected-cost"
    """expected-cost: minimises the mean cost over the scenarios. least-regret: minimises the largest regret,
    which is the extra cost over the optimum of a scenario; it takes precedence over `objective`."""


class OfflineSpec(Spec):
    """Batch work: served when capacity is free, before its deadline."""

    requests_per_day: DemandTree
    """Requests per day, which arise evenly unless `demand_by_slice` or a slice states otherwise: a number, a
    quantity such as `90 M requests/month` or `2 B tokens/day`, an estimate {low, mid, high}, or a mapping by
    region, period, class and slice in any order."""
    deadline_hours: Positive = 24.0
    """Longest time from a request to its answer. Work may be deferred to a later slice of the same or the
    next day if all its answers meet the deadline. [h]"""


class TidalSpec(Spec):
    """Changes of replicas from one slice of the day to the next."""

    usd_per_accelerator: UsdPerHost = 0.0
    """Cost per accelerator of a replica that starts, on every day. [USD]"""
    max_share_per_pool: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Largest share of a pool's accelerators whose replicas may start from one slice to the next; 0 keeps the
    same replicas all day."""
