"""Print the search log of `plan solve --explain-search`: the source of each plan and bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from fleetplan.fleet.figures import money, percent
from fleetplan.planner.search import Progress


@dataclass(slots=True)
class SearchLog:
    """Recorder of every step of a search, which passes each step on to another watcher.

    Attributes
    ----------
    watch : callable
        Called for every step as well.
    steps : list[Progress]
        Steps in chronological order.
    """

    watch: Callable[[Progress], None]
    steps: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """Record a step and pass it on."""
        self.steps.append(progress)
        self.watch(progress)


@dataclass(slots=True)
class _Share:
    """Progress of one part of the search in one stage."""

    steps: int = 0
    saved_usd: float = 0.0
    raised_usd: float = 0.0


def print_search(steps: list[Progress], console: Console) -> None:
    """Print every step that changed the plan or the bound, then the total of each part of the search."""
    timeline = Table(title="Search, step by step", title_justify="left")
    for heading in ("seconds", "stage", "part", "plan", "bound", "gap", "action"):
        timeline.add_column(
            heading, justify="right" if heading in ("seconds", "plan", "bound", "gap") else "left"
        )
    shares: dict[tuple[str, str], _Share] = {}
    plans: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for step in steps:
        plan, bound = step.objective_usd, step.bound_usd
        better = plan is not None and plan < plans.get(step.stage, float("inf"))
        higher = bound is not None and bound > bounds.get(step.stage, float("-inf"))
        withdrawn = bound is not None and bound < bounds.get(step.stage, float("-inf"))
        share = shares.setdefault((step.stage, step.source), _Share())
        share.steps += 1
        if better and plan is not None:
            share.saved_usd += plans.get(step.stage, plan) - plan
            plans[step.stage] = plan
        if bound is not None and (higher or withdrawn):
            # A bound above the cost of a plan is withdrawn.
            share.raised_usd += bound - bounds.get(step.stage, bound)
            bounds[step.stage] = bound
        gap = "" if not plan or bound is None else percent((plan - bound) / plan)
        timeline.add_row(
            f"{step.wall_s:.1f}",
            step.stage,
            step.source,
            money(plan) if better and plan is not None else "",
            money(bound) if bound is not None and (higher or withdrawn) else "",
            gap if better or higher or withdrawn else "",
            step.detail,
        )
    console.print(timeline)
    console.print(_shares(shares))


def _shares(shares: dict[tuple[str, str], _Share]) -> Table:
    table = Table(title="Parts of the search", title_justify="left")
    for heading in ("stage", "part", "steps", "lowered the cost by", "raised the bound by"):
        table.add_column(heading, justify="left" if heading in ("stage", "part") else "right")
    for (stage, source), share in shares.items():
        table.add_row(stage, source, str(share.steps), money(share.saved_usd), money(share.raised_usd))
    return table
