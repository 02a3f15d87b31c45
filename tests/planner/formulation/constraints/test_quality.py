"""Family 12: variants serve a region with the quality that its service asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import by_case, candidate
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify import verify

RENT = 2190.0
"""One accelerator for one quarter at 1 USD an hour. [USD]"""


def example(**changes: object) -> tuple[Fleet, tuple[Candidate, ...]]:
    case = EXAMPLES["quality"]()
    asked = replace(case.fleet.services[0], **changes)  # type: ignore[arg-type]
    return replace(case.fleet, services=(asked,)), case.candidates


def served(solved: Solved, phase: str = "aggregated") -> dict[str, float]:
    return {row.config: row.requests_per_s for row in solved.rows(phase=phase)}


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("quality")
    assert served(solved) == {"cheap/x1": pytest.approx(4.0), "good/x1": pytest.approx(2.0)}


@pytest.mark.parametrize(("floor", "usd"), [(0.6, 3), (0.65, 4), (0.8, 5), (0.9, 6)])
def test_a_higher_floor_is_never_cheaper(floor: float, usd: int) -> None:
    assert solve(*example(average_quality_floor=floor)).usd == pytest.approx(usd * RENT)


def test_what_is_served_beyond_the_demand_buys_no_quality() -> None:
    # A replica of the good one is free capacity: serving twice with it must not count.
    asked, runs = example()
    asked = replace(asked, services=(replace(asked.services[0], headroom=0.0),))
    free = replace(asked.offers[0], rent_usd_per_accelerator_hour=(0.0,))
    solved = solve(replace(asked, offers=(free,)), runs)
    rates = served(solved)
    assert sum(rates.values()) == pytest.approx(6.0)
    assert rates.get("good/x1", 0.0) >= 2.0 - 1e-4


def test_classes_share_one_average() -> None:
    asked, _ = example()
    classes = tuple(replace(asked.services[0].classes[0], name=name, share=0.5) for name in ("short", "long"))
    demand = {("here", "now", "short"): 3.0, ("here", "now", "long"): 3.0}
    both = replace(asked.services[0], classes=classes, demand=by_case(demand))
    runs = (
        replace(candidate("chat", "A", (2.0, 2.0), config="cheap/x1"), variant="cheap"),
        replace(candidate("chat", "A", (1.0, 0.0), config="good/x1"), variant="good"),
    )
    solved = solve(replace(asked, services=(both,)), runs)
    good = next(row for row in solved.rows() if row.config == "good/x1")
    assert good.requests_per_s_by_class == {"short": pytest.approx(2.0)}


def apart(variant: str, phase: str, rate: float) -> Candidate:
    return replace(candidate("chat", "A", rate, phase=phase, config=f"{variant}/x1"), variant=variant)


def test_prefill_and_decode_run_the_same_variant() -> None:
    asked, _ = example(average_quality_floor=None)
    runs = (apart("cheap", "prefill", 6.0), apart("good", "decode", 6.0))
    assert solve(asked, runs).usd is None
    slow = (apart("cheap", "decode", 2.0), apart("good", "prefill", 1.0))
    # Six prefill with the good one, or three decode with the cheap one.
    assert solve(asked, (*runs, *slow)).usd == pytest.approx(4 * RENT)


def test_disaggregated_traffic_counts_by_its_variant() -> None:
    asked, _ = example()
    runs = (
        apart("cheap", "prefill", 4.0),
        apart("cheap", "decode", 4.0),
        apart("good", "prefill", 1.0),
        apart("good", "decode", 1.0),
    )
    solved = solve(asked, runs)
    assert solved.usd == pytest.approx((1 + 1 + 2 + 2) * RENT)
    assert served(solved, "prefill")["good/x1"] == pytest.approx(2.0)
    assert served(solved, "decode")["good/x1"] == pytest.approx(2.0)


def test_a_variant_below_the_floor_of_every_request_is_rejected() -> None:
    solved = solved_example("quality")
    assert solved.plan is not None
    strict = replace(solved.problem.services["chat"], quality_floor=0.7)
    problem = replace(solved.problem, services={"chat": strict})
    assert any(
        "quality 0.6 is below the floor of 0.7" in violation.message
        for violation in verify(problem, solved.plan)
    )


def test_one_variant_does_not_replace_another() -> None:
    asked, runs = example()
    better = replace(runs[1], requests_per_s=(5.0,))
    kept = prune_dominated((runs[0], better), asked.hardware, RejectionLog())
    assert len(kept) == 2
