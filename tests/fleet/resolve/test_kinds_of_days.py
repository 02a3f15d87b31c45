"""Kinds of days in a quarter, and demand by case, from the fleet file to the resolved fleet."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Demand, Fleet
from fleetplan.scenarios.load import load_fleet

KEY = ("here", "now", "all")


def test_the_peak_is_the_largest_of_each_key() -> None:
    other = ("there", "now", "all")
    demand = Demand({("a", None): {KEY: 2.0, other: 3.0}, ("b", None): {KEY: 5.0, other: 1.0}})
    assert demand.peak == {KEY: 5.0, other: 3.0}


def test_what_cases_ask_alike_is_kept_once() -> None:
    def demand(rates: dict[tuple[str, str], float]) -> Demand:
        return Demand.of_cases({case: {KEY: rate} for case, rate in rates.items()})

    cases = [(part, scenario) for part in ("day", "night") for scenario in ("low", "high")]
    flat = demand(dict.fromkeys(cases, 2.0))
    assert flat.by_case == {(None, None): {KEY: 2.0}}
    by_slice = demand({case: 2.0 if case[0] == "day" else 1.0 for case in cases})
    assert by_slice.by_case == {("day", None): {KEY: 2.0}, ("night", None): {KEY: 1.0}}
    by_scenario = demand({case: 2.0 if case[1] == "high" else 1.0 for case in cases})
    assert by_scenario.by_case == {(None, "low"): {KEY: 1.0}, (None, "high"): {KEY: 2.0}}
    assert (flat.differs_by_scenario, by_slice.differs_by_scenario) == (False, False)
    assert by_scenario.differs_by_scenario
    each = demand({case: float(n) for n, case in enumerate(cases)})
    assert [each.of(case)[KEY] for case in cases] == [0.0, 1.0, 2.0, 3.0]
    assert [by_scenario.of(case)[KEY] for case in cases] == [1.0, 2.0, 1.0, 2.0]


def test_a_change_is_made_to_every_case() -> None:
    demand = Demand({(None, None): {KEY: 2.0}, ("night", None): {KEY: 1.0}})
    doubled = demand.changed(lambda rates: {key: 2 * rate for key, rate in rates.items()})
    assert doubled.of(("day", None)) == {KEY: 4.0}
    assert doubled.of(("night", "any")) == {KEY: 2.0}


KINDS = """\
version: 1
horizon:
  periods: [2027Q1]
  slices: [{name: day, hours: 14}, {name: night, hours: 10}]
  day_kinds: {weekday: 5, weekend: 2}
regions: {east: {utc_offset_hours: 0}}
day_shapes:
  week: {by_day_kind: {weekday: office, weekend: quiet}}
  office: {by_local_hour: {8: 1, 18: 0.1}}
  quiet: {by_slice: {weekend-day: 0.2, weekend-night: 0.1}}
pools: [{name: p, region: east, hardware: H100-SXM, hosts: 1, owned: {capex_usd_per_host: 1}}]
services:
- name: s
  model: llama3-8b
  workload: {input_tokens: 300, output_tokens: 100}
  demand: 100
  demand_by_slice: week
"""


def kinds_of(tmp_path: Path, *changes: tuple[str, str]) -> Fleet:
    path, text = tmp_path / "kinds.yaml", KINDS
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def kind_rates(fleet: Fleet) -> list[float]:
    demand = fleet.services[0].demand
    return [demand.of((part.name, None))["east", "2027Q1", "all"] for part in fleet.slices]


def test_every_kind_of_day_has_all_slices_and_a_shape_by_name(tmp_path: Path) -> None:
    fleet = kinds_of(tmp_path)
    assert [(part.name, part.hours, part.days_share) for part in fleet.slices] == [
        ("weekday-day", 14.0, Fraction(5, 7)),
        ("weekday-night", 10.0, Fraction(5, 7)),
        ("weekend-day", 14.0, Fraction(2, 7)),
        ("weekend-night", 10.0, Fraction(2, 7)),
    ]
    # The day from midnight to 14 h holds the ten busy hours; the night has the four until 18 h.
    assert kind_rates(fleet) == pytest.approx([100, 100, 20, 10])


def test_a_total_is_that_of_a_mean_day(tmp_path: Path) -> None:
    """The rates of a week add up to seven days of it."""
    fleet = kinds_of(
        tmp_path,
        ("  demand: 100\n", "  offline: {requests_per_day: 864000}\n"),
        ("{8: 1, 18: 0.1}", "{0: 1, 14: 0.5}"),
    )
    by_week = sum(
        rate * part.hours * 7 * float(part.days_share)
        for rate, part in zip(kind_rates(fleet), fleet.slices, strict=True)
    )
    assert by_week * 3600 == pytest.approx(7 * 864_000)
    weekday_day, weekday_night, weekend_day, weekend_night = kind_rates(fleet)
    assert weekday_day / weekday_night == pytest.approx(2)
    assert weekday_day / weekend_day == pytest.approx(5)
    assert weekday_day / weekend_night == pytest.approx(10)


def test_kinds_of_days_without_slices_have_one_each(tmp_path: Path) -> None:
    fleet = kinds_of(
        tmp_path,
        ("  slices: [{name: day, hours: 14}, {name: night, hours: 10}]\n", ""),
        ("{weekend-day: 0.2, weekend-night: 0.1}", "{weekend: 0.2}"),
    )
    assert [(part.name, part.hours) for part in fleet.slices] == [("weekday", 24.0), ("weekend", 24.0)]
    assert kind_rates(fleet) == pytest.approx([100, 20])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("weekend: quiet}", "weekand: quiet}", "there is no kind of day 'weekand'"),
        ("weekend: quiet}", "weekend: quite}", "there is no shape of the day 'quite'"),
        (", weekend: quiet}", "}", "has no shape for weekend; give every kind of day"),
        ("  day_kinds: {weekday: 5, weekend: 2}\n", "", "all days are alike; give horizon.day_kinds"),
        ("{weekday: 5, weekend: 2}", "{east: 5, weekend: 2}", "there is a region of the same name"),
        ("{weekday: 5, weekend: 2}", "{weekday: 5, weekend: 0}", "must be at least 1"),
        ("{weekday: 5, weekend: 2}", "{weekday: 5}", "needs 2 entries at least, not 1"),
        ("{weekday: 5, weekend: 2}", "{}", "needs 2 entries at least, not 0"),
        ("{by_day_kind: {", "{by_slice: {weekday-day: 1}, by_day_kind: {", "needs exactly one of by_slice"),
        ("{by_local_hour: {8: 1, 18: 0.1}}", "{by_day_kind: {weekday: quiet, weekend: quiet}}",
         "there is no shape of the day 'office'"),
    ],
)  # fmt: skip
def test_kinds_of_days_that_do_not_fit_are_refused(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    with pytest.raises(InputError) as error:
        kinds_of(tmp_path, (before, after))
    assert said in str(error.value)
