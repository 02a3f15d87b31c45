"""Cases that demand is planned for: parts of the day, and ways in which uncertain demand may turn out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
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

DemandRates = Mapping[DemandKey, float]
"""Demand of one service in one case. [requests/s]"""

SIGNIFICANT_DIGITS: Final = 12
"""To which the demand of a slice or scenario is rounded: 0.35 of 20 is 7."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of every day, or of every day of a kind.

    Attributes
    ----------
    name : str
        The name in the fleet file, after that of the kind of day where there are several.
    hours : float
        Its length; the slices of a day add up to 24. [h]
    day_kind : str or None
        Such as weekend; None where all days are alike.
    days_share : Fraction
        Share of all days that are of the kind.
    """

    name: str
    hours: float
    day_kind: str | None = None
    days_share: Fraction = Fraction(1)


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


@dataclass(frozen=True)
class Demand:
    """What a service is asked for.

    Attributes
    ----------
    by_case : Mapping[DemandCase, DemandRates]
        Demand by case, at least one; all with the same keys. A case without a slice holds in every slice
        that has none of its own, one without a scenario likewise. [requests/s]
    """

    by_case: Mapping[DemandCase, DemandRates]

    @classmethod
    def of_cases(cls, cases: Mapping[DemandCase, DemandRates]) -> Demand:
        """Return the demand of every case; what scenarios or slices ask alike is kept once."""
        by_slice = _merged(cases, lambda case: (case[0], None))
        return cls(_merged(by_slice, lambda case: (None, case[1])))

    @cached_property
    def peak(self) -> DemandRates:
        """The largest demand of all cases. [requests/s]."""
        cases = tuple(self.by_case.values())
        return {key: max(rates[key] for rates in cases) for key in cases[0]}

    @property
    def differs_by_scenario(self) -> bool:
        """Whether the demand depends on the scenario."""
        return any(scenario is not None for _, scenario in self.by_case)

    def of(self, case: DemandCase) -> DemandRates:
        """Return the demand of one case. [requests/s]."""
        part, scenario = case
        known = ((part, scenario), (part, None), (None, scenario), (None, None))
        return self.by_case[next(each for each in known if each in self.by_case)]

    def changed(self, change: Callable[[DemandRates], DemandRates]) -> Demand:
        """Return the demand with every case changed."""
        return Demand({case: change(rates) for case, rates in self.by_case.items()})


def _merged(
    cases: Mapping[DemandCase, DemandRates], wider: Callable[[DemandCase], DemandCase]
) -> Mapping[DemandCase, DemandRates]:
    """Return one case for all that a wider one covers; the same cases where these ask differently."""
    merged: dict[DemandCase, DemandRates] = {}
    alike = all(merged.setdefault(wider(case), rates) == rates for case, rates in cases.items())
    return merged if alike else cases


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
