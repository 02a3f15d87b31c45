"""Requirements of a fleet file that could give way: the types, and the size of a step.

A requirement can be dropped, and most can be relaxed step by step. Steps are whole numbers, so that there is
a least amount: hosts, a digit of a limit, a thousandth of a demand.
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
"""A step is one in the last of so many significant digits of a limit: 1 of 350, 0.1 of 40.0."""


SHARE_STEPS: Final = 100
"""Steps of a share, from 0 to 1."""


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
    """How a requirement gives way step by step.

    Attributes
    ----------
    relax : callable
        The fleet with the requirement relaxed by so many steps.
    text : callable
        What so many steps are.
    most : int or None
        Steps after which nothing is left of it; None where there is no end.
    """

    relax: Callable[[Fleet, int], Fleet]
    text: Callable[[int], str]
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a fleet file asks for.

    Attributes
    ----------
    name : str
        With its value.
    kind : RequirementKind
        What it is about.
    drop : callable
        The fleet without it.
    places : frozenset[str]
        Regions that it matters in; empty is everywhere.
    steps : Steps or None
        How it is relaxed; None where it holds or does not.
    power_limit : PowerLimit or None
        What it says where it is the power of a region.
    """

    name: str
    kind: RequirementKind
    drop: Edit
    places: frozenset[str]
    steps: Steps | None
    power_limit: PowerLimit | None = None


def step_of(limit: float) -> float:
    """One in the last significant digit that counts of a limit, in its unit."""
    return 10.0 ** (math.floor(math.log10(limit)) - STEP_DIGITS + 1) if limit > 0 else 1.0


def moved(limit: float, steps: int, step: float) -> float:
    """A limit after so many steps, without the dust of binary fractions."""
    return round(limit + steps * step, 9)


def steps_of_share(share: float) -> int:
    """Steps after which a share is all of it."""
    return math.ceil((1 - share) * SHARE_STEPS)


def more_of_share(share: float, steps: int) -> float:
    """A share after so many steps, all of it at the most."""
    return min(1.0, moved(share, steps, 1 / SHARE_STEPS))


def eased_percent(percent: float, n: int) -> float:
    """A reserve that is some whole per cent smaller, with no more decimals than a file has. [%]"""
    return max(0.0, round(percent - n, RESERVE_DECIMALS))
