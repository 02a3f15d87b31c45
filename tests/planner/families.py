"""Checks of each constraint family by its example, and the rows that it adds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from ortools.sat.python import cp_model
from tests.planner.family_example import Example
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import Solved, solve, solve_unchecked

from fleetplan.planner.formulation.build import FAMILIES, PlanningModel, build_model, decide
from fleetplan.planner.formulation.create import create_variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify import verify

GOLDEN = Path(__file__).parents[1] / "golden"
"""Rows of every family; `python -m tests.planner.families` writes them anew after a wanted change."""


def family_name(module: object) -> str:
    """Last part of the name of a family's module."""
    return str(getattr(module, "__name__", "")).rsplit(".", 1)[-1]


def family_rows(problem: Problem, name: str) -> list[str]:
    """The rows that one family adds to the model of a problem, as text."""
    module = next(family for family in FAMILIES if family_name(family) == name)
    model = cp_model.CpModel()
    variables = create_variables(model, problem, allow_unmet=problem.fleet.policy.unmet == "penalise")
    decide([module], model, problem, variables)
    module.add(model, problem, variables)
    return list(rows_of(model))


def rows_of(model: cp_model.CpModel) -> Iterator[str]:
    """Every row as `name: low <= terms <= high`."""
    names = [variable.name for variable in model.proto.variables]
    for row in model.proto.constraints:
        if row.has_bool_or():
            yield f"{row.name}: {'always' if len(row.bool_or.literals) else 'never'}"
            continue
        linear = row.linear
        terms = " ".join(
            f"{coefficient:+d}*{names[index]}"
            for coefficient, index in sorted(
                zip(list(linear.coeffs), list(linear.vars), strict=True), key=lambda t: t[1]
            )
        )
        low, high = linear.domain[0], linear.domain[1]
        text = terms if low < -(2**62) else f"{low} <= {terms}"
        yield f"{row.name}: {text}" if high > 2**62 else f"{row.name}: {text} <= {high}"


def dump(name: str) -> str:
    """The golden text of a family: its variables and rows in its example."""
    example = EXAMPLES[name]()
    problem = example.problem()
    planning: PlanningModel = build_model(problem, allow_unmet=False)
    variables = [
        f"{variable.name}: {variable.domain[0]}..{variable.domain[1]}"
        for variable in planning.model.proto.variables
    ]
    lines = [f"variables of the example of {name}", *variables, "", f"rows of {name}"]
    return "\n".join([*lines, *family_rows(problem, name)]) + "\n"


def example_of(name: str) -> Example:
    """The example of a family."""
    assert name in EXAMPLES, f"family {name} has no example: add one to tests/planner/family_examples.py"
    return EXAMPLES[name]()


@cache
def solved_example(name: str) -> Solved:
    """The verified plan of the example, which costs what was worked out by hand."""
    example = example_of(name)
    solved = solve(example.fleet, example.candidates, scenario_optima=example.scenario_optima)
    assert solved.usd == pytest.approx(example.usd)
    return solved


def check_deletion(name: str, monkeypatch: pytest.MonkeyPatch, instead: tuple[object, ...] = ()) -> None:
    """Without the family, the verifier reports the plan that the solver then finds."""
    example = example_of(name)
    rest = tuple(family for family in FAMILIES if family_name(family) != name)
    monkeypatch.setattr("fleetplan.planner.formulation.build.FAMILIES", (*rest, *instead))
    solved = solve_unchecked(
        example.unlimited or example.fleet, example.candidates, scenario_optima=example.scenario_optima
    )
    assert solved.plan is not None
    reported = {violation.family for violation in verify(solved.problem, solved.plan)}
    assert (example.reported or name) in reported, "the verifier does not miss the family: planner/verify"


def main() -> None:
    """Write the golden files."""
    for name in EXAMPLES:
        (GOLDEN / f"{name}.txt").write_text(dump(name), encoding="utf-8")


if __name__ == "__main__":
    main()
