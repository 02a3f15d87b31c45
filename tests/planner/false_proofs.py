"""Models and fleets of which OR-Tools 9.15 proves a false optimum with its presolve as it comes.

All were reduced from random fleets; `benchmarks/ortools-presolve.md` has how, and what is known of the cause.
"""

from __future__ import annotations

from ortools.sat.python import cp_model
from tests.planner.builders import (
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.random_fleets import PlanningCase, tiny_case

PERIODS = ("2027Q1", "2027Q2")

LEAST_REPLICAS = 0
"""Optimum of `six_variables`: e and d alone are a plan without a replica. OR-Tools 9.15 proves 1."""

CHEAPER_BY_HALF = 683
"""Seed of a fleet of one period, of which OR-Tools 9.15 proves four times the optimum of its decisions."""


def six_variables() -> cp_model.CpModel:
    """The smallest one: six variables, five rows."""
    model = cp_model.CpModel()
    replicas = model.new_int_var(0, 2, "replicas")
    a, b, c, d, e = (model.new_bool_var(name) for name in "abcde")
    model.add(a + c + d >= 1)
    model.add(
        4_000_000_001 * replicas + 300_000_000 * a + 7_000_000_000 * b + 700_000_000 * c + 10_000_000_000 * e
        >= 9_000_000_000
    )
    model.add(replicas + b + e >= 1)
    model.add(a + c + 2 * e <= 2)
    model.add(b + d <= 1)
    model.minimize(replicas)
    return model


def one_period() -> PlanningCase:
    """A random fleet: what is to be decided costs $42,074, not $171,219."""
    return tiny_case(CHEAPER_BY_HALF)


def two_quarters() -> PlanningCase:
    """One service of three classes that may run one configuration: $84,096 to decide, not $147,168."""
    demand = {
        ("east", period, name): rate
        for period, rates in zip(PERIODS, ((18.0, 15.0, 12.0), (16.0, 5.0, 5.0)), strict=True)
        for name, rate in zip(("short", "middle", "long"), rates, strict=True)
    }
    classes = {"short": 1 / 3, "middle": 1 / 3, "long": 1 / 3}
    return PlanningCase(
        fleet(
            services=[service("chat", demand, classes=classes, regions=["east"], periods=PERIODS)],
            hardware=[hardware("A", 8), hardware("B", 2)],
            pools=[
                rented_pool("rented", 3, 1.37, hardware="A", region="east", periods=PERIODS),
                owned_pool("owned", 2, 58_000.0, hardware="B", per_host=2, region="east"),
            ],
            offers=[rent_offer("rent", 2.4, hardware="B", regions=["east"], maximum=40, periods=PERIODS)],
            regions=[region("east")],
            periods=PERIODS,
            policy={"max_configs_per_service_region": 1},
        ),
        (
            candidate("chat", "B", (4.0, 2.0, 4.0), accelerators=2),
            candidate("chat", "B", (7.0, 13.0, 15.0), accelerators=4),
            candidate("chat", "A", (2.0, 4.0, 1.0)),
        ),
    )
