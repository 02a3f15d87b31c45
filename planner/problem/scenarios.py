"""Best plan for one demand scenario alone, and supply that is decided already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleetplan.planner.plan import UNMET_GAP_RATIO, Plan


@dataclass(frozen=True, slots=True)
class FixedSupply:
    """Purchases, rents and retirements that cannot be changed any more.

    Attributes
    ----------
    acquired : Mapping[tuple[int, int, int], int]
        Units by (pool index, acquisition index, period index); none where left out.
    retired : Mapping[tuple[int, int], int]
        Units that leave by (pool index, period index); none where left out.
    """

    acquired: Mapping[tuple[int, int, int], int]
    retired: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class ScenarioOptimum:
    """The best plan for one demand scenario alone.

    Attributes
    ----------
    usd, bound_usd : float
        Its TCO, and what no plan for this scenario is below. [USD]
    unmet_requests_per_s : float
        What it leaves unserved, the mean over the horizon. [requests/s]
    supply : FixedSupply
        What it buys, rents and retires.
    unmet_gap : float
        Share of what it leaves unserved that another plan might serve, which may cost more.
    plan : Plan or None
        All of it, where searches of other scenarios may begin with what it runs.
    """

    usd: float
    bound_usd: float
    unmet_requests_per_s: float
    supply: FixedSupply
    unmet_gap: float = 0.0
    plan: Plan | None = field(default=None, compare=False, repr=False)

    @property
    def unmet_is_least(self) -> bool:
        """Whether no plan for the scenario alone serves more: its best then costs no more than this one."""
        return self.unmet_gap <= UNMET_GAP_RATIO
