"""Cases that demand is planned for: parts of the day, and ways in which uncertain demand may turn out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Estimate = Literal["low", "mid", "high"]
"""Which figure of an estimate is meant."""

DEFAULT_PROBABILITY: Final[Mapping[Estimate, float]] = {"low": 0.3, "mid": 0.4, "high": 0.3}
"""Weights of three figures that one in ten outcomes is below, half are below, and one in ten is above: the
extended Swanson-Megill approximation (D. L. Keefer and S. E. Bodily, "Three-Point Approximations for
Continuous Random Variables", Management Science 29(5), 1983)."""

DemandCase = tuple[str | None, str | None]
"""Slice and demand scenario; None where a fleet has none of them."""

DemandKey = tuple[str, str, str]
"""Region, period, class."""

CaseDemands = Mapping[DemandCase, Mapping[DemandKey, float]]
"""Demand of one service by case. [requests/s]"""

DemandRatios = Mapping[DemandCase, Mapping[DemandKey, float]]
"""Demand of a case over the peak demand; what is left out is 1."""

SIGNIFICANT_DIGITS: Final = 12
"""To which demand is rounded when it is worked out from its ratio: 0.35 of 20 is 7 again."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of every day.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    hours : float
        Its length; the slices of a day add up to 24. [h]
    """

    name: str
    hours: float


@dataclass(frozen=True, slots=True)
class DemandScenario:
    """One way in which uncertain demand may turn out.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    probability : float
        Those of all scenarios add up to 1.
    estimate : str
        Which figure of an estimate counts: low, mid or high.
    demand_ratio : float
        Demand over what the file gives.
    ratio_by_service : Mapping[str, float]
        The same of single services, instead.
    """

    name: str
    probability: float
    estimate: Estimate = "mid"
    demand_ratio: float = 1.0
    ratio_by_service: Mapping[str, float] = field(default_factory=dict)

    def ratio_of(self, service: str, follows: bool) -> float:
        """Return the ratio of one service; one that follows another has that one's in its demand already."""
        return self.ratio_by_service.get(service, 1.0 if follows else self.demand_ratio)


@dataclass(frozen=True, slots=True)
class Offline:
    """When the work of an offline service must be done.

    Attributes
    ----------
    deadline_hours : float
        Longest time from a request to its answer. [h]
    """

    deadline_hours: float


def demand_cases(
    slices: Sequence[Slice], scenarios: Sequence[DemandScenario]
) -> list[tuple[Slice | None, DemandScenario | None]]:
    """Return every slice in every demand scenario, the scenarios one after the other."""
    return [(part, scenario) for scenario in scenarios or (None,) for part in slices or (None,)]


def peak_and_ratios(cases: CaseDemands) -> tuple[dict[DemandKey, float], DemandRatios]:
    """Return the largest demand of all cases, and the others as ratios to it.

    Parameters
    ----------
    cases : CaseDemands
        At least one case; all with the same keys. [requests/s]
    """
    peak: dict[DemandKey, float] = {}
    for demand in cases.values():
        for key, rate in demand.items():
            peak[key] = max(peak.get(key, 0.0), rate)
    ratios = {
        case: {key: rate / peak[key] for key, rate in demand.items() if rate != peak[key]}
        for case, demand in cases.items()
    }
    return peak, {case: below for case, below in ratios.items() if below}


def case_demand(
    peak: Mapping[DemandKey, float], ratios: DemandRatios, case: DemandCase
) -> dict[DemandKey, float]:
    """Return the demand of one case. [requests/s]."""
    own = ratios.get(case, {})
    return {
        key: float(f"{rate * own[key]:.{SIGNIFICANT_DIGITS}g}") if key in own else rate
        for key, rate in peak.items()
    }


def same_in_every_scenario(ratios: DemandRatios, scenarios: Sequence[DemandScenario]) -> bool:
    """Whether the demand of a service does not depend on the scenario."""
    parts = {part for part, _ in ratios}
    return all(
        ratios.get((part, scenario.name), {}) == ratios.get((part, scenarios[0].name), {})
        for part in parts
        for scenario in scenarios
    )


def without_scenarios(ratios: DemandRatios, scenarios: Sequence[DemandScenario]) -> DemandRatios:
    """Return the ratios of a service whose demand is the same in every scenario, by slice alone."""
    return {(part, None): below for (part, name), below in ratios.items() if name == scenarios[0].name}
