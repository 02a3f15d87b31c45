"""Changes of single fields of a random plan that `plan verify` does not notice."""

from __future__ import annotations

import json
import operator
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import KvFlow, OfflineWork, Placement, Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify import Evidence, verify
from fleetplan.planner.verify.goals import ROUNDING_RATIO
from fleetplan.planner.verify.records import MONEY
from fleetplan.planner.verify.rounding import MONEY_FLOOR_RATIO, RELATIVE_TOLERANCE, SHARE_FLOOR
from tests.planner.verify.tampering import ANNOTATIONS, CLAIMS, Tampering, is_listed, tamperings
from tests.planner.verify.tampering import Path as FieldPath

EQUALS = {"region_losses[].config": "another configuration may carry the same with as many replicas"}
"""Fields that may be replaced by what makes another plan that holds, with the reason."""


def unnoticed(
    candidates: CandidateSet, problem: Problem, plan: Plan, dice: random.Random, most: int
) -> Iterator[str]:
    """Yield material changes of a plan that the verifier does not report.

    Parameters
    ----------
    candidates, problem : CandidateSet, Problem
        Of the fleet.
    plan : Plan
        Of this fleet, without a plan in force.
    dice : random.Random
        For which fields are changed, and in which row.
    most : int
        Changes that are tried at the most, each of another field or kind.
    """
    evidence = Evidence(candidates.rejections, candidates.table_sources, candidates.calibrations, "")
    document: dict[str, Any] = json.loads(plan.model_dump_json())
    by_field: dict[tuple[str, str], list[Tampering]] = defaultdict(list)
    for each in tamperings(document):
        if not is_listed(each.pattern, ANNOTATIONS) and not is_listed(each.pattern, CLAIMS):
            by_field[each.pattern, each.kind].append(each)
    for field in dice.sample(sorted(by_field), min(most, len(by_field))):
        each = dice.choice(by_field[field])
        if each.kind == "replaced" and each.pattern in EQUALS:
            continue
        changed = each.plan(document)
        # What cannot be read any more is noticed.
        if changed is None or changed == plan or _is_rounding(each.path, document, changed, plan):
            continue
        if not verify(problem, changed, evidence):
            yield f"{each.pattern} {each.kind}, {each.path}: {_at(document, each.path)!r:.200}"


def _is_rounding(path: FieldPath, before: dict[str, Any], changed: Plan, plan: Plan) -> bool:
    """Return whether a number changed by less than the tolerance of stated figures (FORMULATION.md)."""
    old, new = _at(before, path), _at(json.loads(changed.model_dump_json()), path)
    if new is None and len(path) > 1 and path[-2] in MONEY:
        # A kind of cost or a period that is left out costs nothing.
        new = 0.0
    if not isinstance(old, float) or not isinstance(new, int | float):
        return False
    if path[0] == "offline_work" and isinstance(path[1], int):
        # All work of a kind together is held against what arises, of which a crumb is no part that counts.
        kind = _work_key(plan.offline_work[path[1]])
        alike = (row.requests_per_day for row in plan.offline_work if _work_key(row) == kind)
        return abs(new - old) <= RELATIVE_TOLERANCE * sum(alike)
    if path[0] == "placements" and "requests_per_s_by_class" in path and isinstance(path[1], int):
        # So is a class that a phase serves in several places.
        row, name = plan.placements[path[1]], str(path[-1])
        served = (
            each.requests_per_s_by_class.get(name, 0.0) for each in plan.placements if _same_phase(each, row)
        )
        return abs(new - old) <= max(SHARE_FLOOR, RELATIVE_TOLERANCE * sum(served))
    if path[0] == "kv_flows" and path[-1] == "requests_per_s" and isinstance(path[1], int):
        # Flows are held against what the placements at their ends serve.
        flow = plan.kv_flows[path[1]]
        passed = (_passed_at(end, flow, plan.kv_flows) for end in ("prefill", "decode"))
        return abs(new - old) <= RELATIVE_TOLERANCE * min(passed)
    if path[0] == "unmet" and isinstance(path[1], int) and plan.unmet[path[1]] not in plan.shortages:
        # What loads in whole units leave of demand is no shortage.
        return abs(new) <= 2 * old
    is_money = path[0] == "cost_breakdown" or any("usd" in str(part) for part in path)
    largest_usd = max(abs(plan.objective_usd), sum(abs(row.usd) for row in plan.purchases))
    # A regret is the difference of two costs, and the model rounds each.
    is_regret = path[0] == "goal" and plan.goal is not None and plan.goal.objective == "least-regret"
    rounding_usd = (MONEY_FLOOR_RATIO * is_money + 2 * ROUNDING_RATIO * is_regret) * largest_usd
    return abs(new - old) <= max(SHARE_FLOOR, rounding_usd)


def _work_key(row: OfflineWork) -> tuple[str | None, ...]:
    """Return the key of offline work of one kind, whenever it is done."""
    return row.service, row.region, row.request_class, row.period, row.arises_in, row.scenario


def _same_phase(one: Placement, other: Placement) -> bool:
    """Return whether two placements serve the same service, phase and moment."""
    key = operator.attrgetter("service", "phase", "region", "period", "slice", "scenario")
    return bool(key(one) == key(other))


def _passed_at(end: str, flow: KvFlow, flows: Sequence[KvFlow]) -> float:
    """Return the requests of a class that all flows pass at one end of this flow. [requests/s]"""
    place = operator.attrgetter(
        "service", "request_class", "origin", "moment_key", f"{end}_pool", f"{end}_config"
    )
    return sum(each.requests_per_s for each in flows if place(each) == place(flow))


def _at(document: Any, path: FieldPath) -> Any:
    """Return the value of a field; None if missing."""
    for part in path:
        if isinstance(part, int):
            document = document[part] if part < len(document) else None
        else:
            document = (document or {}).get(part)
    return document
