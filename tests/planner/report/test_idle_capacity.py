"""Idle capacity by cause, and the reasons why unused hosts are not sold."""

from __future__ import annotations

from functools import cache

import pytest
from tests.planner.report.report_pages import ReportPage, plan

from fleetplan.planner.plan import Plan, SupplyOption
from fleetplan.planner.report.html.money_view import by_service
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.report.idle_capacity import all_idle, idle_cost, idle_pools

ALONE = "2027Q1"


def standing(**changed: object) -> Plan:
    """A plan of one owned pool of 10 hosts with 8 accelerators, of which 40 are used and 8 in reserve."""
    use = plan().pools[0].model_copy(
        update={
            "pool": "old", "period": ALONE, "accelerators": 80, "used_accelerators": 40,
            "reserve_accelerators": 8, "maintenance_accelerators": 4, "usd": 800.0, "idle_usd": 400.0,
            "retirement_usd": 0.0, **changed,
        }
    )  # fmt: skip
    update = {"pools": (use,), "retirements": (), "supply_options": (option("keep", 10),)}
    return plan().model_copy(update=update)


def option(name: str, units: int, usd: float = 1.0, resale: float | None = None) -> SupplyOption:
    return SupplyOption(
        pool="old", region="here", hardware="A", option=name, offer="", period=ALONE, units=units,
        usd_per_accelerator_hour=usd, break_even_resale_usd=resale,
    )  # fmt: skip


def with_options(*options: SupplyOption) -> Plan:
    return standing().model_copy(update={"supply_options": options})


def test_idle_cost_is_divided_by_accelerators() -> None:
    cost = idle_cost(standing().pools[0])
    assert (cost.reserve_usd, cost.out_usd, cost.unused_usd) == (80.0, 40.0, 280.0)
    assert all_idle(standing()).parts() == {"reserve": 80.0, "out of service": 40.0, "unused": 280.0}


def test_the_parts_are_the_idle_cost_of_a_whole_plan() -> None:
    idle = sum(use.idle_usd for use in plan().pools)
    assert sum(all_idle(plan()).parts().values()) == pytest.approx(idle)
    assert sum(sum(row.cost.parts().values()) for row in idle_pools(plan())) == pytest.approx(idle)


@cache
def kept_pools() -> dict[str, Plan]:
    """Plans of a pool whose hosts stay, by the reason."""
    return {
        "the fleet file gives no resale_usd_per_host": with_options(option("keep", 10)),
        "a sale pays from $96.8 k a host": with_options(
            option("keep", 10), option("retire", 0, -0.1, 96_800.0)
        ),
        "a sale saves less than the optimality gap, or a rule of the file needs the hosts": with_options(
            option("keep", 10), option("retire", 0, 0.2, -5.0)
        ),
        "bought or rented in whole hosts": with_options(),
        "less than a host is unused": standing(used_accelerators=64),
    }


def test_unused_hosts_have_a_reason() -> None:
    assert len(kept_pools()) == 5
    for why, planned in kept_pools().items():
        assert [row.why_kept for row in idle_pools(planned)] == [why]


@pytest.mark.usefixtures("plain_figures")
def test_the_page_says_every_reason() -> None:
    pools, options = [], []
    for number, planned in enumerate(kept_pools().values()):
        name = {"pool": f"old {number}"}
        pools += [use.model_copy(update=name) for use in planned.pools]
        options += [each.model_copy(update=name) for each in planned.supply_options]
    update = {"pools": tuple(pools), "supply_options": tuple(options)}
    words = ReportPage(report_page(standing().model_copy(update=update))).words.replace("\u00a0", " ")
    assert [why for why in kept_pools() if why not in words] == []


def test_hosts_that_are_needed_later_are_not_sold() -> None:
    now, later = standing().pools[0], standing(period="2027Q2", used_accelerators=68).pools[0]
    (row,) = idle_pools(standing().model_copy(update={"pools": (now, later)}))
    assert (row.unused_accelerators, row.why_kept) == (0, "no accelerator is unused in 2027Q2")


def test_rented_hosts_are_not_sold() -> None:
    inputs = plan().inputs
    assert inputs is not None
    line = inputs.cost_lines[0].model_copy(update={"pool": "old", "item": "standing hosts", "kind": "rent"})
    rented = standing().model_copy(update={"inputs": inputs.model_copy(update={"cost_lines": (line,)})})
    assert idle_pools(rented)[0].why_kept == "rented hosts are not sold"


def test_hosts_that_leave_have_a_row_and_a_step() -> None:
    sold = [row for row in idle_pools(plan()) if row.hosts_sold]
    assert sum(row.hosts_sold for row in sold) == sum(row.hosts for row in plan().retirements) > 0
    assert sum(row.sold_usd for row in sold) == pytest.approx(sum(u.retirement_usd for u in plan().pools))
    steps = {step.name: step.usd for step in by_service(plan())}
    assert steps["hosts that leave"] == pytest.approx(sum(use.retirement_usd for use in plan().pools))
    assert steps["idle: unused"] == pytest.approx(all_idle(plan()).unused_usd)
