"""Tolerances of the verifier: one rule for all figures.

A plan is stated in unrounded numbers, so a figure and its recomputation differ by the order of floating-point
sums alone: by `RELATIVE_TOLERANCE` of the larger one, or for money by `MONEY_FLOOR_RATIO` of what the plan
costs where large figures cancel out. The integer model rounds more coarsely (FORMULATION.md, Integers); only
where a figure of the model is held against one of the plan, or a limit of the model against the plan's own
numbers, what one step of the model comes to is allowed besides (`planner/units.py`).
"""

from __future__ import annotations

from typing import Final

RELATIVE_TOLERANCE: Final = 1e-6
"""What floating-point sums may differ by, relative to the larger figure."""

LEAST_SIZE: Final = 1e-6
"""Figures below it are held to the tolerance of this size: sums that cancel leave 1e-15 of nothing."""

MONEY_FLOOR_RATIO: Final = 1e-9
"""What a figure of money may be off by, relative to the cost of the plan: what is left of large sums."""

SHARE_FLOOR: Final = 1e-9
"""The same of a gap or a share. A gap of that size is none: the search calls such a plan optimal."""

UNMET_RATIO: Final = 1e-5
"""Share of what is left unmet that may not be proven to be the least."""

RATE_UNIT_RATIO: Final = 1e-7
"""A rate unit of the model, at most, over the largest demand of its service."""

RUNNING_ROUNDING_RATIO: Final = 1e-4
"""What energy and data of the model may be off by: they are rounded by load unit."""


def exceeds(value: float, limit: float) -> bool:
    """Whether a value is above a limit by more than rounding, or no number at all."""
    return not value <= limit + RELATIVE_TOLERANCE * max(abs(limit), abs(value), LEAST_SIZE)


def differs(one: float, other: float, floor: float = 0.0) -> bool:
    """Whether two figures differ by more than rounding and by more than a floor."""
    tolerance = max(RELATIVE_TOLERANCE * max(abs(one), abs(other), LEAST_SIZE), floor)
    return not abs(one - other) <= tolerance
