"""Types for requirements of a fleet file that can be relaxed, and the size of a step.

A requirement can be dropped; most can also be relaxed step by step. Steps are integers, so that a least
amount exists: hosts, a digit of a limit, a thousandth of a demand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.schema.values import RESERVE_DECIMALS
from fleetplan.planner.questions.fleet_edits import Edit
from fleetplan.planner.search import PowerLimit

STEP_DIGITS: Final = 3
"""Significant digits of a limit; a step is one unit of the last digit: 1 of 350, 0.1 of 40.0."""


SHARE_STEPS: Final = 100
"""Number of steps of a share from 0 to 1."""


class RequirementKind(StrEnum):
    """Kind of a requirement."""

    SUPPLY = "supply"
    POWER = "power"
    BUDGET = "budget"
    LATENCY = "latency"
    POLICY = "policy"
    DEMAND = "demand"


@dataclass(frozen=True, slots=True)
class Steps:
    """Stepwise relaxation of a requirement.

    Attributes
    ----------
    relax : callable
        Returns the fleet with the requirement relaxed by a number of steps.
    text : callable
        Describes a number of steps in words.
    most : int or None
        Number of steps that removes the requirement; None without a maximum.
    """

    relax: Callable[[Fleet, int], Fleet]
    text: Callable[[int], str]
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a fleet file.

    Attributes
    ----------
    name : str
        Description with the value.
    kind : RequirementKind
        Kind of the requirement.
    drop : callable
        Returns the fleet without it.
    places : frozenset[str]
        Regions in which it matters; empty for all regions.
    steps : Steps or None
        Stepwise relaxation; None if it can only be dropped.
    power_limit : PowerLimit or None
        The limit, for a requirement on the power of a region.
    """

    name: str
    kind: RequirementKind
    drop: Edit
    places: frozenset[str]
    steps: Steps | None
    power_limit: PowerLimit | None = None


def step_of(limit: float) -> float:
    """Return one unit in the last significant digit of a limit, in the unit of the limit."""
    return 10.0 ** (math.floor(math.log10(limit)) - STEP_DIGITS + 1) if limit > 0 else 1.0


def moved(limit: float, steps: int, step: float) -> float:
    """Return a limit moved by a number of steps, without binary rounding noise."""
    return round(limit + steps * step, 9)


def steps_of_share(share: float) -> int:
    """Return the number of steps that raises a share to 1."""
    return math.ceil((1 - share) * SHARE_STEPS)


def more_of_share(share: float, steps: int) -> float:
    """Return a share raised by a number of steps, at most 1."""
    return min(1.0, moved(share, steps, 1 / SHARE_STEPS))


def eased_percent(percent: float, n: int) -> float:
    """Return a reserve reduced by whole percentage points, with the decimals of a fleet file. [%]"""
    return max(0.0, round(percent - n, RESERVE_DECIMALS))
