"""A service with demand in two regions, each of which may serve the other."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service
from tests.planner.solving import Solved

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate

PLACES = ("east", "west")
RENT = 2190.0
"""One accelerator for one quarter at 1 USD an hour. [USD]"""


def question(**changes: object) -> Fleet:
    """Both regions ask for two requests/s; accelerators cost a third in the west, 60 ms away."""
    ways = {"east": {"west": 60.0}, "west": {"east": 60.0}}
    fields: dict[str, object] = {
        "regions": PLACES,
        "ttft_ms": 300.0,
        "serve_from": {"east": ("west",)},
        **changes,
    }
    return fleet(
        services=[service("chat", 2.0, **fields)],  # type: ignore[arg-type]
        hardware=[hardware("A", 1)],
        offers=[
            rent_offer("dear", 3.0, hardware="A", regions=("east",)),
            rent_offer("cheap", 1.0, hardware="A", regions=("west",), maximum=3),
        ],
        regions=[region(place, round_trip_ms=ways[place]) for place in PLACES],
    )


def timed(rate: float, ttft_ms: float, config: str, **changes: object) -> Candidate:
    one = candidate("chat", "A", rate, config=config)
    return replace(one, ttft_ms=(ttft_ms,), **changes)  # type: ignore[arg-type]


def plan_of(solved: Solved) -> Plan:
    assert solved.plan is not None
    return solved.plan
