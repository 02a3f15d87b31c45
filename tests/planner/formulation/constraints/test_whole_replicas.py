"""Rows on whole replicas that coverage and replica load imply."""

from __future__ import annotations

from functools import cache

import pytest
from ortools.sat.python import cp_model
from tests.parts import first_parts
from tests.planner.builders import candidate, fleet, hardware, rent_offer, service
from tests.planner.families import rows_of
from tests.planner.random_fleets import several_periods_case, tiny_case

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.formulation.constraints import whole_replicas
from fleetplan.planner.problem import Candidate, Problem, build_problem


@cache
def problems(tiny: int, large: int) -> list[Problem]:
    cases = [*map(tiny_case, range(tiny)), *map(several_periods_case, range(large))]
    return [build_problem(case.fleet, case.candidates) for case in cases]


def two_classes(*candidates: Candidate, short: float = 8.0, long: float = 4.0) -> Problem:
    question: Fleet = fleet(
        services=[service("chat", {"short": short, "long": long}, classes={"short": 0.5, "long": 0.5})],
        hardware=[hardware(name, 1) for name in "AB"],
        offers=[rent_offer(name, 1.0) for name in "AB"],
    )
    return build_problem(question, candidates)


def implied(problem: Problem) -> list[str]:
    """The rows of the decode phase; a request/s is 1e7 rate units."""
    model = build_model(problem, allow_unmet=False).model
    return [row for row in rows_of(model) if row.startswith("replicas_decode")]


def test_there_is_a_row_for_each_candidate_in_which_demand_counts_as_its_replicas() -> None:
    # A serves 4 short or 2 long, so a long request counts twice: 8 + 2 x 4. B serves 1 short or 5 long, but
    # no more than 4 of them are asked for, and has a fifth left for short ones: 2 x 4 + 0.2 by A's measure.
    # By B's measure a short request counts 5 times: 5 x 8 + 4, of which A makes 5 x 4 and B 5.
    rows = implied(two_classes(candidate("chat", "A", (4.0, 2.0)), candidate("chat", "B", (1.0, 5.0))))
    a, b = (f"replicas[chat,aggregated,{name},x1,here/{name},now]" for name in "AB")
    assert rows == [
        f"replicas_decode[chat,here,now]: 160000000 <= +40000000*{a} +82000000*{b}",
        f"replicas_decode[chat,here,now,1]: 440000000 <= +200000000*{a} +50000000*{b}",
    ]


def test_candidates_that_weigh_the_classes_alike_share_a_row() -> None:
    assert (
        len(implied(two_classes(candidate("chat", "A", (4.0, 2.0)), candidate("chat", "B", (6.0, 3.0))))) == 1
    )


def test_large_models_have_rows_of_services_with_one_class_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_replicas, "MOST_SETS", 1)
    runs = [candidate("chat", "A", (4.0, 2.0)), candidate("chat", "B", (1.0, 5.0))]
    assert implied(two_classes(*runs)) == []
    one_class = fleet(
        services=[service("chat", 8.0)],
        hardware=[hardware(name, 1) for name in "AB"],
        offers=[rent_offer(name, 1.0) for name in "AB"],
    )
    assert (
        len(implied(build_problem(one_class, [candidate("chat", "A", 3.0), candidate("chat", "B", 5.0)])))
        == 1
    )


@pytest.mark.parametrize(("tiny", "large", "rows_tried"), first_parts(((10, 1, 30), (40, 4, 100)), 1))
@pytest.mark.parametrize("allow_unmet", [False, True])
def test_no_solution_is_lost(
    allow_unmet: bool, tiny: int, large: int, rows_tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least that each row's left side can be, by the other rows alone, is no less than its right side."""
    tried = 0
    for problem in problems(tiny, large):
        # The rows are views into the model, which has to live as long.
        whole = build_model(problem, allow_unmet).model
        rows = [
            (list(row.linear.vars), list(row.linear.coeffs), row.linear.domain[0])
            for row in whole.proto.constraints
            if row.name.startswith("replicas_")
        ]
        with monkeypatch.context() as patch:
            patch.setattr(whole_replicas, "add_rows", lambda *_: None)
            model = build_model(problem, allow_unmet).model
        for columns, coefficients, least in rows:
            variables = [model.get_int_var_from_proto_index(index) for index in columns]
            model.minimize(cp_model.LinearExpr.weighted_sum(variables, coefficients))
            solver = cp_model.CpSolver()
            solver.parameters.num_workers = 1
            status = solver.solve(model)
            if status == cp_model.INFEASIBLE:
                break
            assert status == cp_model.OPTIMAL
            assert solver.objective_value >= least - 0.5
            tried += 1
    assert tried > rows_tried
