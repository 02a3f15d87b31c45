"""Violations: rules that a plan breaks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a plan breaks.

    Attributes
    ----------
    family : str
        The constraint family, or what is misstated: `placement`, `latency`, `cost`.
    message : str
        What is wrong, with figures.
    """

    family: str
    message: str
