"""The decision of a plan in one sentence, and number formats."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.planner.verify.plans import PLANS

from fleetplan.fleet.figures import figure, money
from fleetplan.planner.plan import (
    Binding,
    ModelError,
    Plan,
    Purchase,
    Retired,
    Simplification,
    StatedGoal,
    Unmet,
)
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.decision import (
    ORDERS_IN_FULL,
    asked_by,
    decision,
    ordered_accelerators,
    simpler,
)
from fleetplan.planner.report.headline import print_headline
from fleetplan.planner.report.html.page import report_page


def order(hardware: str, units: int, kind: str = "buy", period: str = "2027Q1") -> Purchase:
    return Purchase(
        period=period,
        offer=f"{hardware}-{kind}",
        region="us-east",
        pool=f"us-east/{hardware}-{kind}",
        hardware=hardware,
        kind=kind,
        units=units,
        unit="host",
        accelerators=8 * units,
        capex_usd=0.0,
        usd=40_000.0 * units,
        price_source="fleet.yaml:1",
    )


def plan(*orders: Purchase, **changes: object) -> Plan:
    """A solved plan whose decision is another one."""
    stated = PLANS["scarce"]()[1]
    provenance = stated.provenance.model_copy(update={"model_errors": changes.pop("errors", ())})
    figures = {
        "periods": ("2027Q1", "2027Q2"),
        "objective_usd": 1.17e6,
        "bound_usd": 1.16e6,
        "model_usd": 1.17e6,
        "status": "within_gap",
        "purchases": orders,
        "retirements": (),
        "binding": (),
        "provenance": provenance,
        "unmet": (),
        "unmet_gaps": (),
    }
    return stated.model_copy(update={**figures, **changes})


def test_few_orders_are_told_one_by_one_with_what_they_cost() -> None:
    told = decision(plan(order("B200", 3), order("H100", 1, "spot", "2027Q2")))
    assert told == (
        "buy 3 hosts B200 in us-east 2027Q1, rent on spot 1 host H100 in us-east 2027Q2: "
        "$160 k of $1.17 M; at most $10 k (0.86%) above the optimum"
    )


def test_the_price_of_purchases_is_told_beside_their_write_off() -> None:
    """The decision states the purchase price as well as the write-off within the horizon."""
    bought = order("B200", 3).model_copy(update={"capex_usd": 1_338_000.0})
    told = decision(plan(bought, order("H100", 1, "spot")))
    assert "$160 k of $1.17 M (purchase price $1.338 M); at most" in told


def test_what_a_plan_may_cost_beyond_the_optimum_is_a_share_of_the_optimum() -> None:
    assert "at most $585 k (100%) above the optimum" in decision(plan(order("B200", 1), bound_usd=0.585e6))
    # Where plans may pay, by resale, there is no such share.
    assert "at most $1.27 M above the optimum" in decision(plan(order("B200", 1), bound_usd=-0.1e6))


def test_a_gap_of_less_than_a_cent_is_none() -> None:
    """A gap below a cent is not written as `at most $0 (0.00%)`."""
    assert decision(plan(order("B200", 1), bound_usd=1.17e6 - 0.004)).endswith("; optimal to the cent")


def test_rounding_of_the_model_is_told_where_no_gap_is_left() -> None:
    """A plan without a gap states the rounding of the model, up to which it is optimal."""
    told = decision(plan(order("B200", 1), bound_usd=1.17e6, model_usd=1.17e6 + 29.5))
    assert told.endswith("; optimal but for rounding of $29.5")


def test_many_orders_are_added_up() -> None:
    orders = [order("B200", 2, period=f"2027Q{1 + k % 2}") for k in range(ORDERS_IN_FULL + 1)]
    assert decision(plan(*orders)).startswith("buy 8 hosts B200: $320 k of")


def test_rents_of_several_periods_are_not_added_up() -> None:
    """Sixteen cards rented in each of two months are 16 accelerators, not 32."""
    both = [order("RTX", units, "rent", f"2027Q{q}") for q in (1, 2) for units in (9, 7)]
    assert decision(plan(*both)).startswith("rent 16 hosts RTX: $1.28 M of")
    grown = [*both, order("RTX", 4, "rent", "2027Q2")]
    assert decision(plan(*grown)).startswith("rent up to 20 hosts RTX: ")
    # A term is another order each time.
    terms = [order("RTX", 2, "reserve", f"2027Q{1 + k % 2}") for k in range(4)]
    assert decision(plan(*terms)).startswith("reserve 8 hosts RTX: ")
    assert ordered_accelerators(plan(*grown, *terms)) == 8 * (20 + 8)


def test_what_leaves_what_binds_and_what_to_doubt_are_named_once() -> None:
    leaves = [
        Retired.model_construct(period="2027Q1", pool=f"old-{k}", hardware="A100", hosts=2, resale_usd=0.0)
        for k in range(2)
    ]
    binding = tuple(
        Binding(family=family, name=f"{name} {period}", used=4, limit=4, unit="x")
        for family, name in (("capacity", "usw"), ("power", "eu-west"), ("capacity", "a"), ("capacity", "b"))
        for period in ("2027Q1", "2027Q2")
    )
    errors = (
        ModelError(hardware="GB200", median_ratio=0.19, p90_ratio=0.8, rows=79),
        ModelError(hardware="H100", median_ratio=0.05, p90_ratio=0.1, rows=700),
    )
    told = decision(plan(retirements=leaves, binding=binding, errors=errors, status="optimal"))
    assert told == (
        "retire 4 hosts (A100): TCO $1.17 M; optimal; binding: usw, eu-west (power), a and 1 more; "
        "weakest number: GB200 (TPOT 19% off published benchmarks)"
    )
    unknown = (*errors, ModelError(hardware="L40S", median_ratio=None, p90_ratio=None, rows=0))
    assert decision(plan(errors=unknown)).endswith("weakest number: L40S (TPOT not published)")
    assert decision(plan()).startswith("buy, rent and retire nothing: TCO $1.17 M; ")


def test_single_accelerators_that_leave_are_not_called_hosts() -> None:
    leaves = [
        Retired.model_construct(
            period="2027Q1", pool=unit, hardware=unit, hosts=hosts, unit=unit, resale_usd=0.0
        )
        for unit, hosts in (("host", 1), ("accelerator", 16))
    ]
    told = decision(plan(retirements=leaves))
    assert told.startswith("retire 1 host (host), retire 16 accelerators (accelerator): ")


@pytest.mark.parametrize(
    ("objective", "unit", "told"),
    [
        ("accelerators", "accelerators", "accelerators 4, gap 0.00%"),
        ("energy", "kWh", "energy 4 kWh, gap 0.00%"),
    ],
)
def test_a_goal_names_its_unit_once(objective: str, unit: str, told: str) -> None:
    goal = StatedGoal(objective=objective, unit=unit, value=4.0, bound=4.0, gap=0.0)
    screen = io.StringIO()
    print_headline(plan(goal=goal), False, Console(file=screen, width=200))
    assert told in screen.getvalue()


def test_what_a_fleet_file_does_not_name_is_not_told() -> None:
    named = order("B200", 3).model_copy(update={"region": "default", "period": "now"})
    assert decision(plan(named)).startswith("buy 3 hosts B200: $120 k of")
    row = Unmet.model_construct(
        service="chat", region="default", period="now", slice=None, scenario=None, request_class="all"
    )
    assert asked_by(row) == "chat"
    there = row.model_copy(
        update={"region": "eu", "period": "2027Q1", "slice": "day", "request_class": "long"}
    )
    assert asked_by(there) == "chat long in eu 2027Q1 day"


def test_a_pool_and_the_offer_that_fills_it_are_one_limit() -> None:
    binding = tuple(
        Binding(family=family, name=f"{name} 2027Q1", used=4, limit=4, unit="x")
        for family, name in (("capacity", "us/rent"), ("purchases", "rent"), ("purchases", "other"))
    )
    assert "; binding: us/rent, other (purchases)" in decision(plan(binding=binding))


@pytest.mark.usefixtures("plain_figures")
def test_the_screen_and_the_page_lead_with_it() -> None:
    stated = PLANS["scarce"]()[1]
    screen = io.StringIO()
    print_plan(stated, Console(file=screen, width=10_000))
    assert screen.getvalue().splitlines()[1] == f"Decision: {decision(stated)}"
    told = decision(stated)
    page = report_page(stated, (), None)
    assert page.index(told[1:].split(";")[0]) < page.index("total cost of ownership")


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (1193.2, 3, "1,193"),
        (999.6, 3, "1,000"),
        (64_700.0, 3, "64,700"),
        (37.27, 3, "37.3"),
        (0.012344, 4, "0.01234"),
    ],
)
def test_figures_have_no_exponents(value: float, digits: int, shown: str) -> None:
    assert figure(value, digits) == shown


def test_the_rounding_of_a_sum_is_no_money() -> None:
    assert [money(each) for each in (-1.863e-9, 0.0, 0.01, -41.0)] == ["$0", "$0", "$0.01", "-$41"]


def test_tables_of_a_narrow_terminal_keep_names_whole() -> None:
    stated = PLANS["scarce"]()[1]
    for width, told in ((80, False), (120, True)):
        screen = io.StringIO()
        print_plan(stated, Console(file=screen, width=width))
        text = screen.getvalue()
        assert "…" not in text
        assert ("TTFT ms" in text, "in use  " in text) == (told, told)
        assert ("TTFT, TPOT and P:D from 100 columns on" in text) != told


def simplified(usd: float, configurations: int, configurations_before: int) -> Simplification:
    return Simplification(
        usd=usd,
        hardware_kinds=1,
        hardware_kinds_before=1,
        configurations=configurations,
        configurations_before=configurations_before,
    )


def test_a_plan_that_is_no_simpler_is_not_called_so() -> None:
    """A fleet of one region has no traffic between regions to save."""
    assert simpler(plan(simplification=simplified(0.0, 2, 3))).startswith("2 instead of 3 configurations")
    same = plan(simplification=simplified(0.001, 2, 2))
    assert simpler(same) == ""
    stream = io.StringIO()
    print_plan(same, Console(file=stream, width=160, color_system=None))
    assert "Simpler plan" not in stream.getvalue()
    assert simpler(plan(simplification=simplified(50.0, 2, 2))).startswith(
        "fewer starts of replicas, for $50"
    )


def test_fewer_flows_between_regions_are_told_before_what_they_take() -> None:
    """A simpler plan names what it saves first, then what it adds."""
    local = Simplification(
        usd=177.0,
        hardware_kinds=6,
        hardware_kinds_before=5,
        configurations=8,
        configurations_before=10,
        flows=0,
        flows_before=1,
    )
    assert simpler(plan(simplification=local)).startswith(
        "0 instead of 1 flows of a service between regions, 8 instead of 10 configurations, "
        "but 6 instead of 5 pairs of service and hardware, for $177"
    )


def test_a_period_in_which_nothing_runs_has_no_table() -> None:
    idle = plan(placements=(), phase_ratios=())
    stream = io.StringIO()
    print_plan(idle, Console(file=stream, width=160, color_system=None))
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("Placements")]
    assert lines == [f"Placements {period}: nothing runs" for period in idle.periods]
    assert "replicas x config" not in stream.getvalue()
