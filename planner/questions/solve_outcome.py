"""Complete the outcome of a solve: name the plan in force, and explain why a fleet is infeasible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import Planned
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions.conflict.explain import with_conflict
from fleetplan.planner.questions.loaded_plan import with_baseline_file
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.search import SearchLimits

CONFLICT_SOLVE_LIMIT_S: Final = 5.0
"""Time limit of one solve in the search for the conflict. [s]"""


def stated_outcome(
    fleet: Fleet,
    limits: SearchLimits,
    baseline: tuple[Path, Plan] | None,
    say: Callable[[str], None],
    found: Planned,
) -> Plan | Infeasible:
    """Return the complete outcome of a solve.

    Parameters
    ----------
    fleet : Fleet
        Fleet of the solve.
    limits : SearchLimits
        Limits of the solve.
    baseline : tuple[Path, Plan] or None
        Plan in force and its file.
    say : callable
        Receives progress messages.
    found : Planned
        Result of the search, with the deadline for the whole solve including the conflict.
    """
    outcome = found.outcome
    if isinstance(outcome, Infeasible):
        say("looking for the requirements in conflict")
        own_limits = replace(limits, time_limit_s=min(CONFLICT_SOLVE_LIMIT_S, limits.time_limit_s))
        resolver = Resolver(own_limits, say, None, None if baseline is None else baseline[1])
        if baseline is None:
            resolver.know(fleet, found.candidates)
        outcome = with_conflict(outcome, fleet, resolver, found.deadline)
    return outcome if baseline is None else with_baseline_file(outcome, baseline[0])
