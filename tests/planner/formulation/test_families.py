"""Every constraint family with its example: the optimum, a change without a plan, the rows, the verifier."""

from __future__ import annotations

import pytest
from tests.planner.families import GOLDEN, check_deletion, dump, example_of, family_name, solved_example
from tests.planner.solving import is_infeasible

from fleetplan.planner.formulation.build import FAMILIES

of_every_family = pytest.mark.parametrize("name", [family_name(family) for family in FAMILIES])


@of_every_family
def test_the_example_has_its_optimum(name: str) -> None:
    assert solved_example(name).plan is not None


@of_every_family
def test_the_changed_example_has_no_plan(name: str) -> None:
    assert is_infeasible(example_of(name).infeasible, example_of(name).candidates)


@of_every_family
def test_the_rows_are_the_golden_ones(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    written = golden.read_text(encoding="utf-8") if golden.exists() else ""
    assert dump(name) == written, "after a wanted change: python -m tests.planner.families"


@of_every_family
def test_without_the_family_the_verifier_reports_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_deletion(name, monkeypatch)
