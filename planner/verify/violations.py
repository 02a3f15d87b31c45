"""Violations of rules by a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a rule.

    Attributes
    ----------
    family : str
        Constraint family, or part of the plan that is misstated: `placement`, `latency`, `cost`.
    message : str
        Explanation with figures.
    """

    family: str
    message: str
