"""Tolerances of the verifier, common to all figures.

A plan states unrounded numbers, so a figure and its recomputation differ only by the order of floating-point
sums: by `RELATIVE_TOLERANCE` of the larger one, or for money by `MONEY_FLOOR_RATIO` of the plan's cost if
large terms cancel. The integer model rounds more coarsely (FORMULATION.md, Integers). Comparisons between a
figure or limit of the model and the plan's numbers additionally allow one step of the model
(`planner/units.py`).
"""

from __future__ import annotations

from typing import Final

RELATIVE_TOLERANCE: Final = 1e-6
"""Relative tolerance for floating-point sums."""

LEAST_SIZE: Final = 1e-6
"""Smaller figures use the tolerance of this size: sums that cancel leave a residue near 1e-15."""

MONEY_FLOOR_RATIO: Final = 1e-9
"""Tolerance of amounts of money relative to the cost of the plan, for sums that cancel."""

SHARE_FLOOR: Final = 1e-9
"""The same for a gap or a share; the search treats a smaller gap as optimal."""

UNMET_RATIO: Final = 1e-5
"""Tolerance on the proof that unmet demand is minimal. [share]"""

RATE_UNIT_RATIO: Final = 1e-7
"""Upper bound on a rate unit of the model over the largest demand of its service."""

RUNNING_ROUNDING_RATIO: Final = 1e-4
"""Tolerance of the model's energy and data cost, which are rounded per load unit."""


def exceeds(value: float, limit: float) -> bool:
    """Return whether a value exceeds a limit by more than rounding, or is not a number."""
    return not value <= limit + RELATIVE_TOLERANCE * max(abs(limit), abs(value), LEAST_SIZE)


def differs(one: float, other: float, floor: float = 0.0) -> bool:
    """Return whether two figures differ by more than rounding and by more than a floor."""
    tolerance = max(RELATIVE_TOLERANCE * max(abs(one), abs(other), LEAST_SIZE), floor)
    return not abs(one - other) <= tolerance
