"""The extension of the horizon: periods that repeat the last one, until terms end."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet

BASE = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2], extend_quarters: 3}
regions:
  eu: {pue: 1.2, energy_usd_per_kwh: {2027Q1: 0.1, 2027Q2: 0.2}}
pools:
  - name: old
    hardware: H100-SXM
    hosts: 2
    maintenance_hosts: {2027Q2: 1}
    rented: {usd_per_accelerator_hour: 2.5}
offers:
  - name: rent
    hardware: H100-SXM
    rent_usd_per_accelerator_hour: {2027Q1: 3.0, 2027Q2: 1.5}
    max_hosts: {2027Q1: 4}
  - {name: year, hardware: H100-SXM, rent_usd_per_accelerator_hour: 2.0, term_quarters: 4}
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 10}
    demand: {2027Q1: 1, 2027Q2: 2}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(*changes: tuple[str, str], more: str = "") -> Fleet:
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("fleet.yaml").write_text(text + more, encoding="utf-8")
    return load_fleet(Path("fleet.yaml"))


def refused(*changes: tuple[str, str], more: str = "") -> str:
    with pytest.raises(InputError) as caught:
        loaded(*changes, more=more)
    return str(caught.value)


def demand(fleet: Fleet) -> list[float]:
    rates = fleet.services[0].demand.peak
    return [rates["eu", period, "all"] for period in fleet.periods]


def test_the_last_period_is_repeated() -> None:
    fleet = loaded(more="budget: {capex_usd: {2027Q2: 7}}\n")
    assert fleet.periods == ("2027Q1", "2027Q2", "2027Q3", "2027Q4", "2028Q1")
    assert (fleet.extended_by, fleet.n_stated) == (3, 2)
    assert demand(fleet) == [1, 2, 2, 2, 2]
    assert fleet.regions[0].energy_usd_per_kwh == (0.1, 0.2, 0.2, 0.2, 0.2)
    assert fleet.offers[0].rent_usd_per_accelerator_hour == (3.0, 1.5, 1.5, 1.5, 1.5)
    assert fleet.offers[0].max_units == (4, 0, 0, 0, 0)
    assert fleet.budget.capex_usd_by_period == (None, 7, 7, 7, 7)
    # Hosts come back from maintenance.
    assert fleet.pools[0].maintenance_hosts == (0, 1, 0, 0, 0)
    assert not [text for text in fleet.warnings if "2027Q3" in text]


def test_periods_that_a_budget_leaves_out_are_named() -> None:
    fleet = loaded(more="budget: {capex_usd: {2027Q2: 7}}\n")
    assert "budget.capex_usd: has no value for 2027Q1: no limit there" in fleet.warnings


def test_demand_that_grows_goes_on_growing() -> None:
    growing = "demand: {2027Q1: 1, 2027Q2: 2}\n    growth: 10 %/quarter\n"
    fleet = loaded(("demand: {2027Q1: 1, 2027Q2: 2}\n", growing))
    assert demand(fleet) == [1, 2, 2.2, 2.42, 2.662]


def test_an_extension_to_terms_ends_with_the_last_term() -> None:
    until = ("extend_quarters: 3", "extend_quarters: terms")
    # Rented in 2027Q2 for four quarters.
    assert loaded(until).periods[-1] == "2028Q1"
    only_first = ("term_quarters: 4", "term_quarters: 4, max_hosts: {2027Q1: 2}")
    assert loaded(until, only_first).periods[-1] == "2027Q4"
    none = loaded(until, (", term_quarters: 4", ""))
    assert none.extended_by == 0
    assert "horizon.extend_quarters: adds nothing" in "".join(none.warnings)


def test_months_are_extended_by_quarters_and_until_terms_in_months() -> None:
    names = [("2027Q1", "2027-01"), ("2027Q2", "2027-02")]
    assert loaded(*names).periods[-1] == "2027-11"
    terms = (("extend_quarters: 3", "extend_quarters: terms"), ("term_quarters: 4", "term_months: 2"))
    assert loaded(*names, *terms).periods == ("2027-01", "2027-02", "2027-03")


def test_names_without_a_date_are_counted_on() -> None:
    fleet = loaded(("2027Q1", "soon"), ("2027Q2", "later"))
    assert fleet.periods == ("soon", "later", "later+1", "later+2", "later+3")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "fleet.yaml:2:55: horizon.extend_quarters"),
        ("41", "fleet.yaml:2:55: horizon.extend_quarters"),
        ("2.5", "fleet.yaml:2:55: horizon.extend_quarters"),
        ("forever", "fleet.yaml:2:55: horizon.extend_quarters"),
    ],
)
def test_other_values_are_refused_at_their_place(value: str, expected: str) -> None:
    assert expected in refused(("extend_quarters: 3", f"extend_quarters: {value}"))


def test_terms_longer_than_ten_years_are_refused() -> None:
    changes = (("extend_quarters: 3", "extend_quarters: terms"), ("term_quarters: 4", "term_quarters: 60"))
    assert "fleet.yaml:2:55: horizon.extend_quarters: the longest term ends 59 periods" in refused(*changes)


@pytest.mark.parametrize("key", ["capex_usd", "opex_usd", "tco_usd"])
def test_budgets_of_the_whole_horizon_are_refused(key: str) -> None:
    message = refused(more=f"budget: {{{key}: 5}}\n")
    assert f"budget.{key}: would limit the cost of the extension of the horizon too" in message


def test_the_file_states_nothing_of_the_extension() -> None:
    assert "there is no period '2027Q3'" in refused(("2027Q2: 0.2}", "2027Q2: 0.2, 2027Q3: 0.3}"))
