"""Print the progress of a solve on stderr: incumbent, bound and gap."""

from __future__ import annotations

import time

from rich.console import Console

from fleetplan.fleet.figures import figure, money, percent
from fleetplan.planner.search import Progress

QUIET_S = 2.0
"""Minimum duration of a solve that prints progress. [s]"""

INTERVAL_S = 0.5
"""Minimum time between two lines of the same stage. [s]"""


class ProgressLine:
    """Writes one line per improvement, at a readable rate.

    Parameters
    ----------
    console : Console
        Console on stderr.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = 0.0
        self._said = ""

    def __call__(self, progress: Progress) -> None:
        """Print a better plan or bound."""
        now = time.monotonic()
        if progress.wall_s < QUIET_S or now - self._last < INTERVAL_S:
            return
        plan, bound = progress.objective_usd, progress.bound_usd
        parts = [progress.stage]
        if plan is not None:
            parts.append(f"plan {money(plan)}")
        if bound is not None:
            parts.append(f"bound {money(bound)}")
        if plan and bound is not None:
            parts.append(f"gap {percent((plan - bound) / plan)}")
        if (goal := progress.goal) is not None:
            parts += [f"plan {figure(goal.value)}", f"bound {figure(goal.bound)}", f"gap {percent(goal.gap)}"]
        said = "  ".join(parts)
        if said == self._said:
            return
        self._last, self._said = now, said
        self._console.print(f"{progress.wall_s:6.1f} s  {said}", style="dim", highlight=False)
