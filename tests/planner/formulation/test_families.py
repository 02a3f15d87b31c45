"""Every constraint family with its example: the optimum, a change without a plan, the rows, the verifier."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ortools.sat.python import cp_model
from tests.planner.families import GOLDEN, check_deletion, dump, example_of, family_name, solved_example
from tests.planner.solving import is_infeasible

from fleetplan.planner.formulation import build
from fleetplan.planner.formulation.build import FAMILIES, build_model, decide
from fleetplan.planner.formulation.create import create_variables
from fleetplan.planner.formulation.objective.supply import supply_charges
from fleetplan.planner.formulation.objective.tco import prices_of_running

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


def test_what_a_family_decides_is_there_before_any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets include the cost of every family's variables, also of families after them."""
    rows: list[int] = []
    last = SimpleNamespace(
        decide=lambda model, *_: rows.append(len(model.proto.constraints)), add=lambda *_: 0
    )
    monkeypatch.setattr(build, "FAMILIES", (*FAMILIES, last))
    build_model(example_of("budgets").problem(), allow_unmet=False)
    assert rows == [0]


@of_every_family
def test_what_costs_is_decided_before_rows_are_added(name: str) -> None:
    priced = {*supply_charges(), *prices_of_running()}
    problem, model = example_of(name).problem(), cp_model.CpModel()
    variables = create_variables(model, problem, allow_unmet=False)
    decide(FAMILIES, model, problem, variables)
    known = {group: len(getattr(variables, group)) for group in priced}
    for family in FAMILIES:
        family.add(model, problem, variables)
        late = [group for group in priced if len(getattr(variables, group)) > known[group]]
        assert not late, (
            f"{family_name(family)} makes {late} with its rows: in `decide`, budgets hold their cost"
        )
