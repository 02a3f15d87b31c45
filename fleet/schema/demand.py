"""Parts of the day, uncertain demand and offline work as the fleet file writes them."""

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
    """What demand and plans call it."""
    hours: Annotated[float, Field(gt=0, le=24, multiple_of=0.25)]
    """Its length, in quarters of an hour; all slices add up to 24. [h]"""


class DemandScenarioSpec(Spec):
    """One way in which demand may turn out."""

    name: Name
    """What plans and reports call it."""
    probability: Probability
    """Those of all scenarios add up to 1."""
    estimate: Literal["low", "mid", "high"] = "mid"
    """Which figure counts where a demand is an estimate {low, mid, high}."""
    demand_ratio: RatioByService = 1.0
    """Demand over what the file gives: for all services, or by service, 1 for those left out."""


class UncertaintySpec(Spec):
    """Demand that may turn out differently: one set of purchases for all scenarios, placements for each."""

    scenarios: Annotated[list[DemandScenarioSpec], Field(min_length=1)] | None = None
    """The scenarios; left out, low, mid and high with probabilities of 0.3, 0.4 and 0.3, which suits
    estimates that one in ten outcomes is below and one in ten is above."""
    objective: Literal["expected-cost", "least-regret"] = "expected-cost"
    """expected-cost: the mean of the scenarios' cost. least-regret: the plan whose largest extra cost over
    what would have been best for a scenario is least; it comes before `objective`."""


class OfflineSpec(Spec):
    """Work without a user who waits: done when there is room, before its deadline."""

    requests_per_day: DemandTree
    """Requests of a day, which arise evenly unless `demand_by_slice` or a slice says otherwise: a number, an
    estimate {low, mid, high}, or a mapping by region, period, class and slice in any order."""
    deadline_hours: Positive = 24.0
    """Longest time from a request to its answer. Work may be put off to a later slice of the same or the next
    day if all of it is answered within this time. [h]"""


class TidalSpec(Spec):
    """Replicas that change from one slice of the day to the next."""

    usd_per_accelerator: UsdPerHost = 0.0
    """Cost of each accelerator of a replica that starts, every day anew. [USD]"""
    max_share_per_pool: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Most of a pool's accelerators whose replicas may start from one slice to the next; 0 keeps the same
    replicas all day."""
