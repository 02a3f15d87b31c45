"""A fleet with every kind of price in it, solved once for all tests of what is written about a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import (
    Finance,
    Fleet,
    IncomeTax,
    Loan,
    OutsideLatency,
    Owned,
    Pool,
    RequestClass,
    Service,
)
from fleetplan.planner.problem import Candidate

PERIODS = ("2027Q1", "2027Q2", "2027Q3")

EVIL = "<script>alert(1)</script> $y$ &"
"""A service's name that is markup and mathematics unless it is kept as text."""

FORMULA = '=HYPERLINK("http://example.org","x")'
"""A service's name that a spreadsheet would make a link of."""


def _services() -> tuple[Service, ...]:
    """Growing demand in one region, which may be served in two phases, and steady demand in both."""
    growing = {
        ("here", "2027Q1", "all"): 40.0,
        ("here", "2027Q2", "all"): 90.0,
        ("here", "2027Q3", "all"): 120.0,
    }
    steady = {(place, q, "all"): 30.0 for place in ("here", "there") for q in PERIODS}
    lengths = (RequestClass("all", 1.0, 1000, 200, None),)
    both = {"regions": ("here", "there"), "periods": PERIODS, "classes": {"all": 1.0}}
    return (
        service(EVIL, growing, ttft_ms=300.0, tpot_ms=30.0, headroom=0.1, **both),  # type: ignore[arg-type]
        replace(
            service(FORMULA, steady, **both),  # type: ignore[arg-type]
            classes=lengths,
            outside_ms=OutsideLatency(network_ms=20.0),
            ttft_ms=200.0,
        ),
    )


def whole_fleet() -> Fleet:
    """Owned, rented, bought and retired hosts in two regions over three quarters, discounted."""
    owned = Owned(
        200_000.0,
        "2024Q1",
        16,
        0.06,
        resale_usd_per_host=(40_000.0, 30_000.0, 20_000.0),
        price_as_of="2026-05",
    )
    # Leaves in the second quarter: then it must, and before it would sell for little.
    aged = replace(
        owned,
        capex_usd_per_host=150_000.0,
        resale_usd_per_host=(1_000.0, 40_000.0, 1_000.0),
        end_of_life="2027Q2",
    )
    tariffs = (0.06, 0.07, 0.08)
    regions = (
        region("here", pue=1.2, energy_usd_per_kwh=tariffs, hosting_usd_per_kw_month=120.0),
        region("there", pue=1.1, energy_usd_per_kwh=(0.09,) * 3, power_kw=(400.0,) * 3),
    )
    hired = rented_pool("hired", 2, 1.5, hardware="A", per_host=4, region="there", periods=PERIODS)
    assert hired.rented is not None
    built = fleet(
        services=_services(),
        hardware=[hardware("A", 4, 800.0, 120.0), hardware("B", 4, 1000.0, 150.0)],
        pools=[
            Pool("old", "here", "A", 5, 4, owned, None),
            Pool("aged", "there", "A", 1, 4, aged, None),
            replace(hired, rented=replace(hired.rented, lease_end="2028Q2")),
        ],
        offers=[
            buy_offer(
                "new", 260_000.0, hardware="B", regions=("here", "there"), per_unit=4, lead=1, periods=PERIODS
            ),
            replace(
                rent_offer("more", 2.0, hardware="B", regions=("here", "there"), periods=PERIODS),
                rent_usd_per_accelerator_hour=(2.0, 2.2, 2.4),
                price_as_of="2026-08",
            ),
        ],
        regions=regions,
        periods=PERIODS,
        policy={"transition_usd_per_accelerator": 55.0, "reserve_hosts_per_pool": 0},
    )
    loan = Loan(periods=8, interest_rate_per_year=0.005, down_payment_ratio=0.2)
    finance = Finance("annuity", 0.1, 300.0, 200.0, 100.0, property_tax_ratio_per_year=0.001, loan=loan)
    tax = IncomeTax(0.3, (0.5, 0.25, 0.25))
    return replace(built, finance=replace(finance, income_tax=tax))


def whole_candidates() -> list[Candidate]:
    """Rates of both services on both kinds of hardware."""
    prompts = candidate(EVIL, "B", 30.0, phase="prefill", power_kw=1.0)
    tokens = candidate(EVIL, "A", 12.0, phase="decode", power_kw=0.7)
    return [
        replace(prompts, ttft_ms=(120.0,)),
        replace(tokens, tpot_ms=(25.0,)),
        replace(candidate(FORMULA, "A", 9.0, power_kw=0.8), ttft_ms=(150.0,), tpot_ms=(40.0,)),
        replace(candidate(FORMULA, "B", 16.0, accelerators=2, power_kw=2.0), ttft_ms=(90.0,)),
    ]


@cache
def whole_plan() -> Solved:
    """The verified plan of the fleet."""
    return solve(whole_fleet(), whole_candidates())
