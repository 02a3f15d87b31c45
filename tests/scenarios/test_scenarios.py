"""The packaged scenarios load, solve, and answer the question that each of them asks."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from tests.measured import needs_tables
from tests.parts import first_of

from fleetplan.fleet.units import HOURS_PER_QUARTER
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.search.result import SearchLimits
from fleetplan.planner.verify import verify
from fleetplan.scenarios import __name__ as scenarios_package
from fleetplan.scenarios.load import load_fleet

SCENARIOS = (
    "tiny",
    "quarterly",
    "quarterly-year",
    "meta-405b-heterogeneous",
    "bring-your-own-rates/fleet",
    "region-loss",
    "power-capped",
    "scale-up-or-out/fleet",
    "head-and-tail",
    "tidal",
    "percentiles",
    "prefill-decode-day",
    "uncertain",
)
WARNINGS = {
    # The next-generation part of the paper is not to be had yet.
    "scale-up-or-out/fleet": (
        "offers.hosts.hardware: NextGen is preview",
        "offers.pods.hardware: NextGen-Pod is preview",
    )
}


def scenario_file(name: str) -> Path:
    with as_file(files(scenarios_package)) as folder:
        return folder / f"{name}.yaml"


@lru_cache
def plan_of(
    name: str,
    *scenarios: str,
    gap_ratio: float = 1e-3,
    time_limit_s: float = 30.0,
    assignments: tuple[str, ...] = (),
) -> Plan:
    """A verified plan of a packaged scenario, or of one with other values."""
    fleet = load_fleet(scenario_file(name), scenarios, assignments)
    planned = plan_fleet(fleet, SearchLimits(time_limit_s, gap_ratio, seed=1, workers=2))
    assert isinstance(planned.outcome, Plan)
    assert verify(planned.problem, planned.outcome) == []
    return planned.outcome


def hardware_by_phase(plan: Plan) -> dict[str, set[str]]:
    """Hardware that carries traffic worth the name: a last host of another kind may round a phase off."""
    traffic: dict[str, dict[str, float]] = {}
    for row in plan.placements:
        of_phase = traffic.setdefault(row.phase, {})
        of_phase[row.hardware] = of_phase.get(row.hardware, 0.0) + row.requests_per_s
    return {
        phase: {name for name, rate in rates.items() if rate >= 0.04 * sum(rates.values())}
        for phase, rates in traffic.items()
    }


def rate_per_accelerator(rows: list[Placement]) -> float:
    """Return the sustained rate of the placements per accelerator. [requests/s]"""
    return sum(row.requests_per_s / row.utilisation for row in rows) / sum(row.accelerators for row in rows)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_a_fleet_without_other_warnings(name: str) -> None:
    fleet = load_fleet(scenario_file(name))
    assert fleet.services
    assert fleet.warnings == WARNINGS.get(name, ())


def test_every_packaged_file_is_one_of_them() -> None:
    with as_file(files(scenarios_package)) as folder:
        found = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")}
    # Templates of `plan new` are tested with it.
    assert {name for name in found if not name.startswith("templates/")} == set(SCENARIOS)


def test_tiny_rents_what_its_own_host_cannot_carry() -> None:
    plan = plan_of("tiny")
    assert plan.gap <= 1e-3
    assert plan.unmet == ()
    own = next(use for use in plan.pools if use.pool == "own-h100")
    assert own.utilisation > 0.5
    assert [purchase.offer for purchase in plan.purchases] == ["h200-rent"]


def test_own_rates_find_the_split_class_that_costs_4_68_usd_an_hour() -> None:
    plan = plan_of("bring-your-own-rates/fleet", gap_ratio=0.0)
    assert plan.objective_usd / HOURS_PER_QUARTER == pytest.approx(4.68, rel=1e-9)
    replicas = {row.hardware: row.replicas for row in plan.placements}
    assert replicas == {"small-gpu": 1, "big-gpu": 1}
    assert sum(row.requests_per_s for row in plan.placements) == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("scenarios", "prefill", "decode"),
    [
        ((), {"GPU-A"}, {"GPU-C"}),
        (("slides",), {"GPU-C"}, {"GPU-C"}),
        (("scarce-c",), {"GPU-A", "GPU-C"}, {"GPU-C"}),
        (("without-c",), {"GPU-A"}, {"GPU-B"}),
        (("dear-a",), {"GPU-B"}, {"GPU-B"}),
    ],
)
def test_prices_decide_which_hardware_prefills_and_which_decodes(
    scenarios: tuple[str, ...], prefill: set[str], decode: set[str]
) -> None:
    plan = plan_of("meta-405b-heterogeneous", *scenarios)
    assert hardware_by_phase(plan) == {"prefill": prefill, "decode": decode}
    assert plan.gap <= 1e-3


@pytest.mark.parametrize("scenario", [(), ("slides",), ("without-c",), ("dear-a",)])
def test_accelerators_of_the_phases_follow_their_rates(scenario: tuple[str, ...]) -> None:
    plan = plan_of("meta-405b-heterogeneous", *scenario)
    phases: Mapping[str, list[Placement]] = {
        phase: [row for row in plan.placements if row.phase == phase] for phase in ("prefill", "decode")
    }
    expected = rate_per_accelerator(phases["decode"]) / rate_per_accelerator(phases["prefill"])
    (ratio,) = plan.phase_ratios
    # Whole hosts: one of some twenty that decode, and less than one of some hundred that prefill.
    assert ratio.ratio == pytest.approx(expected, rel=0.06)
    for rows in phases.values():
        load = sum(row.utilisation * row.replicas for row in rows) / sum(row.replicas for row in rows)
        assert load > 0.95


def test_a_prefilling_for_b_has_the_ratio_of_table_8() -> None:
    """Meta, Optimizing Deployment Configurations for LLM Inference, Table 8: 3.14 for A/B."""
    (ratio,) = plan_of("meta-405b-heterogeneous", "without-c").phase_ratios
    assert ratio.ratio == pytest.approx(3.14, rel=0.1)


def test_heterogeneous_hardware_saves_what_the_closed_form_says() -> None:
    mixed, alone = (
        plan_of("meta-405b-heterogeneous", "without-c"),
        plan_of("meta-405b-heterogeneous", "dear-a"),
    )
    prefill = rate_per_accelerator([row for row in mixed.placements if row.phase == "prefill"])
    decode = rate_per_accelerator([row for row in mixed.placements if row.phase == "decode"])
    alone_prefill = rate_per_accelerator([row for row in alone.placements if row.phase == "prefill"])
    # Rents of the file: A 2.0, B 3.0 USD an hour; in `dear-a` everything runs on B.
    expected = (2.0 / prefill + 3.0 / decode) / (3.0 / alone_prefill + 3.0 / decode)
    assert mixed.objective_usd / alone.objective_usd == pytest.approx(expected, rel=0.02)
    assert mixed.objective_usd < 0.85 * alone.objective_usd


@pytest.mark.slow
def test_a_year_buys_ahead_and_retires_what_is_too_old() -> None:
    plan = plan_of("quarterly-year", gap_ratio=0.05, time_limit_s=120.0)
    assert plan.gap <= 0.05
    assert plan.unmet == ()
    bought = {row.period for row in plan.purchases if row.kind == "buy"}
    assert bought
    assert "2027Q4" not in bought
    assert sum(row.hosts for row in plan.retirements if row.pool == "east-a100") == 6
    assert not [row for row in plan.placements if row.pool == "east-a100" and row.period >= "2027Q3"]


def test_quarterly_is_a_heterogeneous_fleet_that_buys() -> None:
    fleet = load_fleet(scenario_file("quarterly"))
    assert len(fleet.services) >= 6
    assert len(fleet.regions) == 3
    assert len({pool.hardware for pool in fleet.pools} | {offer.hardware for offer in fleet.offers}) >= 5
    assert any(len(service.classes) > 1 for service in fleet.services)


@pytest.mark.slow
def test_quarterly_is_planned_within_one_percent_in_half_a_minute() -> None:
    plan = plan_of("quarterly", gap_ratio=0.01)
    assert plan.gap <= 0.01


@pytest.mark.parametrize("gap_ratio", first_of((0.3, 0.05), 1))
def test_quarterly_has_a_verified_plan_in_seconds(gap_ratio: float) -> None:
    plan = plan_of("quarterly", gap_ratio=gap_ratio, time_limit_s=20.0)
    assert plan.unmet == ()
    assert plan.purchases
    # A rough plan may do with less.
    assert len({row.hardware for row in plan.placements}) >= (3 if gap_ratio < 0.1 else 2)
    assert {row.service for row in plan.placements} == {
        service.name for service in load_fleet(scenario_file("quarterly")).services
    }


HALF_OF_THE_TIDES = (
    "pools.east-h100.hosts=2",
    "services.assistant.demand=150",
    "services.batch.offline.requests_per_day=750000",
    "services.grader.offline.requests_per_day=1000000",
)


@needs_tables
@pytest.mark.parametrize(
    "assignments",
    [pytest.param(HALF_OF_THE_TIDES, marks=pytest.mark.more), pytest.param((), marks=pytest.mark.slow)],
    ids=("half", "whole"),
)
def test_tides_save_what_the_night_has_room_for(assignments: tuple[str, ...]) -> None:
    """Without changes within the day, or without waiting, a host more is rented."""
    # It ends at its gap; how soon one of two solvers finds such a plan of the whole is luck: after 1 to 22 s.
    shared, static, hasty = (
        plan_of("tidal", *scenario, gap_ratio=0.01, time_limit_s=limit_s, assignments=assignments)
        for scenario, limit_s in (((), 120.0), (("apart",), 30.0), (("now",), 30.0))
    )
    assert shared.objective_usd < 0.92 * static.bound_usd
    assert shared.objective_usd < 0.92 * hasty.bound_usd
    put_off = {row.service for row in shared.offline_work if row.arises_in != row.slice}
    assert put_off == {"batch"}
    assert not any(row.arises_in != row.slice for row in hasty.offline_work)


@pytest.mark.more
@needs_tables
def test_uncertain_demand_is_bought_for_once() -> None:
    plan = plan_of("uncertain", gap_ratio=0.01)
    costs = {row.name: row for row in plan.demand_scenarios}
    assert set(costs) == {"slow", "planned", "boom"}
    mean = sum(row.probability * row.usd for row in plan.demand_scenarios)
    assert plan.objective_usd == pytest.approx(mean)
    # All of it is served whatever turns out: it costs most to have bought for a boom that does not come.
    assert all(row.unmet_requests_per_s == 0 for row in plan.demand_scenarios)
    assert (costs["slow"].regret_usd or 0.0) > (costs["boom"].regret_at_most_usd or 0.0)
    wrong = {(row.planned_for, row.turns_out): row for row in plan.wrong_forecasts}
    assert (wrong["slow", "boom"].unmet_requests_per_s or 0.0) > 50
    assert (wrong["boom", "slow"].extra_usd or 0.0) > 100_000
