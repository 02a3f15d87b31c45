"""What a search learned, when, and from which part of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """One step of a search.

    Attributes
    ----------
    stage : str
        What was being minimised.
    wall_s : float
        Since the search began. [s]
    source : str
        The part of the search: guide, pricing, master, neighbourhood, CP-SAT, HiGHS.
    detail : str
        What it did.
    objective_usd, bound_usd : float or None
        The best plan and the best bound after the step, where the stage is about cost. [USD]
    """

    stage: str
    wall_s: float
    source: str
    detail: str
    objective_usd: float | None
    bound_usd: float | None
