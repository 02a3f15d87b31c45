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


def misstated(what: str, stated: object, found: object, unit: str = "") -> str:
    """Return the message for a figure of the plan that differs from its recomputation."""
    return f"{what}: the plan states {_figure(stated, unit)}; recomputed: {_figure(found, unit)}"


def _figure(value: object, unit: str) -> str:
    return "nothing" if value is None else f"{value} {unit}".rstrip()


def above(what: str, value: object, limit: object, unit: str) -> str:
    """Return the message for a figure above its limit."""
    return f"{what} is {value} {unit}, above the limit of {limit} {unit}"
