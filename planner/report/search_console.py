"""`plan solve --explain-search`: which part of the search found which plan and proved which bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from fleetplan.fleet.figures import money, percent
from fleetplan.planner.search import Progress


@dataclass(slots=True)
class SearchLog:
    """Every step of a search, passed on to whoever else watches.

    Attributes
    ----------
    watch : callable
        Told of every step too.
    steps : list[Progress]
        In order.
    """

    watch: Callable[[Progress], None]
    steps: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """Keep a step."""
        self.steps.append(progress)
        self.watch(progress)


@dataclass(slots=True)
class _Share:
    """What one part of the search did in one stage."""

    steps: int = 0
    saved_usd: float = 0.0
    raised_usd: float = 0.0


def print_search(steps: list[Progress], console: Console) -> None:
    """Two tables: every step that changed the plan or the bound, and what each part added up to."""
    timeline = Table(title="Search, step by step", title_justify="left")
    for heading in ("seconds", "stage", "part", "plan", "bound", "gap", "what it did"):
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
            # A bound that a plan contradicts is taken back.
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
