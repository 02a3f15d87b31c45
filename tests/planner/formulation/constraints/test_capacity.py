"""Family 3: replicas fit hosts and pods, the reserve stays free."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from tests.examples import examples
from tests.oracles.brute_force import least_units
from tests.parts import first_of
from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.formulation import build_model, packing
from fleetplan.planner.formulation.constraints.capacity import installed_units, most_installed
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.search import SearchLimits
from fleetplan.planner.verify import fits, verify
from fleetplan.scenarios.load import load_fleet


def _hosts(sizes: dict[int, int], per_host: int, hosts: int, reserve: int = 0) -> Fleet:
    """Return a pool of hosts, and a service for every replica size."""
    return fleet(
        services=[service(f"s{size}", float(count)) for size, count in sizes.items()],
        hardware=[hardware("H", per_host)],
        pools=[rented_pool("H", hosts, 1.0, per_host=per_host)],
        policy={"reserve_hosts_per_pool": reserve},
    )


def _runs(sizes: Iterable[int]) -> list[Candidate]:
    return [candidate(f"s{size}", "H", 1.0, accelerators=size) for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "per_host", "hosts"),
    [
        ({1: 8}, 8, 1),
        ({4: 1, 2: 1, 1: 2}, 8, 1),
        ({3: 2}, 8, 1),
        ({3: 4}, 8, 2),
        ({3: 2, 2: 1}, 8, 1),
        ({3: 2, 1: 2}, 8, 1),
        ({5: 2, 3: 2}, 8, 2),
        ({16: 1}, 8, 2),
        ({12: 1}, 8, 2),
        ({16: 4, 8: 1}, 72, 1),
        ({16: 8, 8: 2}, 72, 2),
        ({16: 3, 8: 3}, 72, 1),
        ({72: 1, 16: 4}, 72, 2),
        ({6: 1, 4: 1, 2: 3}, 8, 2),
    ],
)
def test_replicas_take_the_hosts_that_packing_needs(sizes: dict[int, int], per_host: int, hosts: int) -> None:
    runs = _runs(sizes)
    assert solve(_hosts(sizes, per_host, hosts), runs).plan is not None
    assert is_infeasible(_hosts(sizes, per_host, hosts - 1), runs)


@pytest.mark.parametrize(
    ("sizes", "per_host", "hosts"),
    [
        ({3: 5}, 8, 2),  # 15 of 16 accelerators
        ({5: 3}, 8, 2),  # 15 of 16
        ({5: 2, 4: 1}, 8, 2),  # 14 of 16
        ({16: 9}, 72, 2),  # 144 of 144
        ({12: 2}, 8, 3),  # 24 of 24, but each takes two whole hosts
        ({12: 1, 4: 1}, 8, 2),  # the half-used host stays with its replica
        ({6: 2, 4: 1}, 8, 2),  # 16 of 16
    ],
)
def test_accelerators_that_add_up_do_not_always_fit(sizes: dict[int, int], per_host: int, hosts: int) -> None:
    runs = _runs(sizes)
    assert sum(size * count for size, count in sizes.items()) <= per_host * hosts
    assert is_infeasible(_hosts(sizes, per_host, hosts), runs)


@given(
    sizes=st.dictionaries(st.integers(1, 12), st.integers(1, 4), min_size=1, max_size=4),
    per_host=st.sampled_from((4, 8, 9)),
)
@examples(40, 6, 12, derandomize=True)
def test_packing_agrees_with_trying_every_assignment(sizes: dict[int, int], per_host: int) -> None:
    listed = tuple(sorted((s for s, n in sizes.items() for _ in range(n)), reverse=True))
    hosts = least_units(listed, per_host)
    assert fits(Counter(listed), per_host, hosts)
    assert not fits(Counter(listed), per_host, hosts - 1)
    runs = _runs(sizes)
    assert solve(_hosts(sizes, per_host, hosts), runs).plan is not None
    if hosts > 1:
        assert is_infeasible(_hosts(sizes, per_host, hosts - 1), runs)


@pytest.fixture
def step_by_step(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Units are filled step by step, as if their patterns were too many."""
    monkeypatch.setattr(packing, "MAX_PATTERNS", 0)
    packing._packing.cache_clear()
    yield
    packing._packing.cache_clear()


@pytest.mark.usefixtures("step_by_step")
@pytest.mark.parametrize("seed", first_of(range(8), 4))
def test_units_that_are_filled_step_by_step_agree_with_every_assignment(seed: int) -> None:
    dice = random.Random(seed)
    per_host = dice.choice((8, 9, 14))
    sizes = {dice.randint(2, 12): dice.randint(1, 4) for _ in range(4)}
    listed = tuple(sorted((s for s, n in sizes.items() for _ in range(n)), reverse=True))
    hosts, runs = least_units(listed, per_host), _runs(sizes)
    assert solve(_hosts(sizes, per_host, hosts), runs).plan is not None
    assert hosts == 1 or is_infeasible(_hosts(sizes, per_host, hosts - 1), runs)


def test_a_host_that_is_divided_in_very_many_ways_is_filled_step_by_step() -> None:
    sizes = {24: 3, 8: 5, 4: 7, 3: 15, 2: 1}
    plan = packing.packing(181, sizes)
    assert plan.patterns == ()
    assert len(plan.steps) < 181 * len(sizes)
    runs = _runs(sizes)
    # 187 of 362 accelerators; a host has 181.
    assert solve(_hosts(sizes, 181, 2), runs).plan is not None
    assert is_infeasible(_hosts(sizes, 181, 1), runs)


def test_a_host_of_very_many_accelerators_is_refused_by_name() -> None:
    sizes = {24: 1, 8: 1, 5: 1, 3: 1}
    with pytest.raises(
        InputError, match=r"pools\..*: a host of 90,000 accelerators: replicas of 24, 8, 5, 3 can share"
    ):
        solve(_hosts(sizes, 90_000, 1), _runs(sizes))


@pytest.mark.parametrize("block", ["pools", "offers"])
def test_a_host_that_is_refused_is_placed_by_line_and_column(tmp_path: Path, block: str) -> None:
    lines = ["phase,hardware,accelerators_per_replica,config,requests_per_s"]
    lines += [f"aggregated,G,{size},of-{size},{size}" for size in (24, 8, 5, 3)]
    (tmp_path / "rates.csv").write_text("\n".join(lines))
    terms = {"pools": "hosts: 1, rented: {usd_per_accelerator_hour: 1}", "offers": "price_book: own"}
    path = tmp_path / "fleet.yaml"
    path.write_text(
        "version: 1\n"
        "hardware: {G: {accelerators_per_host: 90000, price_usd_per_accelerator_hour: {own: 1}}}\n"
        "services: [{name: chat, engines: rates.csv, demand: 5}]\n"
        f"{block}:\n"
        f"  - {{name: hall, hardware: G, {terms[block]}}}\n"
    )
    named = rf"fleet\.yaml:5:28: {block}\.hall\.hardware: a host of 90,000 accelerators: .*per_host"
    with pytest.raises(InputError, match=named):
        plan_fleet(load_fleet(path), SearchLimits(time_limit_s=5))


def test_the_reserve_of_an_existing_pool_stays_free() -> None:
    runs = _runs([8])
    assert solve(_hosts({8: 2}, 8, 3, reserve=1), runs).plan is not None
    assert is_infeasible(_hosts({8: 2}, 8, 2, reserve=1), runs)


def test_a_pool_that_nobody_uses_needs_no_reserve() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A"), hardware("B")],
        offers=[
            rent_offer("A", 1.0, unit="host", per_unit=8),
            rent_offer("B", 1.5, unit="host", per_unit=8),
        ],
        policy={"reserve_hosts_per_pool": 1},
    )
    solved = solve(question, [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0)])
    # One host to run on and one in reserve, of the cheaper kind alone.
    assert solved.usd == pytest.approx(2 * 8 * 2190.0)


def test_a_pool_may_keep_another_reserve_than_the_others_and_its_offers_share_it() -> None:
    """Two hosts carry the demand: the pool's own with one, or two, that an offer brings for the reserve."""
    for own, bought in ((None, 1), (0, 0), (2, 2)):
        pool = replace(owned_pool("own", 2, 0.0, hardware="A"), reserve_hosts=own)
        question = fleet(
            services=[service("chat", 2.0)],
            hardware=[hardware("A")],
            pools=[pool],
            offers=[buy_offer("more", 16.0, hardware="A")],
            policy={"reserve_hosts_per_pool": 1},
        )
        solved = solve(question, [candidate("chat", "A", 1.0, accelerators=8)])
        assert solved.plan is not None
        assert sum(row.units for row in solved.plan.purchases) == bought
        assert solved.plan.pools[0].reserve_accelerators == 8 * bought


@pytest.mark.parametrize(("rented", "most"), [(True, 3), (False, 6)])
def test_a_pool_has_as_many_units_at_most_as_its_offers_bring(rented: bool, most: int) -> None:
    """Three hosts are let at a time; three may be bought in each quarter, and stay."""
    quarters = ("2027Q1", "2027Q2")
    if rented:
        offer = rent_offer("A", 1.0, maximum=3, unit="host", per_unit=8, periods=quarters)
    else:
        offer = buy_offer("A", 1.0, maximum=3, periods=quarters)
    question = fleet(
        services=[service("chat", 4.0, periods=quarters)],
        hardware=[hardware("A", 8)],
        offers=[offer],
        policy={"reserve_hosts_per_pool": 1},
        periods=quarters,
    )
    planning = build_model(build_problem(question, (candidate("chat", "A", 2.0, accelerators=8),)), False)
    assert most_installed(planning.problem, planning.variables, 0, 1) == most
    rows = {row.name: row.linear for row in planning.model.proto.constraints}
    # One host of so many is the reserve: so much of each runs replicas.
    filled = max(rows["reserve[here/A,2027Q2]"].coeffs), -min(rows["reserve[here/A,2027Q2]"].coeffs)
    assert filled == (8 * most, 8 * (most - 1))
    planning.model.maximize(installed_units(planning.problem, planning.variables, 0, 1))
    solver = cp_model.CpSolver()
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    assert solver.objective_value == most


def test_single_rented_accelerators_need_no_reserve() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A")],
        offers=[rent_offer("A", 1.0)],
        policy={"reserve_hosts_per_pool": 1},
    )
    assert solve(question, [candidate("chat", "A", 1.0)]).usd == pytest.approx(2190.0)


@pytest.mark.parametrize(
    ("percent", "demand", "hosts"),
    [(10.0, 10, 11), (10.0, 11, 13), (10.0, 20, 22), (33.3, 10, 14), (100.0, 3, 6), (0.5, 1, 2)],
)
def test_a_reserve_in_per_cent_is_rounded_up_to_whole_hosts(percent: float, demand: int, hosts: int) -> None:
    question = fleet(
        services=[service("chat", float(demand))],
        hardware=[hardware("A", 8)],
        offers=[buy_offer("A", 1000.0, per_unit=8)],
        policy={"reserve_percent_per_pool": percent},
    )
    plan = solve(question, [candidate("chat", "A", 1.0, accelerators=8)]).plan
    assert plan is not None
    (bought,) = plan.purchases
    assert bought.units == hosts
    assert plan.pools[0].reserve_accelerators == 8 * (hosts - demand)
    few = replace(question.offers[0], max_units=(hosts - 1,))
    runs = [candidate("chat", "A", 1.0, accelerators=8)]
    assert is_infeasible(replace(question, offers=(few,)), runs)


def test_the_reserve_in_per_cent_is_that_of_the_pool_and_of_what_is_in_use() -> None:
    """Three replicas of 5 take three of four hosts, 30 % of which are one; the policy has 100 %."""
    own = replace(owned_pool("own", 4, 0.0, hardware="A"), reserve_percent=30.0)
    question = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 8)],
        pools=[own],
        policy={"reserve_percent_per_pool": 100.0},
    )
    runs = [candidate("chat", "A", 1.0, accelerators=5)]
    plan = solve(question, runs).plan
    assert plan is not None
    assert (plan.pools[0].used_accelerators, plan.pools[0].reserve_accelerators) == (15, 8)
    assert is_infeasible(replace(question, pools=(replace(own, reserve_percent=None),)), runs)
    assert is_infeasible(replace(question, pools=(replace(own, reserve_percent=34.0),)), runs)


def test_the_verifier_knows_the_reserve_in_per_cent() -> None:
    own = owned_pool("own", 3, 0.0, hardware="A")
    question = fleet(services=[service("chat", 3.0)], hardware=[hardware("A", 8)], pools=[own])
    runs = [candidate("chat", "A", 1.0, accelerators=8)]
    solved = solve(question, runs)
    assert solved.plan is not None
    strict = replace(question, pools=(replace(own, reserve_percent=1.0),))
    told = verify(build_problem(strict, tuple(runs)), solved.plan)
    assert any(each.family == "capacity" and "2 units" in each.message for each in told)
