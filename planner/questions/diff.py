"""Differences between two plans, as a list that a person can review line by line."""

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
"""Relative difference of a quantity below which it is the same: rounding of the traffic in a plan file."""

COST_TOLERANCE_USD: Final = 0.005
"""Difference of a cost below which it is the same: half a cent. [USD]"""

IDLE: Final = "idle capacity"
"""Name of the cost that no service pays for."""


class Action(StrEnum):
    """Kind of change of one line of a plan."""

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
    """One figure of a line, 0 where a plan does not have the line.

    Attributes
    ----------
    name : str
        What is counted: replicas, accelerators, units, hosts, or requests/s of a class.
    before, after : float
        In the old and in the new plan.
    """

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One line that the plans do not share.

    Attributes
    ----------
    action : Action
        Whether the new plan adds, changes or removes it.
    subject : DiffSubject
        What it is about.
    period, region : str
        When and where, by the names of the new plan.
    name : str
        What it is, such as `chat decode TP8 on H200-SXM in east-h200`.
    quantities : tuple[QuantityChange, ...]
        All figures of a line that is added or removed; of a changed one those that differ.
    """

    action: Action
    subject: DiffSubject
    period: str
    region: str
    name: str
    quantities: tuple[QuantityChange, ...]

    def delta(self, quantity: str) -> float:
        """How much one of its figures grows; 0 where it stays."""
        return sum(each.after - each.before for each in self.quantities if each.name == quantity)


@dataclass(frozen=True, slots=True)
class CostChange:
    """One part of the TCO in both plans.

    Attributes
    ----------
    name : str
        A kind of cost, or a service.
    before_usd, after_usd : float
        Over the horizon of each plan. [USD]
    """

    name: str
    before_usd: float
    after_usd: float

    @property
    def delta_usd(self) -> float:
        """What the new plan costs more. [USD]"""
        return self.after_usd - self.before_usd

    @property
    def same(self) -> bool:
        """Whether the two differ by rounding at most."""
        return math.isclose(self.before_usd, self.after_usd, rel_tol=1e-9, abs_tol=COST_TOLERANCE_USD)


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Differences between two plans.

    Attributes
    ----------
    changes : tuple[FigureChange, ...]
        Sorted by subject, period, region and name.
    tco : CostChange
        TCO over the horizon of each plan.
    cost_by_kind, cost_by_service : tuple[CostChange, ...]
        Every kind and every service of either plan; each list adds up to the TCO.
    notes : tuple[str, ...]
        What to know before reading it, such as periods that were matched by their position.
    shared : CostChange or None
        Cost of the periods that both plans have, where one has others besides; each as its plan discounts it.
    """

    changes: tuple[FigureChange, ...]
    tco: CostChange
    cost_by_kind: tuple[CostChange, ...]
    cost_by_service: tuple[CostChange, ...]
    notes: tuple[str, ...]
    shared: CostChange | None = None

    @property
    def differs(self) -> bool:
        """Whether anything differs: a line, or what the same lines cost."""
        costs = (self.tco, *self.cost_by_kind, *self.cost_by_service)
        return bool(self.changes) or not all(cost.same for cost in costs)

    def count(self, action: Action, subject: DiffSubject | None = None) -> int:
        """How many lines an action concerns, of one subject or of all."""
        return sum(each.action is action and subject in (None, each.subject) for each in self.changes)


_Key = tuple[DiffSubject, str, str, str]
"""Subject, period, region, name."""


def diff(old: Plan, new: Plan) -> PlanDiff:
    """What the new plan adds, changes and removes.

    Parameters
    ----------
    old, new : Plan
        Two plans. Lines are matched by period, region and name. Plans that share no period, such as those
        of two quarters, are matched period by period in order.

    Returns
    -------
    PlanDiff
        Empty of changes where both do the same.
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
    """Cost of the periods of both plans; the horizon of a plan that follows another one has moved on."""
    both = [period for period in old.periods if period in new.periods]
    if not both or old.periods == new.periods:
        return None
    usd = [
        sum(row.usd for row in plan.costs if row.scope == "period" and row.name in both)
        for plan in (old, new)
    ]
    return CostChange(" ".join(both), *usd)


def _matched_periods(old: Plan, new: Plan) -> tuple[dict[str, str], tuple[str, ...]]:
    """New names of the old plan's periods, and what to say about them."""
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
    """Every line of a plan with its figures."""
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
    # What stands is the same in every slice and demand scenario; it is kept free where something runs.
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
    """Slice and demand scenario of a row; empty where there are none."""
    part = "" if row.slice is None else f" by {row.slice}"
    return part if row.scenario is None else f"{part} if {row.scenario}"


def _change(
    key: _Key, before: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> FigureChange | None:
    """The change of one line, or None where it stays."""
    old, new = before or {}, after or {}
    figures = [QuantityChange(name, old.get(name, 0), new.get(name, 0)) for name in {**old, **new}]
    changed = [each for each in figures if not same_figure(each)]
    if before is not None and after is not None:
        if not changed:
            return None
        return FigureChange(Action.CHANGE, *key, tuple(changed))
    return FigureChange(Action.ADD if before is None else Action.REMOVE, *key, tuple(changed))


def same_figure(figure: QuantityChange) -> bool:
    """Return whether a figure is the same in both plans but for rounding."""
    return math.isclose(figure.before, figure.after, rel_tol=TRAFFIC_TOLERANCE_RATIO)


def _usd_by_service(plan: Plan) -> dict[str, float]:
    """TCO by service, with what none of them pays for. [USD]"""
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.service] += row.usd
    return {**usd, IDLE: plan.objective_usd - sum(usd.values())}


def _costs(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[CostChange, ...]:
    """Costs of both plans by name; the idle capacity comes last."""
    names = sorted({*before, *after}, key=lambda name: (name == IDLE, name))
    return tuple(CostChange(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names)
