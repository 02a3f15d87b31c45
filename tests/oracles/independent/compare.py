"""Set the planner's plan of a fleet beside the independent optimum.

Both state an interval: a plan's figure and a bound that no plan passes. The planner decides loads in whole
units, so its optimum lies between that of the loose formulation, in which a share may be passed by a load
unit of each load, and that of the coarse one, in which every load may waste a unit. Both are solved only
where the exact one does not agree.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.oracles.independent.planned import INFEASIBLE, NO_PLAN, PLAN, Planned, planned
from tests.oracles.independent.worker import Oracle, OracleError

RELATIVE_TOLERANCE = 1e-6
"""Of cost, unmet demand and goals: what the asked gap leaves open."""

GOAL_TOLERANCE = 1e-5
"""Of served demand and energy: the planner takes plans within this share for equals."""

ENERGY_TOLERANCE = 1e-4
"""Of the energy: the planner bills whole load units (planner/formulation/FORMULATION.md, Integers)."""

UNMET_TOLERANCE = 1e-5
"""Of unmet demand: the planner takes it for the least within this share of it."""

CAP_SLACK = 1e-7
"""What may be lost of the planner's earlier figures: more than HiGHS's tolerance of a row."""

ABSOLUTE_TOLERANCE = 1e-5
"""Of unmet demand and goals near zero, in their unit; of cost, in USD."""

COST = "cost"
INFINITE = float("inf")

Answers = Mapping[str, tuple[float, float]]


class Verdict(StrEnum):
    """Result of a comparison."""

    AGREE = "agree"
    AGREE_INFEASIBLE = "agree, infeasible"
    AGREE_COARSELY = "agree within load units"
    OPEN = "open at the time limit, no contradiction"
    DISAGREE = "disagree"
    EXCEPTION = "exception"


FAILED = (Verdict.DISAGREE, Verdict.EXCEPTION)
"""Verdicts that a change must not bring."""


@dataclass(frozen=True)
class Comparison:
    """A verdict with what both sides said."""

    verdict: Verdict
    text: str


def compare(path: Path, oracle: Oracle, *, time_limit_s: float, workers: int) -> Comparison:
    """Plan a fleet file, solve it anew, and compare."""
    try:
        plan = planned(path, time_limit_s, workers)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return Comparison(Verdict.EXCEPTION, f"{type(error).__name__} at {place}: {error}")
    try:
        return compare_plan(path, oracle, plan)
    except OracleError as error:
        return Comparison(Verdict.OPEN, f"the second formulation: {error}")


def compare_plan(path: Path, oracle: Oracle, plan: Planned) -> Comparison:
    """Compare what the planner made of a fleet file.

    Raises
    ------
    OracleError
        If the second formulation finds neither a solution nor a proof.
    """
    exact = oracle.ask(path)
    if plan.kind == NO_PLAN:
        return Comparison(Verdict.OPEN, "the planner found no plan")
    if plan.kind == INFEASIBLE:
        if not exact:
            return Comparison(Verdict.AGREE_INFEASIBLE, "infeasible")
        if not oracle.ask(path, mode="coarse"):
            return Comparison(Verdict.AGREE_COARSELY, "infeasible in load units")
        return Comparison(Verdict.DISAGREE, f"the planner: infeasible; the second formulation: {exact}")
    if not exact and plan.kind == PLAN:
        exact = oracle.ask(path, mode="loose")
    if not exact:
        return Comparison(Verdict.DISAGREE, f"the planner: {plan}; the second formulation: infeasible")
    return _stages(path, oracle, plan, exact)


def _stages(path: Path, oracle: Oracle, plan: Planned, exact: Answers) -> Comparison:
    """Compare every figure in its order; each later one is the least at the planner's earlier ones."""
    figures = _figures(plan, exact)
    verdict, open_text = Verdict.AGREE, ""
    caps: dict[str, float] = {}
    for name, (value, bound) in figures.items():
        tolerance = _tolerance(plan, name, value)
        if caps:
            exact = oracle.ask(path, caps=caps) or oracle.ask(path, mode="loose", caps=caps)
        if not exact:
            return Comparison(Verdict.DISAGREE, f"better than possible, or the order of stages: {plan}")
        least, low = exact[name]
        said = f"{name}: the planner {value!r} (bound {bound!r}), the other {least!r} (bound {low!r})"
        if value < low - tolerance:
            loose = oracle.ask(path, mode="loose", caps=caps)
            if not loose or value < loose[name][1] - tolerance:
                return Comparison(
                    Verdict.DISAGREE, f"better than possible: {said}, in load units {loose.get(name)}"
                )
            verdict = Verdict.AGREE_COARSELY
        proven = value - bound <= tolerance
        if bound > least + tolerance or (proven and value > least + tolerance):
            coarse = oracle.ask(path, mode="coarse", caps=_coarse(caps))
            most = coarse[name][0] + tolerance if coarse else INFINITE
            said += f", in load units {most!r}"
            if bound > most or (proven and value > most):
                return Comparison(Verdict.DISAGREE, f"worse than possible: {said}")
            verdict = Verdict.AGREE_COARSELY
        elif value > least + tolerance:
            open_text = said
        # What the planner passes within the tolerance is beyond every solution of the other formulation.
        reached = max(value, low)
        caps[name] = reached + CAP_SLACK * max(1.0, abs(reached))
    if open_text:
        return Comparison(Verdict.OPEN, open_text)
    return Comparison(verdict, ", ".join(f"{name} {value!r}" for name, (value, _) in figures.items()))


def _figures(plan: Planned, exact: Answers) -> dict[str, tuple[float, float]]:
    """The planner's value and bound of every stage of the second formulation."""
    figures: dict[str, tuple[float, float]] = {}
    for name in exact:
        if name == COST:
            figures[name] = (plan.usd, plan.bound_usd)
        elif name.startswith("unmet"):
            priority = int(name.removeprefix("unmet"))
            value = plan.unmet.get(priority, 0.0)
            figures[name] = (value, value * (1 - plan.unmet_gaps.get(priority, 0.0)))
        else:
            assert plan.goal is not None
            assert plan.goal_bound is not None
            figures[name] = (plan.goal, plan.goal_bound)
    return figures


def _coarse(caps: Mapping[str, float]) -> dict[str, float]:
    """Figures that whole loads keep where the coarse formulation keeps these: energy is by load unit."""
    return {name: cap * (1 - ENERGY_TOLERANCE) if name == "energy" else cap for name, cap in caps.items()}


def _tolerance(plan: Planned, name: str, value: float) -> float:
    tolerance = max(RELATIVE_TOLERANCE * abs(value), ABSOLUTE_TOLERANCE)
    if name == COST:
        tolerance += ENERGY_TOLERANCE * plan.energy_usd + plan.data_unit_usd
    if name.startswith("unmet"):
        tolerance += UNMET_TOLERANCE * value
    if name in ("served", "energy"):
        tolerance += GOAL_TOLERANCE * abs(value)
    if name == "energy":
        tolerance += ENERGY_TOLERANCE * value
    return tolerance
