"""Best plan for one demand scenario alone, and supply that is decided already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """

    usd: float
    bound_usd: float
    unmet_requests_per_s: float
    supply: FixedSupply
