"""planner/formulation/FORMULATION.md against the models that are built."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.families import family_name
from tests.planner.family_examples import EXAMPLES

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.build import FAMILIES, build_model
from fleetplan.planner.formulation.groups import GROUPS
from fleetplan.planner.problem import build_problem

REPOSITORY = Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "planner" / "formulation" / "FORMULATION.md"
MADE_BY_THE_SEARCH = {"unmet_limit"}
"""Rows that the search adds between two solves."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table of constraints and objective."""

    identifier: str
    solver_name: str | None
    file: str
    function: str
    test: str


def table() -> list[Row]:
    """The rows of the document that name a function and a test."""
    rows = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        place = re.fullmatch(r"`(.+\.py):(\w+)`", cells[3]) if len(cells) == 5 else None
        if place is not None:
            name = re.fullmatch(r"`(\w+)\[\.\.\.\]`", cells[2])
            rows.append(Row(cells[0], name and name[1], place[1], place[2], cells[4].strip("`")))
    return rows


def built_names() -> tuple[set[str], set[str]]:
    """Kinds of rows and of variables in the examples of all families, and in a model of one class."""
    one_class = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        policy={"unmet": "penalise"},
    )
    runs = tuple(candidate("chat", "A", 1.0, phase=phase) for phase in ("prefill", "decode", "aggregated"))
    places = ("east", "west")
    lost = replace(
        one_class,
        services=(service("chat", 1.0, regions=places),),
        offers=(rent_offer("A", 1.0, regions=places),),
        regions=(region("east"), region("west")),
        policy=replace(one_class.policy, survive_region_loss=("chat",)),
    )
    kept = replace(
        one_class,
        offers=(rent_offer("A", 1.0, unit="host"),),
        policy=replace(one_class.policy, reserve_percent_per_pool=10.0),
    )
    # Replicas of these sizes divide a host in more ways than can be listed.
    wide = replace(
        one_class,
        hardware={"A": hardware("A", 181)},
        offers=(rent_offer("A", 1.0, unit="host", per_unit=181),),
    )
    sizes = [candidate("chat", "A", 1.0, accelerators=size, config=f"x{size}") for size in (24, 8, 4, 3, 2)]
    under_load = tuple(replace(run, pooling=(CapacityLine(0.9, 0.5),)) for run in runs)
    problems = [example().problem() for example in EXAMPLES.values()]
    problems += [build_problem(one_class, runs), build_problem(lost, runs), build_problem(lost, under_load)]
    problems += [build_problem(kept, runs), build_problem(wide, sizes)]
    rows: set[str] = set()
    variables: set[str] = set()
    for problem in problems:
        model = build_model(problem, allow_unmet=True).model
        rows |= {row.name.partition("[")[0] for row in model.proto.constraints}
        variables |= {variable.name.partition("[")[0] for variable in model.proto.variables}
    return rows, variables


def test_every_family_has_a_row() -> None:
    documented = {Path(row.file).stem for row in table()}
    assert {family_name(family) for family in FAMILIES} <= documented


def test_every_row_of_a_model_is_documented_and_every_documented_row_is_made() -> None:
    rows, _ = built_names()
    assert {row.solver_name for row in table() if row.solver_name} - MADE_BY_THE_SEARCH == rows


def test_families_have_the_order_of_the_code() -> None:
    order = [family_name(family) for family in FAMILIES]
    documented = [Path(row.file).stem for row in table() if Path(row.file).stem in order]
    assert documented == sorted(documented, key=order.index)


def test_every_kind_of_variable_is_documented_in_the_order_of_the_code() -> None:
    _, variables = built_names()
    decisions = DOCUMENT.read_text(encoding="utf-8").split("## Decisions")[1].split("##")[0]
    documented = re.findall(r"^\| `(\w+)\[", decisions, re.MULTILINE)
    assert set(documented) == variables
    groups = [group.name for group in GROUPS]
    assert [name for name in documented if name in groups] == groups


def test_functions_and_tests_exist() -> None:
    for row in table():
        tree = ast.parse((DOCUMENT.parent / row.file).read_text(encoding="utf-8"))
        assert row.function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert (REPOSITORY / row.test).is_file()


def test_names_of_rows_and_variables_are_unique() -> None:
    for example in EXAMPLES.values():
        model = build_model(example().problem(), allow_unmet=True).model
        for group in (model.proto.constraints, model.proto.variables):
            names = [item.name for item in group]
            assert all(names)
            assert len(set(names)) == len(names)
