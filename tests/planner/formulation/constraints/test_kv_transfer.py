"""Family 4: prefill and decode meet where a KV cache may pass, and links carry no more than they can."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.oracles.highs_kv_pairs import least_rent_usd
from tests.parts import first_parts
from tests.planner.builders import by_case, candidate, fleet, hardware, region, rent_offer, service
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES
from tests.planner.kv_pair_cases import PLACES, kv_pair_case
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Fleet, KvLink
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.candidates.remote import ways_in_time, ways_ms
from fleetplan.planner.formulation.build import build_model
from fleetplan.planner.formulation.scaling import LARGEST_SUM, whole_row
from fleetplan.planner.plan import KvFlow, Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.problem.kv_pairs import cell_pairs
from fleetplan.planner.verify import verify
from fleetplan.planner.verify.kv_transfer import most_passed

RENT = 2190.0
"""One accelerator for one quarter at 1 USD an hour. [USD]"""


def plan_of(solved: Solved) -> Plan:
    assert solved.plan is not None
    return solved.plan


def test_the_example_has_its_optimum() -> None:
    plan = plan_of(solved_example("kv_transfer"))
    flows = {flow.decode_pool: (flow.requests_per_s, flow.kv_gb_per_s) for flow in plan.kv_flows}
    assert flows == {
        "west/far": (pytest.approx(2.0), pytest.approx(5.0)),
        "east/near": (pytest.approx(1.0), None),
    }
    (used_up,) = (row for row in plan.binding if row.family == "kv_transfer")
    assert (used_up.name, used_up.limit, used_up.unit) == ("east>west now", 5.0, "GB/s")


@pytest.mark.parametrize("seed", first_parts(range(60), 3, more=2))
def test_random_fleets_have_one_optimum(seed: int) -> None:
    case = kv_pair_case(seed)
    solved = solve(case.fleet, case.candidates)
    wanted = least_rent_usd(solved.problem)
    assert (solved.usd is None) == (wanted is None)
    if wanted is not None:
        assert solved.usd == pytest.approx(wanted, rel=1e-6)


def relaxed(asked: Fleet) -> dict[str, Fleet]:
    """The fleet with each of its rules about who serves whom made wider."""
    chat, rules = asked.services[0], asked.policy
    anywhere = {place: tuple(other for other in PLACES if other != place) for place in PLACES}
    return {
        "regions": replace(asked, services=(replace(chat, serve_from=anywhere),)),
        "hardware": replace(asked, policy=replace(rules, kv_pairs=None)),
        "links": replace(asked, kv_links=tuple(replace(link, gb_per_s=1e6) for link in asked.kv_links)),
        "quality": replace(asked, services=(replace(chat, average_quality_floor=None),)),
        "limit": replace(asked, services=(replace(chat, ttft_ms=400.0),)),
    }


@pytest.mark.parametrize("seed", first_parts(range(0, 48, 3), 1, more=2))
def test_wider_rules_are_never_dearer(seed: int) -> None:
    case = kv_pair_case(seed)
    usd = solve(case.fleet, case.candidates).usd
    for name, wider in relaxed(case.fleet).items():
        found = solve(wider, case.candidates).usd
        assert usd is None or (found is not None and found <= usd * (1 + 1e-9)), name


@pytest.mark.parametrize("seed", first_parts(range(0, 120, 5), 2, more=2))
def test_pruned_candidates_cost_nothing(seed: int) -> None:
    case = kv_pair_case(seed)
    (chat,) = case.fleet.services
    ways = ways_in_time(chat, ways_ms(case.fleet, chat))
    kept = prune_dominated(case.candidates, case.fleet.hardware, RejectionLog(), ways=ways)
    assert solve(case.fleet, kept).usd == solve(case.fleet, case.candidates).usd


def two_kinds(**policy: object) -> Fleet:
    """Prefill is cheap on A, decode on B; both do both."""
    return fleet(
        services=[service("chat", 2.0, runtimes=("disaggregated",))],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.0)],
        policy=policy,
    )


RUNS = (
    candidate("chat", "A", 2.0, phase="prefill"),
    candidate("chat", "A", 0.5, phase="decode"),
    candidate("chat", "B", 0.5, phase="prefill"),
    candidate("chat", "B", 2.0, phase="decode"),
)


def test_hardware_that_is_not_declared_compatible_stays_apart() -> None:
    assert solve(two_kinds(), RUNS).usd == pytest.approx(2 * RENT)
    apart = two_kinds(kv_pairs=frozenset({("A", "A"), ("B", "B")}))
    assert solve(apart, RUNS).usd == pytest.approx(5 * RENT)
    one_way = two_kinds(kv_pairs=frozenset({("A", "A"), ("B", "B"), ("B", "A")}))
    assert solve(one_way, RUNS).usd == pytest.approx(5 * RENT)


def test_a_pool_is_as_far_as_it_may_go() -> None:
    asked = two_kinds(kv_transfer="same-pool")
    asked = replace(asked, offers=(rent_offer("A", 1.0), rent_offer("spot", 1.0, hardware="A")))
    # The second offer is a pool of its own, so that prefill and decode of one request share either.
    asked = replace(asked, offers=(asked.offers[0], replace(asked.offers[1], spot_max_share=0.9)))
    solved = solve(asked, RUNS[:2])
    assert solved.usd == pytest.approx(5 * RENT)
    for flow in plan_of(solved).kv_flows:
        assert flow.prefill_pool == flow.decode_pool


def test_the_model_does_not_grow_where_all_may_pair() -> None:
    problem = build_problem(two_kinds(), RUNS)
    assert [len(known.pairs) for known in cell_pairs(problem).values()] == [1]
    assert plan_of(solve(two_kinds(), RUNS)).kv_flows == ()


def test_a_pair_has_a_group_of_every_kind_that_pairs_alike() -> None:
    asked = two_kinds(kv_pairs=frozenset({("A", "A"), ("B", "B"), ("A", "B")}))
    (known,) = cell_pairs(build_problem(asked, RUNS)).values()
    names = {(known.prefill[p.prefill].label, known.decode[p.decode].label) for p in known.pairs}
    assert names == {("here/A", "here/A"), ("here/A", "here/B"), ("here/B", "here/B")}
    model = build_model(build_problem(asked, RUNS), allow_unmet=False).model
    rows = {row.name for row in model.proto.constraints}
    assert "prefill[chat,all,here,now,here/A]" in rows


def test_a_link_takes_the_headroom_as_well() -> None:
    example = EXAMPLES["kv_transfer"]()
    roomy = replace(example.fleet.services[0], headroom=0.5)
    asked = replace(
        example.fleet,
        services=(replace(roomy, demand=by_case({("east", "now", "all"): 2.0})),),
    )
    plan = plan_of(solve(asked, example.candidates))
    far = sum(flow.requests_per_s for flow in plan.kv_flows if flow.decode_pool == "west/far")
    assert far == pytest.approx(2 / 1.5)


@pytest.mark.parametrize(("added_ms", "far"), [(50.0, 2), (50.1, 0)])
def test_the_time_of_a_link_counts_against_ttft(added_ms: float, far: int) -> None:
    example = EXAMPLES["kv_transfer"]()
    asked = replace(example.fleet, kv_links=(KvLink("east", "west", 5.0, added_ms),))
    solved = solve(asked, example.candidates)
    assert sum(row.replicas for row in solved.rows(pool="west/far")) == far


def test_links_add_up_where_several_lead_the_same_way() -> None:
    example = EXAMPLES["kv_transfer"]()
    links = (KvLink("east", "west", 50.0, 30.0), KvLink("east", "west", 2.5, 20.0))
    plan = plan_of(solve(replace(example.fleet, kv_links=links), example.candidates))
    far = sum(flow.requests_per_s for flow in plan.kv_flows if flow.decode_pool == "west/far")
    assert far == pytest.approx(1.0)
    slower = (replace(links[0], added_ms=31.0), links[1])
    assert not solve(replace(example.fleet, kv_links=slower), example.candidates).rows(pool="west/far")


def test_a_link_within_a_region_limits_what_is_disaggregated() -> None:
    runs = (*RUNS, candidate("chat", "B", 1.0))
    runs = tuple(replace(run, kv_gb=(2.0,)) if run.phase == "prefill" else run for run in runs)
    asked = two_kinds()
    asked = replace(asked, services=(replace(asked.services[0], runtimes=("disaggregated", "aggregated")),))
    narrow = replace(asked, kv_links=(KvLink("here", "here", 2.0),))
    plan = plan_of(solve(narrow, runs))
    assert sum(flow.kv_gb_per_s or 0.0 for flow in plan.kv_flows) <= 2.0 + 1e-6
    # All of it aggregated is no dearer than one of each phase.
    assert plan.objective_usd == pytest.approx(2 * RENT)


def test_a_link_counts_the_cache_of_each_configuration() -> None:
    large = replace(candidate("chat", "A", 3.0, phase="prefill", config="large"), kv_gb=(3.0,))
    small = replace(candidate("chat", "A", 1.0, phase="prefill", config="small"), kv_gb=(1.0,))
    asked = replace(two_kinds(), services=(service("chat", 3.0, runtimes=("disaggregated",)),))
    runs = (large, small, RUNS[3])
    # 3 GB x + 1 GB (3 - x) <= 7 GB/s: two requests/s on a large one, one on a small one; two decode.
    solved = solve(replace(asked, kv_links=(KvLink("here", "here", 7.0),)), runs)
    assert solved.usd == pytest.approx(4 * RENT)
    sizes = {flow.prefill_config: flow.kv_gb_per_s for flow in plan_of(solved).kv_flows}
    assert sizes["small"] == pytest.approx(1.0)
    assert sizes["large"] == pytest.approx(6.0)
    for gb_per_s, replicas in ((9.0, 3), (6.9, 5), (3.0, 5)):
        link = KvLink("here", "here", gb_per_s)
        assert solve(replace(asked, kv_links=(link,)), runs).usd == pytest.approx(replicas * RENT)
    assert solve(replace(asked, kv_links=(KvLink("here", "here", 2.9),)), runs).usd is None


def test_pruning_keeps_what_hands_over_less() -> None:
    large = replace(candidate("chat", "A", 2.0, phase="prefill", config="large"), kv_gb=(3.0,))
    small = replace(candidate("chat", "A", 1.0, phase="prefill", config="small"), kv_gb=(1.0,))
    kinds = two_kinds().hardware
    assert prune_dominated((large, small), kinds, RejectionLog()) == [large, small]
    light = replace(large, kv_gb=(1.0,))
    assert prune_dominated((light, small), kinds, RejectionLog()) == [light]
    unknown = replace(large, kv_gb=())
    assert prune_dominated((unknown, small), kinds, RejectionLog()) == [unknown, small]


def test_caches_of_unknown_size_cannot_be_counted() -> None:
    asked = replace(two_kinds(), kv_links=(KvLink("here", "here", 2.0),))
    with pytest.raises(ValueError, match="unknown size"):
        solve(asked, RUNS)


def test_phases_pair_after_the_loss_of_a_region_as_well() -> None:
    places = ("east", "west")
    asked = fleet(
        services=[
            service("chat", {("east", "now", "all"): 2.0}, regions=places, runtimes=("disaggregated",))
        ],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0, regions=places), rent_offer("B", 1.0, regions=places)],
        regions=[region(place) for place in places],
        policy={"survive_region_loss": ("chat",), "kv_pairs": frozenset({("A", "A"), ("B", "B")})},
    )
    # Two and a half times two in either region: the cheap pair of A and B may not meet in the other one.
    assert solve(asked, RUNS).usd == pytest.approx(10 * RENT)
    free = replace(asked, policy=replace(asked.policy, kv_pairs=None))
    mixed = solve(free, RUNS)
    assert mixed.usd == pytest.approx(4 * RENT)
    apart = replace(mixed.problem, fleet=asked)
    families = {violation.family for violation in verify(apart, plan_of(mixed))}
    assert {"region_loss", "kv_transfer"} <= families


def changed(plan: Plan, **change: object) -> Plan:
    flows = list(plan.kv_flows)
    flows[0] = flows[0].model_copy(update=change)
    return plan.model_copy(update={"kv_flows": tuple(flows)})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"requests_per_s": 0.5}, "the placement serves"),
        ({"requests_per_s": -1.0}, "-1.0 requests/s of"),
        ({"decode_config": "x9"}, "the fleet has no such configuration"),
        ({"origin": "west"}, "KV flows without demand"),
    ],
)
def test_flows_that_do_not_hold_are_rejected(change: dict[str, object], text: str) -> None:
    solved = solved_example("kv_transfer")
    found = verify(solved.problem, changed(plan_of(solved), **change))
    assert any(text in violation.message for violation in found if violation.family == "kv_transfer")


def test_flows_must_be_stated_and_may_only_pass_where_they_may() -> None:
    solved = solved_example("kv_transfer")
    silent = plan_of(solved).model_copy(update={"kv_flows": ()})
    assert "kv_transfer" in {violation.family for violation in verify(solved.problem, silent)}
    near = replace(solved.problem, fleet=replace(solved.problem.fleet, kv_links=()))
    assert any("no rule allows this KV transfer" in v.message for v in verify(near, plan_of(solved)))
    narrow = replace(solved.problem.fleet, kv_links=(KvLink("east", "west", 4.9, 40.0),))
    found = verify(replace(solved.problem, fleet=narrow), plan_of(solved))
    text = "east>west now: the load is 5.0 GB/s, above the limit of 4.9 GB/s"
    assert text in [violation.message for violation in found]


def test_plan_documents_keep_their_flows() -> None:
    plan = plan_of(solved_example("kv_transfer"))
    assert Plan.model_validate_json(plan.model_dump_json()).kv_flows == plan.kv_flows
    assert all(isinstance(flow, KvFlow) for flow in plan.kv_flows)


def test_the_most_that_passes_needs_detours() -> None:
    may = {("a", "x"), ("a", "y"), ("b", "x")}
    # The shortest way sends a to x first; b then needs a's flow moved to y.
    assert most_passed(
        {"a": 2.0, "b": 1.0}, {"x": 1.0, "y": 2.0}, lambda s, r: (s, r) in may
    ) == pytest.approx(3)
    assert most_passed(
        {"a": 2.0, "b": 3.0}, {"x": 1.0, "y": 1.5}, lambda s, r: (s, r) in may
    ) == pytest.approx(2.5)
    assert most_passed({}, {"x": 1.0}, lambda *_: True) == 0.0


def test_whole_rows_hold_unrounded() -> None:
    weights, limit = whole_row([Fraction(1, 3), Fraction(-1, 7)], [100, 100], Fraction(5, 2))
    resolution = Fraction(limit) / Fraction(5, 2)
    assert weights[0] >= Fraction(1, 3) * resolution
    assert weights[1] >= Fraction(-1, 7) * resolution
    assert weights[0] / resolution == pytest.approx(1 / 3, rel=1e-6)
    many = 10**14
    weights, limit = whole_row([Fraction(1, 3), Fraction(10)], [many, many], Fraction(1))
    assert sum(weights) * many + limit < LARGEST_SUM
