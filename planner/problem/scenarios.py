"""Optimum of one demand scenario, and fixed supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleetplan.planner.plan import UNMET_GAP_RATIO, Plan


@dataclass(frozen=True, slots=True)
class FixedSupply:
    """Purchases, rents and retirements that can no longer change.

    Attributes
    ----------
    acquired : Mapping[tuple[int, int, int], int]
        Units by (pool index, acquisition index, period index); 0 if missing.
    retired : Mapping[tuple[int, int], int]
        Retired units by (pool index, period index); 0 if missing.
    """

    acquired: Mapping[tuple[int, int, int], int]
    retired: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class ScenarioOptimum:
    """Best plan for one demand scenario alone.

    Attributes
    ----------
    usd, bound_usd : float
        Its TCO, and a lower bound for this scenario. [USD]
    unmet_requests_per_s : float
        Unmet demand, averaged over the horizon. [requests/s]
    supply : FixedSupply
        Its purchases, rents and retirements.
    unmet_gap : float
        Share of its unmet demand that another plan might serve, possibly at a higher cost.
    plan : Plan or None
        The plan itself, if searches of other scenarios may start from it.
    """

    usd: float
    bound_usd: float
    unmet_requests_per_s: float
    supply: FixedSupply
    unmet_gap: float = 0.0
    plan: Plan | None = field(default=None, compare=False, repr=False)

    @property
    def unmet_is_least(self) -> bool:
        """Return whether unmet demand is minimal for this scenario.

        Only then does the scenario's optimum cost no more than this plan.
        """
        return self.unmet_gap <= UNMET_GAP_RATIO
