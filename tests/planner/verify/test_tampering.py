"""Verification fails for a plan document with any one field changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import solve
from tests.planner.verify.plans import PLANS, example
from tests.planner.verify.tampering import ANNOTATIONS, CLAIMS, Tampering, is_listed, tamperings
from tests.planner.whole_fleet import whole_plan

from fleetplan.perfmodel.steps.room import LONGEST_TRIED_TOKENS
from fleetplan.planner.plan import CalibrationUse, Plan, Rejections, StatedTable
from fleetplan.planner.plan.inputs import PlanInputs
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify import Evidence, launches, verify
from fleetplan.planner.verify.whole_plan import violations

NO_EVIDENCE = Evidence((), (), (), "")

LEAST_CHANGES = 200
"""Of one plan."""

LEAST_FIELDS = 500
"""Fields and kinds of change of all plans together."""


def document_of(plan: Plan) -> dict[str, Any]:
    """The document as it is written."""
    found: dict[str, Any] = json.loads(plan.model_dump_json())
    return found


def meaningful(
    document: dict[str, Any], plan: Plan, *, once: bool, seen: set[tuple[str, str]]
) -> Iterator[tuple[Tampering, Plan | None]]:
    """Changes that change what a plan says; of each field and kind the first one alone, or all of them."""
    for each in tamperings(document):
        known = (each.pattern, each.kind) in seen and once
        if known or is_listed(each.pattern, ANNOTATIONS) or is_listed(each.pattern, CLAIMS):
            continue
        changed = each.plan(document)
        if changed is None or changed != plan:
            seen.add((each.pattern, each.kind))
            yield each, changed


def missed(
    problem: Problem,
    plan: Plan,
    evidence: Evidence = NO_EVIDENCE,
    *,
    once: bool = True,
    seen: set[tuple[str, str]] | None = None,
) -> tuple[int, list[str]]:
    """Return the number of changes to detect, and those that the verifier misses."""
    document, count, found = document_of(plan), 0, []
    for each, changed in meaningful(document, plan, once=once, seen=set() if seen is None else seen):
        count += 1
        # What cannot be read any more is noticed.
        if changed is not None and next(violations(problem, changed, evidence), None) is None:
            found.append(f"{each.pattern} {each.kind}")
    return count, found


@pytest.mark.more
def test_no_change_of_any_field_goes_unnoticed() -> None:
    """Each on the first of the plans that has it; on all plans in the tests below."""
    whole = whole_plan()
    assert whole.plan is not None
    seen: set[tuple[str, str]] = set()
    found = []
    for problem, plan in (*(make() for make in PLANS.values()), (whole.problem, whole.plan)):
        assert verify(problem, plan, NO_EVIDENCE) == []
        found += missed(problem, plan, seen=seen)[1]
    assert found == []
    assert len(seen) >= LEAST_FIELDS


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_no_change_of_a_field_goes_unnoticed(name: str) -> None:
    problem, plan = PLANS[name]()
    assert verify(problem, plan, NO_EVIDENCE) == []
    count, unnoticed = missed(problem, plan)
    assert unnoticed == []
    assert count >= LEAST_CHANGES


@pytest.mark.slow
def test_no_change_of_a_plan_with_every_kind_of_price_goes_unnoticed() -> None:
    solved = whole_plan()
    assert solved.plan is not None
    count, unnoticed = missed(solved.problem, solved.plan)
    assert unnoticed == []
    assert count >= LEAST_CHANGES


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLANS, *EXAMPLES])
def test_no_change_of_any_row_goes_unnoticed(name: str) -> None:
    problem, plan = PLANS[name]() if name in PLANS else example(name)
    _, unnoticed = missed(problem, plan, once=False)
    assert unnoticed == []


def test_the_plans_have_every_kind_of_row_between_them() -> None:
    """A row that no plan has is one that no change is tried on."""
    plans = [make()[1] for make in PLANS.values()] + [example("region_loss")[1], whole_plan().plan]
    for model, skipped in ((Plan, {"rejections"}), (PlanInputs, set())):
        holders = [plan if model is Plan else plan.inputs for plan in plans if plan is not None]
        rows = {name for each in holders for name, value in each or () if isinstance(value, tuple) and value}
        lists = {name for name, field in model.model_fields.items() if "tuple" in str(field.annotation)}
        assert lists - rows == skipped
    assert any(plan.goal is not None for plan in plans if plan is not None)


def test_what_was_left_out_and_what_gave_the_rates_is_held_against_what_is_found() -> None:
    problem, plan = PLANS["least energy"]()
    left_out = Rejections(
        service="chat", counts={"ttft": 3}, by_hardware={"hot": {"ttft": 1}, "cool": {"ttft": 2}}
    )
    table = StatedTable(
        package="p",
        package_version="1",
        system="s",
        framework="f",
        framework_version="1",
        path="t",
        sha256="0a",
    )
    calibration = CalibrationUse(
        hardware="hot", framework="f", framework_version="1", model="m", weights="fp8", kv="fp8",
        prefill_ratio=1.1, decode_ratio=0.9, rows=4, error_before=0.2, error_after=0.1, created="2026-01-01",
        path="c.json", sha256="0b", measurements="m.csv", measurements_sha256="0c",
    )  # fmt: skip
    provenance = plan.provenance.model_copy(
        update={
            "table_sources": (table,),
            "calibrations": (calibration,),
            "baseline_file": "in-force.json",
            "baseline_sha256": "0d",
        }
    )
    stated = plan.model_copy(update={"rejections": (left_out,), "provenance": provenance})
    evidence = Evidence((left_out,), (table,), (calibration,), "0d")
    assert verify(problem, stated, evidence) == []
    assert missed(problem, stated, evidence)[1] == []


def test_a_sequence_longer_than_any_that_is_tried_is_not_stated() -> None:
    """A plan states no sequence longer than the longest one tried, even where it fits the memory."""
    problem, plan = PLANS["launched models"]()
    assert plan.inputs is not None
    longest = plan.inputs.launches[0].model_copy(update={"sequence_tokens": LONGEST_TRIED_TOKENS + 1})
    inputs = plan.inputs.model_copy(update={"launches": (longest, *plan.inputs.launches[1:])})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(launches, "sequence_fits", lambda *_: True)
        found = verify(problem, plan.model_copy(update={"inputs": inputs}), NO_EVIDENCE)
    assert any(f"sequence of {LONGEST_TRIED_TOKENS + 1:,} tokens" in each.message for each in found)


def test_annotations_and_claims_are_few_and_exist() -> None:
    """Every path in the lists exists in some plan, and is not checked otherwise."""
    documents = [document_of(make()[1]) for make in PLANS.values()]
    paths = {each.pattern for document in documents for each in tamperings(document)}
    for known in (ANNOTATIONS, CLAIMS):
        assert len(known) <= 15
        assert all(reason for reason in known.values())
    optional = {"provenance.versions.*", "provenance.warnings*", "provenance.baseline_file"}
    unknown = [each for each in (*ANNOTATIONS, *CLAIMS) if not any(is_listed(p, {each: ""}) for p in paths)]
    assert set(unknown) <= optional


def test_a_line_of_less_than_rounding_names_its_own_price() -> None:
    """A bill line of 0.00006 USD must name the price of its own month."""
    asked = fleet(
        services=[service("chat", 1.0, periods=("2027Q1", "2027Q2"))],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("rent", 1.0, hardware="A", periods=("2027Q1", "2027Q2"))],
        regions=[region("here", energy_usd_per_kwh=(1e-12, 2e-12))],
        periods=("2027Q1", "2027Q2"),
    )
    solved = solve(asked, [candidate("chat", "A", 1.0, power_kw=1.0)])
    assert solved.plan is not None
    document = document_of(solved.plan)
    lines = document["inputs"]["cost_lines"]
    [first, second] = [line for line in lines if line["kind"] == "energy"]
    for key, value, wrong in (("price", second["price"], True), ("unit", "MWh", True), ("usd", 0.0, False)):
        right, first[key] = first[key], value
        found = verify(solved.problem, Plan.model_validate_json(json.dumps(document)), NO_EVIDENCE)
        assert bool(found) is wrong, (key, found)
        first[key] = right
    # Random fleet 907001: such a line could be stated twice.
    lines.append(first)
    assert verify(solved.problem, Plan.model_validate_json(json.dumps(document)), NO_EVIDENCE)
