"""Demand as people state it: quantities with units, growth, and shapes of the day by name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve.day_shapes import STEPS_PER_DAY, ratios_of_hours
from fleetplan.fleet.schema.quantities import growth_per_period, meant_quantity, quantity, scaled_number
from fleetplan.scenarios.load import load_fleet

HEAD = """\
version: 1
horizon:
  periods: [2027Q1, 2027Q2, 2027Q3, 2027Q4]
  slices: [{name: night, hours: 8}, {name: day, hours: 12}, {name: evening, hours: 4}]
regions:
  east: {utc_offset_hours: -5}
  west: {utc_offset_hours: -8}
day_shapes:
  consumer: {by_slice: {night: 0.25, evening: 0.5}}
  placed:
    by_region:
      east: {night: 0.5}
      west: {day: 0.2}
  office: {by_local_hour: {8: 1, 18: 0.1}}
  round-the-clock: {by_slice: {day: 1}}
pools: [{name: p, region: east, hardware: H100-SXM, hosts: 1, owned: {capex_usd_per_host: 1}}]
services:
"""
WORKLOAD = "model: llama3-8b, workload: {input_tokens: 300, output_tokens: 100}"


def loaded(tmp_path: Path, *services: str, head: str = HEAD) -> Fleet:
    path = tmp_path / "fleet.yaml"
    rows = (f"  - {{name: s{n}, {WORKLOAD}, {text}}}\n" for n, text in enumerate(services))
    path.write_text(head + "".join(rows), encoding="utf-8")
    return load_fleet(path)


def rates(fleet: Fleet, region: str, period: str, service: int = 0) -> list[float]:
    """Return the demand of a region and period, slice by slice. [requests/s]."""
    found = fleet.services[service]
    return [found.demand.of((part.name, None))[region, period, "all"] for part in fleet.slices]


def refused(tmp_path: Path, *services: str, head: str = HEAD) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, *services, head=head)
    return [f"{issue.key_path}: {issue.message}" for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("text", "amount", "total", "counted"),
    [
        ("120 requests/s", 120, False, "requests"),
        ("1 request / second", 1, False, "requests"),
        ("90 requests per min", 1.5, False, "requests"),
        ("7.2k requests/h", 2, False, "requests"),
        ("3.2 M requests/day", 3.2e6, True, "requests"),
        ("7e6 requests/week", 1e6, True, "requests"),
        ("365 B tokens/month", 365e9 * 24 / 730, True, "tokens"),
        ("40 k output tokens/s", 40e3, False, "output tokens"),
        ("2 M users x 6 requests/day", 12e6, True, "requests"),
        ("500 users * 1.5 k input tokens/day", 750e3, True, "input tokens"),
    ],
)
def test_a_quantity_has_a_number_a_unit_and_a_time(
    text: str, amount: float, total: bool, counted: str
) -> None:
    found = quantity(text)
    assert found is not None
    assert found.amount == pytest.approx(amount, rel=1e-12)
    assert (found.total, found.counted) == (total, counted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "many",
        "12",
        "12 requests",
        "-3 requests/s",
        "3 m requests/day",
        "3 requests/quarter",
        "3 users/day",
    ],
)
def test_what_is_no_quantity_is_refused_with_examples(tmp_path: Path, text: str) -> None:
    assert quantity(text) is None
    found = refused(tmp_path, f"demand: {{east: '{text}'}}")
    assert found == [f"services.s0.demand.east: is not a quantity of demand: {text!r}"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("25 req/s", "25 requests/s"),
        ("25 QPS", "25 requests/s"),
        ("25/s", "25 requests/s"),
        ("1,500 requests/day", "1500 requests/day"),
        ("2,5 M requests/day", "2.5 M requests/day"),
        ("1.5K Requests/H", "1.5 k requests/h"),
        ("3 million requests/day", "3 M requests/day"),
        ("40k tok/sec", "40 k tokens/s"),
        ("100 input tokens / hr", "100 input tokens/h"),
        ("2 mn users \u00d7 6/day", "2 M users x 6 requests/day"),
        ("5 queries per minute", "5 requests/min"),
        ("180000 RPM", "180000 requests/min"),
        ("3 000 requests/s", "3000 requests/s"),
        ("3\u00a0000 requests/s", "3000 requests/s"),
        ("3\u202f000\u202f000 requests/day", "3000000 requests/day"),
        ("3\u2009000 rps", "3000 requests/s"),
        ("3'000'000 requests/day", "3000000 requests/day"),
        ("3_000", "3000"),
        ("3K", "3 k"),
        ("many", None),
        ("25%", None),
        ("25 requests/year", None),
        ("25 requests/s", None),
    ],
)
def test_other_spellings_of_a_quantity_have_the_one_of_the_format(text: str, meant: str | None) -> None:
    assert meant_quantity(text) == meant
    assert meant is None or quantity(meant) is not None or scaled_number(meant) or float(meant)


@pytest.mark.parametrize(("text", "amount"), [("3 k", 3e3), ("0.2M", 2e5)])
def test_a_number_with_a_scale_is_in_the_unit_of_its_key(tmp_path: Path, text: str, amount: float) -> None:
    assert rates(loaded(tmp_path, f"demand: {{east: {text}}}"), "east", "2027Q1") == [amount] * 3
    offline = f"offline: {{requests_per_day: {{east: {text}}}, deadline_hours: 24}}"
    found = sum(rates(loaded(tmp_path, offline), "east", "2027Q1")) / 3
    assert found * 24 * 3600 == pytest.approx(amount)


def test_a_total_is_spread_in_the_shape_of_the_day(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "demand: {east: 8.64 M requests/day}, demand_by_slice: consumer")
    night, day, evening = rates(fleet, "east", "2027Q1")
    assert 3600 * (8 * night + 12 * day + 4 * evening) == pytest.approx(8.64e6)
    assert (night / day, evening / day) == (pytest.approx(0.25), pytest.approx(0.5))
    assert rates(fleet, "west", "2027Q1") == [0.0, 0.0, 0.0]
    assert fleet.warnings == ()


def test_a_total_without_a_shape_is_even_and_said_to_be(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "demand: {east: 8.64 M requests/day}")
    assert rates(fleet, "east", "2027Q4") == [100.0, 100.0, 100.0]
    assert fleet.warnings == (
        "services.s0.demand: a total is spread evenly over the day; demand_by_slice states its peak",
    )


def test_a_service_says_once_that_its_totals_are_even(tmp_path: Path) -> None:
    """However many regions and periods it states a total for."""
    totals = ", ".join(f"2027Q{quarter}: 8.64 M requests/day" for quarter in range(1, 5))
    fleet = loaded(tmp_path, f"demand: {{east: {{{totals}}}, west: {{{totals}}}}}")
    assert fleet.warnings == (
        "services.s0.demand: a total is spread evenly over the day; demand_by_slice states its peak",
    )


def test_tokens_become_requests_by_the_workload(tmp_path: Path) -> None:
    fleet = loaded(
        tmp_path,
        "demand: {east: 4 k tokens/s}",
        "demand: {east: 3 k input tokens/s}",
        "demand: {east: 2 k output tokens/s}",
    )
    assert [rates(fleet, "east", "2027Q1", n)[0] for n in range(3)] == pytest.approx([10, 10, 20])


def test_tokens_of_several_classes_are_those_of_their_mix(tmp_path: Path) -> None:
    short = "a: {share: 0.75, input_tokens: 100, output_tokens: 20}"
    long = "b: {share: 0.25, input_tokens: 900, output_tokens: 60}"
    mix = f"name: mix, model: llama3-8b, workload: {{classes: {{{short}, {long}}}}}"
    fleet = loaded(
        tmp_path,
        "demand: {east: 1}",
        head=HEAD + f"  - {{{mix}, demand: {{east: 600 input tokens/s}}}}\n",
    )
    demand = fleet.services[0].demand.peak
    assert demand["east", "2027Q1", "a"] == pytest.approx(1.5)
    assert demand["east", "2027Q1", "b"] == pytest.approx(0.5)


def test_demand_grows_from_its_last_figure(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "demand: {east: 100, west: {2027Q2: 10}}, growth: 10 %/quarter")
    assert [rates(fleet, "east", period)[0] for period in fleet.periods] == [100.0, 110.0, 121.0, 133.1]
    assert [rates(fleet, "west", period)[0] for period in fleet.periods] == [0.0, 10.0, 11.0, 12.1]


def test_regions_grow_each_in_their_own_way(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "demand: {east: 100, west: 100}, growth: {west: -10 %/quarter}")
    assert [rates(fleet, "east", period)[0] for period in fleet.periods] == [100.0] * 4
    assert [rates(fleet, "west", period)[0] for period in fleet.periods] == [100.0, 90.0, 81.0, 72.9]


def test_growth_of_a_month_or_a_year_is_that_of_its_quarters() -> None:
    assert growth_per_period("3 %/month", 3) == pytest.approx(1.03**3)
    assert growth_per_period("25% per year", 3) == pytest.approx(1.25**0.25)
    assert growth_per_period("10 %/quarter", 1) == pytest.approx(1.1 ** (1 / 3))
    assert growth_per_period("25 %/year", 1) == pytest.approx(1.25 ** (1 / 12))
    assert growth_per_period("-100 %/year", 3) is None
    assert growth_per_period("10 percent", 3) is None


def test_a_shape_by_region(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "demand: {east: 10, west: 10}, demand_by_slice: placed")
    assert rates(fleet, "east", "2027Q1") == [5.0, 10.0, 10.0]
    assert rates(fleet, "west", "2027Q1") == [10.0, 2.0, 10.0]


def test_a_shape_by_local_hour_follows_the_time_zones(tmp_path: Path) -> None:
    """Office hours of east are 13 to 23 UTC, of west 16 to 2: night is 0 to 8, evening 20 to 24 UTC."""
    fleet = loaded(tmp_path, "demand: {east: 10, west: 10}, demand_by_slice: office")
    assert rates(fleet, "east", "2027Q1") == [1.0, 10.0, 10.0]
    assert rates(fleet, "west", "2027Q1") == [10.0, 10.0, 10.0]


def test_offline_work_takes_the_mean_of_a_slice_and_a_service_its_peak(tmp_path: Path) -> None:
    head = HEAD.replace("slices:", "first_slice_utc_hour: 5\n  slices:")
    fleet = loaded(
        tmp_path,
        "demand: {east: 8.64 M requests/day}, demand_by_slice: office",
        "offline: {requests_per_day: {east: 8.64 M requests/day}}, demand_by_slice: office",
        head=head,
    )
    mean = (10 * 1 + 14 * 0.1) / 24
    # From 5 UTC on it is midnight in east: night to 8, day to 20, evening.
    assert rates(fleet, "east", "2027Q1", 0) == pytest.approx([10 / mean, 100 / mean, 10 / mean])
    work = rates(fleet, "east", "2027Q1", 1)
    assert work == pytest.approx([10 / mean, (10 * 100 + 2 * 10) / 12 / mean, 10 / mean])
    assert 3600 * (8 * work[0] + 12 * work[1] + 4 * work[2]) == pytest.approx(8.64e6)


def test_hours_hold_until_the_next_one_is_given() -> None:
    dice = random.Random(1)
    for _ in range(50):
        steps = {dice.randrange(STEPS_PER_DAY): dice.random() for _ in range(dice.randint(1, 6))}
        first = dice.randrange(-48, 140) / 4
        found = ratios_of_hours(steps, first)
        for step, ratio in enumerate(found):
            at = (round(first * 4) + step) % STEPS_PER_DAY
            while at not in steps:
                at = (at - 1) % STEPS_PER_DAY
            assert ratio == steps[at]


def test_every_way_of_stating_the_same_demand_is_the_same_demand(tmp_path: Path) -> None:
    requests_per_day = 12 * 3600 * (8 * 0.25 + 12 + 4 * 0.5)
    fleet = loaded(
        tmp_path,
        "demand: {east: 12}, demand_by_slice: {night: 0.25, evening: 0.5}",
        "demand: {east: 720 requests/min}, demand_by_slice: consumer",
        "demand: {east: 4.8 k tokens/s}, demand_by_slice: consumer",
        f"demand: {{east: {requests_per_day:.0f} requests/day}}, demand_by_slice: consumer",
        "demand: {east: {night: 3, day: 12, evening: 6}}",
    )
    for n in range(5):
        assert rates(fleet, "east", "2027Q3", n) == pytest.approx([3, 12, 6])


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (
            "demand: {east: 1}, demand_by_slice: consumr",
            "demand_by_slice: there is no shape of the day 'consumr'",
        ),
        ("demand: {east: 1}, growth: 10 percent", "growth: is not a growth: '10 percent'"),
        ("demand: {east: 1}, growth: {north: 1 %/year}", "growth.north: there is no region 'north'"),
        (
            "demand: {east: {low: 1 requests/s, mid: 2 requests/day}}",
            "demand.east: low, mid and high have different units",
        ),
        (
            # Figures of two units are not compared.
            "demand: {east: {low: 90000 requests/day, mid: 2 requests/s, high: 300000 requests/day}}",
            "demand.east: low, mid and high have different units",
        ),
        (
            "offline: {requests_per_day: {east: 5 requests/s}}",
            "offline.requests_per_day.east: must be a total by day, week or month: offline work has no peak",
        ),
        (
            "demand: {east: 9 B requests/s}",
            "demand.east: comes to 9e+09 requests/s; it must be 0, or from 1e-06 to 1e+09",
        ),
        (
            "demand: {east: 1 request/month}",
            "demand.east: comes to 3.80518e-07 requests/s; it must be 0, or from 1e-06 to 1e+09",
        ),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path: Path, service: str, message: str) -> None:
    assert refused(tmp_path, service) == [f"services.s0.{message}"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{by_slice: {day: 1}}", "{}", "needs exactly one of by_slice, by_region, by_local_hour"),
        ("{by_slice: {day: 1}}", "{by_slice: {noon: 1}}", ".by_slice.noon: there is no slice 'noon'"),
        ("{by_slice: {day: 1}}", "{by_region: {east: {day: 1}}}", ".by_region: has no shape for west"),
        (
            "{by_slice: {day: 1}}",
            "{by_local_hour: {8.1: 1}}",
            ".by_local_hour.8.1: must be an hour of the day in quarters, from 0 to 23.75, not '8.1'",
        ),
        (
            "west: {utc_offset_hours: -8}",
            "west: {}",
            "day_shapes.office.by_local_hour: the local time is unknown in west",
        ),
    ],
)
def test_mistakes_in_shapes(tmp_path: Path, old: str, new: str, message: str) -> None:
    found = refused(tmp_path, "demand: {east: 1}", head=HEAD.replace(old, new))
    assert len(found) == 1
    assert message in found[0]


def test_a_follower_has_the_growth_of_its_leader(tmp_path: Path) -> None:
    fleet = loaded(
        tmp_path,
        "demand: {east: 10}, growth: 50 %/quarter, demand_by_slice: consumer",
        "follows: {service: s0, ratio: 2}",
    )
    assert rates(fleet, "east", "2027Q2", 1) == [7.5, 30.0, 15.0]
    assert refused(tmp_path, "demand: {east: 1}", "follows: {service: s0, ratio: 2}, growth: 1 %/year") == [
        "services.s1.growth: has no effect on a follower: the followed service has its own growth"
    ]
