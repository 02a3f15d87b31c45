"""Every mistake of a file has its place, and all of them come at once."""

from pathlib import Path

import pytest
from tests.fleet.resolve.broken_files import FLEET, messages_of

from fleetplan.fleet.errors import InputError
from fleetplan.scenarios.load import load_fleet


def test_the_unbroken_file_is_fine(folder: Path) -> None:
    Path("fleet.yaml").write_text(FLEET, encoding="utf-8")
    assert load_fleet("fleet.yaml").name == "small"


def test_a_headroom_that_reads_like_a_percentage_is_warned_of(folder: Path) -> None:
    """A headroom of 10 plans eleven times the demand; 10 % may be meant."""
    for share, said in (("0.1", ()), ("10", ("plans 11 times the demand; for 10 % more, write 0.1",))):
        text = FLEET.replace("tpot_ms: 30}", f"tpot_ms: 30}}\n    headroom: {share}", 1)
        Path("fleet.yaml").write_text(text, encoding="utf-8")
        warnings = [each for each in load_fleet("fleet.yaml").warnings if "headroom" in each]
        assert [each.partition("headroom: ")[2] for each in warnings] == list(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "_per_host: 300000",
            "_per_host: 300.000",
            "300.000 is 300; write 300000 if the point parts thousands",
        ),
        (
            "_per_host: 300000",
            "_per_host: 250.500",
            "250.500 is 250.5; write 250500 if the point parts thousands",
        ),
        ("power_kw: 4000", "power_kw: 4.000", "4.000 is 4; write 4000 if the point parts thousands"),
        ("_per_host: 300000", "_per_host: 300000.00", ""),
        ("_per_host: 300000", "_per_host: 310.25", ""),
        ("_hour: 1.99", "_hour: 1.995", ""),
        ("pue: 1.15", "pue: 1.125", ""),
    ],
)
def test_a_point_that_may_part_thousands_is_warned_of(old: str, new: str, said: str, folder: Path) -> None:
    """A price of 300.000 is $300; in half of Europe it means 300,000."""
    Path("fleet.yaml").write_text(FLEET.replace(old, new, 1), encoding="utf-8")
    warnings = [each for each in load_fleet("fleet.yaml").warnings if "thousands" in each]
    assert [each.partition(": ")[2] for each in warnings] == ([said] if said else [])


def test_a_count_with_a_point_between_thousands_has_a_hint(folder: Path) -> None:
    (message,) = messages_of(FLEET.replace("hosts: 4", "hosts: 4.000", 1))
    assert message.endswith("hosts: must be a whole number, not 4.0; write 4000 if the point parts thousands")


def test_all_mistakes_of_a_file_come_at_once(folder: Path) -> None:
    text = FLEET
    for old, new in [
        ("hosts: 4", "hosts: four"),
        ("ttft_ms: 350", "tfft_ms: 350"),
        ("hardware: H100-SXM", "hardware: H100-SMX"),
        ("2027Q1: 9", "2027Q1: -9"),
        ("pue: 1.15", "pue: 0.9"),
        ("unmet: forbid", "unmet: never"),
    ]:
        text = text.replace(old, new, 1)
    places = [message.split(": ")[1] for message in messages_of(text)]
    assert places == [
        "regions.us-east.pue",
        "pools.east-h200.hosts",
        "offers.h100-rent.hardware",
        "services.chat.slo.tfft_ms",
        "services.chat.demand.us-east.2027Q1",
        "policy.unmet",
    ]


def test_a_mistake_in_a_block_is_not_repeated_where_the_block_is_named(folder: Path) -> None:
    text = FLEET.replace("pue: 1.15", "pue: low", 1).replace("hosts: 4", "hosts: four", 1)
    assert messages_of(text) == [
        "5:34: regions.us-east.pue: must be a number, not 'low'",
        "8:67: pools.east-h200.hosts: must be a whole number, not 'four'",
    ]


OUT_OF_RANGE = """\
version: 1
pools: [{name: own, hardware: H100-SXM, hosts: 100000000, owned: {capex_usd_per_host: 1e12}}]
offers: [{name: rent, hardware: H100-SXM, rent_usd_per_accelerator_hour: 1e9}]
budget: {tco_usd: 1e18}
services:
  - {name: chat, engines: good.csv, slo: {}, demand: 1e-8}
  - {name: more, engines: good.csv, slo: {}, demand: 1e12}
  - {name: fast, engines: rates.csv, slo: {}, demand: 1}
"""


def test_numbers_that_the_model_does_not_take_are_refused_where_they_stand(tmp_path: Path) -> None:
    header = "phase,hardware,accelerators_per_replica,config,requests_per_s"
    (tmp_path / "rates.csv").write_text(f"{header}\naggregated,H100-SXM,1,one,1e12\n")
    (tmp_path / "good.csv").write_text(f"{header}\naggregated,H100-SXM,1,one,10\n")
    path = tmp_path / "fleet.yaml"
    path.write_text(OUT_OF_RANGE)
    with pytest.raises(InputError) as caught:
        load_fleet(path)
    found = {str(issue).removeprefix(f"{tmp_path}/") for issue in caught.value.issues}
    rates = "must be 0, or from 1e-06 to 1e+09 requests/s, not"
    assert found >= {
        "fleet.yaml:2:48: pools.own.hosts: must be at most 1e+07, not 100000000",
        "fleet.yaml:2:87: pools.own.owned.capex_usd_per_host: must be at most 1e+09, not 1000000000000.0",
        "fleet.yaml:3:74: offers.rent.rent_usd_per_accelerator_hour: must be at most 100000, "
        "not 1000000000.0",
        "fleet.yaml:4:19: budget.tco_usd: must be at most 1e+12, not 1e+18",
        f"fleet.yaml:6:54: services.chat.demand: {rates} 1e-08",
        f"fleet.yaml:7:54: services.more.demand: {rates} 1e+12",
        f"rates.csv:2:27: requests_per_s: {rates} 1e12; 0 says that it cannot",
    }
