"""Roles of variables: their service, moment, slot and region."""

from __future__ import annotations

from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, service

from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks.roles import roles


def test_requests_of_another_region_run_where_the_replicas_are_that_they_pass_between() -> None:
    # Within a region A passes to A and B to B: a pair for each part and region, of requests of both regions.
    places = ("east", "west")
    asked = fleet(
        services=[service("chat", 2.0, regions=places, serve_from={"east": ("west",), "west": ("east",)})],
        hardware=[hardware(part, 1) for part in "AB"],
        offers=[rent_offer(part, 1.0, regions=places) for part in "AB"],
        regions=[region(place, round_trip_ms={other: 10.0}) for place, other in (places, places[::-1])],
        policy={"kv_pairs": frozenset({("A", "A"), ("B", "B")})},
    )
    runs = [candidate("chat", part, 1.0, phase=phase) for part in "AB" for phase in ("prefill", "decode")]
    planning = build_model(build_problem(asked, runs), allow_unmet=False)
    problem, variables = planning.problem, planning.variables
    known = roles(problem, variables, len(planning.model.proto.variables))
    of_pools = {problem.pools[p].region: known.region[n.index] for (_, p, _), n in variables.replicas.items()}
    assert set(of_pools) == set(places)
    abroad = 0
    for (cell, k, number), passed in variables.disaggregated.items():
        pairs = variables.kv_pairs[cell, k]
        ((_, pool), *_) = pairs.prefill[pairs.pairs[number].prefill].slots
        assert known.region[passed.index] == of_pools[problem.pools[pool].region]
        abroad += problem.pools[pool].region != problem.cells[cell].region
    assert abroad == 4
