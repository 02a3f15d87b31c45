"""Cases of demand: slices of the day, and scenarios of uncertain demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal

Estimate = Literal["low", "mid", "high"]
"""Figure of an estimate."""

DEFAULT_PROBABILITY: Final[Mapping[Estimate, float]] = {"low": 0.3, "mid": 0.4, "high": 0.3}
"""Weights of the 10th, 50th and 90th percentile: the extended Swanson-Megill approximation (D. L. Keefer
and S. E. Bodily, "Three-Point Approximations for Continuous Random Variables", Management Science 29(5),
1983)."""

DemandCase = tuple[str | None, str | None]
"""Slice and demand scenario; None if a fleet has none."""

DemandKey = tuple[str, str, str]
"""Region, period, class."""

DemandRates = Mapping[DemandKey, float]
"""Demand of one service in one case. [requests/s]"""

SIGNIFICANT_DIGITS: Final = 12
"""Digits that the demand of a slice or scenario is rounded to: 0.35 of 20 is 7."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice of every day, or of every day of a kind.

    Attributes
    ----------
    name : str
        Name in the fleet file, after the kind of day if there are several.
    hours : float
        Its length; the slices of a day add up to 24. [h]
    day_kind : str or None
        Kind of day, such as weekend; None if all days are equal.
    days_share : Fraction
        Share of this kind among all days.
    """

    name: str
    hours: float
    day_kind: str | None = None
    days_share: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class DemandScenario:
    """A scenario of uncertain demand.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    probability : float
        Probability; all add up to 1.
    estimate : str
        Figure of an estimate to use: low, mid or high.
    demand_ratio : float
        Factor on the demand of the file.
    ratio_by_service : Mapping[str, float]
        Factors of single services instead.
    """

    name: str
    probability: float
    estimate: Estimate = "mid"
    demand_ratio: float = 1.0
    ratio_by_service: Mapping[str, float] = field(default_factory=dict)

    def ratio_of(self, service: str, follows: bool) -> float:
        """Return the factor of a service; the demand of a follower already includes its leader's."""
        return self.ratio_by_service.get(service, 1.0 if follows else self.demand_ratio)


@dataclass(frozen=True)
class Demand:
    """Demand of a service.

    Attributes
    ----------
    by_case : Mapping[DemandCase, DemandRates]
        Demand by case, at least one, all with the same keys. A case without a slice applies to every slice
        that has no case, and a case without a scenario to every such scenario. [requests/s]
    """

    by_case: Mapping[DemandCase, DemandRates]

    @classmethod
    def of_cases(cls, cases: Mapping[DemandCase, DemandRates]) -> Demand:
        """Build the demand from all cases; equal slices and scenarios are stored once."""
        by_slice = _merged(cases, lambda case: (case[0], None))
        return cls(_merged(by_slice, lambda case: (None, case[1])))

    @cached_property
    def peak(self) -> DemandRates:
        """Largest demand over all cases. [requests/s]."""
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
        """Return the demand with `change` applied to every case."""
        return Demand({case: change(rates) for case, rates in self.by_case.items()})


def _merged(
    cases: Mapping[DemandCase, DemandRates], wider: Callable[[DemandCase], DemandCase]
) -> Mapping[DemandCase, DemandRates]:
    """Merge cases into a wider one if their demand is equal."""
    merged: dict[DemandCase, DemandRates] = {}
    alike = all(merged.setdefault(wider(case), rates) == rates for case, rates in cases.items())
    return merged if alike else cases


@dataclass(frozen=True, slots=True)
class Offline:
    """Deadline of an offline service.

    Attributes
    ----------
    deadline_hours : float
        Longest time from a request to its answer. [h]
    """

    deadline_hours: float


def demand_cases(
    slices: Sequence[Slice], scenarios: Sequence[DemandScenario]
) -> list[tuple[Slice | None, DemandScenario | None]]:
    """Return every slice in every demand scenario, scenario by scenario."""
    return [(part, scenario) for scenario in scenarios or (None,) for part in slices or (None,)]
