"""Rules that a plan breaks, and when two figures differ by more than rounding."""

from __future__ import annotations

from dataclasses import dataclass

RELATIVE_TOLERANCE = 1e-6
"""What floating-point sums may differ by, relative to the larger figure."""

GAP_TOLERANCE = 1e-6
"""What a stated gap may differ from the one that follows from cost and bound."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a plan breaks.

    Attributes
    ----------
    family : str
        The constraint family, or `placement`, `latency`, `cost`.
    message : str
        What is wrong, with figures.
    """

    family: str
    message: str


def exceeds(value: float, limit: float) -> bool:
    """Whether a value is above a limit by more than rounding."""
    return value > limit + RELATIVE_TOLERANCE * max(abs(limit), abs(value), 1e-9)


def differs(one: float, other: float) -> bool:
    """Whether two figures differ by more than rounding."""
    return exceeds(one, other) or exceeds(other, one)
