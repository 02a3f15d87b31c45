"""Compare two plans as a list of changes for review, one line each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetplan.fleet.figures import plural
from fleetplan.planner.plan import AtMoment, Plan, PoolUse

TRAFFIC_TOLERANCE_RATIO: Final = 1e-6
"""Relative difference below which two quantities are equal: rounding of the traffic in a plan file."""

COST_TOLERANCE_USD: Final = 0.005
"""Difference below which two costs are equal: half a cent. [USD]"""

IDLE: Final = "idle capacity"
"""Name of the cost that no service pays for."""


class Action(StrEnum):
    """Kind of change of a line of a plan."""

    ADD = "+"
    CHANGE = "~"
    REMOVE = "-"


class DiffSubject(StrEnum):
    """Subject of a line of a plan."""

    PLACEMENT = "placement"
    PURCHASE = "purchase"
    RETIREMENT = "retirement"
    POOL = "pool"
    UNMET = "unmet demand"


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """One figure of a line in both plans; 0 in a plan without the line.

    Attributes
    ----------
    name : str
        Counted unit: replicas, accelerators, units, hosts, or requests/s of a class.
    before, after : float
        Value in the old and in the new plan.
    """

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A line that differs between the plans.

    Attributes
    ----------
    action : Action
        Whether the new plan adds, changes or removes the line.
    subject : DiffSubject
        Subject of the line.
    period, region : str
        Period and region, by the names of the new plan.
    name : str
        Description, such as `chat decode TP8 on H200-SXM in east-h200`.
    quantities : tuple[QuantityChange, ...]
        All figures of an added or removed line; the differing figures of a changed line.
    """

    action: Action
    subject: DiffSubject
    period: str
    region: str
    name: str
    quantities: tuple[QuantityChange, ...]

    def delta(self, quantity: str) -> float:
        """Return the increase of a figure; 0 if it is unchanged."""
        return sum(each.after - each.before for each in self.quantities if each.name == quantity)


@dataclass(frozen=True, slots=True)
class CostChange:
    """One part of the TCO in both plans.

    Attributes
    ----------
    name : str
        Kind of cost, or service.
    before_usd, after_usd : float
        Cost over the horizon of each plan. [USD]
    """

    name: str
    before_usd: float
    after_usd: float

    @property
    def delta_usd(self) -> float:
        """Extra cost of the new plan. [USD]"""
        return self.after_usd - self.before_usd

    @property
    def same(self) -> bool:
        """Return whether the costs differ only by rounding."""
        return math.isclose(self.before_usd, self.after_usd, rel_tol=1e-9, abs_tol=COST_TOLERANCE_USD)


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Differences between two plans.

    Attributes
    ----------
    changes : tuple[FigureChange, ...]
        Changes sorted by subject, period, region and name.
    tco : CostChange
        TCO over the horizon of each plan.
    cost_by_kind, cost_by_service : tuple[CostChange, ...]
        All kinds of cost and all services of either plan; each list adds up to the TCO.
    notes : tuple[str, ...]
        Remarks to read first, for example on periods matched by position.
    shared : CostChange or None
        Cost of the periods common to both plans, if one plan has further periods; each as discounted by its
        plan.
    """

    changes: tuple[FigureChange, ...]
    tco: CostChange
    cost_by_kind: tuple[CostChange, ...]
    cost_by_service: tuple[CostChange, ...]
    notes: tuple[str, ...]
    shared: CostChange | None = None

    @property
    def differs(self) -> bool:
        """Return whether any line or any cost differs."""
        costs = (self.tco, *self.cost_by_kind, *self.cost_by_service)
        return bool(self.changes) or not all(cost.same for cost in costs)

    def count(self, action: Action, subject: DiffSubject | None = None) -> int:
        """Return the number of lines with an action, for one subject or for all."""
        return sum(each.action is action and subject in (None, each.subject) for each in self.changes)


_Key = tuple[DiffSubject, str, str, str]
"""Subject, period, region, name."""


def diff(old: Plan, new: Plan) -> PlanDiff:
    """Return the additions, changes and removals from an old to a new plan.

    Parameters
    ----------
    old, new : Plan
        Plans to compare. Lines are matched by period, region and name. Plans without a common period, such as
        those of two quarters, are matched period by period in order.

    Returns
    -------
    PlanDiff
        Without changes if both plans do the same.
    """
    periods, notes = _matched_periods(old, new)
    before, after = _lines(old, periods), _lines(new, {})
    subjects = list(DiffSubject)
    changes = [
        change
        for key in sorted({*before, *after}, key=lambda key: (subjects.index(key[0]), key[1:]))
        if (change := _change(key, before.get(key), after.get(key))) is not None
    ]
    tco = CostChange("TCO", old.objective_usd, new.objective_usd)
    return PlanDiff(
        changes=tuple(changes),
        tco=tco,
        cost_by_kind=_costs(old.cost_breakdown, new.cost_breakdown),
        cost_by_service=_costs(_usd_by_service(old), _usd_by_service(new)),
        notes=notes,
        shared=_shared(old, new),
    )


def _shared(old: Plan, new: Plan) -> CostChange | None:
    """Return the cost of the common periods, if the horizons differ, as they do for consecutive plans."""
    both = [period for period in old.periods if period in new.periods]
    if not both or old.periods == new.periods:
        return None
    usd = [
        sum(row.usd for row in plan.costs if row.scope == "period" and row.name in both)
        for plan in (old, new)
    ]
    return CostChange(" ".join(both), *usd)


def _matched_periods(old: Plan, new: Plan) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the new names of the old plan's periods, and notes about the match."""
    if old.periods == new.periods:
        return {}, ()
    span_old, span_new = " ".join(old.periods), " ".join(new.periods)
    text = f"the plans cover different periods: {span_old} before, {span_new} after"
    if set(old.periods) & set(new.periods):
        return {}, (f"{text}; periods in only one plan count as added or removed",)
    matched = dict(zip(old.periods, new.periods, strict=False))
    pairs = ", ".join(f"{before} with {after}" for before, after in matched.items())
    return matched, (f"{text}; compared in order: {pairs}",)


def _lines(plan: Plan, renamed: Mapping[str, str]) -> dict[_Key, dict[str, float]]:
    """Return every line of a plan with its figures."""
    lines: dict[_Key, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(subject: DiffSubject, period: str, region: str, name: str, figures: Mapping[str, float]) -> None:
        for figure, value in figures.items():
            lines[subject, renamed.get(period, period), region, name][figure] += value

    for row in plan.placements:
        name = f"{row.service} {row.phase} {row.config} on {row.hardware} in {row.pool}{_when(row)}"
        rates = {f"requests/s {each}": rate for each, rate in row.requests_per_s_by_class.items()}
        figures = {"replicas": row.replicas, "accelerators": row.accelerators, **rates}
        add(DiffSubject.PLACEMENT, row.period, row.region, name, figures)
    for bought in plan.purchases:
        name = f"{bought.kind} {bought.offer}: {bought.hardware} by the {bought.unit} into {bought.pool}"
        figures = {"units": bought.units, "accelerators": bought.accelerators}
        add(DiffSubject.PURCHASE, bought.period, bought.region, name, figures)
    for gone in plan.retirements:
        name = f"{gone.hardware} from {gone.pool}" + (", lease ends" if gone.kind == "return" else "")
        add(DiffSubject.RETIREMENT, gone.period, gone.region, name, {plural(gone.unit): gone.hosts})
    # Accelerators of a pool are the same in every slice and demand scenario; only the reserve differs.
    standing: dict[tuple[str, str], PoolUse] = {}
    for use in plan.pools:
        known = standing.get((use.period, use.pool))
        if known is None or use.reserve_accelerators > known.reserve_accelerators:
            standing[use.period, use.pool] = use
    for use in standing.values():
        name = f"{use.pool} of {use.hardware}"
        figures = {"accelerators": use.accelerators, "reserve": use.reserve_accelerators}
        add(DiffSubject.POOL, use.period, use.region, name, figures)
    for unmet in plan.unmet:
        name = f"{unmet.service} {unmet.request_class}{_when(unmet)}"
        add(DiffSubject.UNMET, unmet.period, unmet.region, name, {"requests/s": unmet.requests_per_s})
    return lines


def _when(row: AtMoment) -> str:
    """Return the slice and demand scenario of a row as text, or an empty string."""
    part = "" if row.slice is None else f" by {row.slice}"
    return part if row.scenario is None else f"{part} if {row.scenario}"


def _change(
    key: _Key, before: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> FigureChange | None:
    """Return the change of one line, or None if it is unchanged."""
    old, new = before or {}, after or {}
    figures = [QuantityChange(name, old.get(name, 0), new.get(name, 0)) for name in {**old, **new}]
    changed = [each for each in figures if not same_figure(each)]
    if before is not None and after is not None:
        if not changed:
            return None
        return FigureChange(Action.CHANGE, *key, tuple(changed))
    return FigureChange(Action.ADD if before is None else Action.REMOVE, *key, tuple(changed))


def same_figure(figure: QuantityChange) -> bool:
    """Return whether a figure is the same in both plans except for rounding."""
    return math.isclose(figure.before, figure.after, rel_tol=TRAFFIC_TOLERANCE_RATIO)


def _usd_by_service(plan: Plan) -> dict[str, float]:
    """Return the TCO by service, plus the idle capacity that no service pays for. [USD]"""
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.service] += row.usd
    return {**usd, IDLE: plan.objective_usd - sum(usd.values())}


def _costs(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[CostChange, ...]:
    """Return the costs of both plans by name, idle capacity last."""
    names = sorted({*before, *after}, key=lambda name: (name == IDLE, name))
    return tuple(CostChange(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names)
