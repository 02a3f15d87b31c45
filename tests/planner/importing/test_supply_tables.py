"""`plan import inventory` and `plan import prices`: pools, offers and a reason for every rejected row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.planner.command_line import run

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.importing.supply_tables import import_inventory, import_prices
from fleetplan.scenarios.load import load_fleet

INVENTORY = """name,region,hardware,hosts,capex_usd_per_host,in_service,rent_usd_per_host_month,price_as_of
old,east,H100-SXM,4,297000,2025Q1,,2026-08
hired,east,H200-SXM,2,,,11680,2026-09
wrong,east,H300,2,,,11680,
both,east,H100-SXM,2,297000,,11680,
half,east,H100-SXM,2.5,297000,,,
old,east,H100-SXM,1,297000,,,
"""

PRICE_HEAD = (
    "name,hardware,regions,per,capex_usd_per_host,rent_usd_per_accelerator_hour,rent_usd_per_host_hour,"
    "max_hosts,max_accelerators,lead_time_quarters"
)

PRICES = f"""{PRICE_HEAD}
buy,B200-SXM,east; west,host,446000,,,10,,1
rent,H100-SXM,east,accelerator,,1.99,,,64,
byhost,H200-SXM,east,,,,16.4,4,,
none,H200-SXM,east,,,,,,,
odd,H200-SXM,east,rack,,2,,,,
"""


def written(text: str, folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_inventory_becomes_pools_with_rents_by_accelerator_and_hour(tmp_path: Path) -> None:
    found = import_inventory(written(INVENTORY, tmp_path))
    pools = {pool["name"]: pool for pool in read_yaml(found.text)["pools"]}
    assert set(pools) == {"old", "hired"}
    assert pools["old"]["owned"] == {
        "capex_usd_per_host": 297000.0, "in_service": "2025Q1", "price_as_of": "2026-08",
    }  # fmt: skip
    # 11,680 USD a month for eight accelerators and 730 hours.
    assert pools["hired"]["rented"]["usd_per_accelerator_hour"] == 2.0
    assert [each.place for each in found.rejected] == ["line 4", "line 5", "line 6", "line 7"]
    reasons = " ".join(each.reason for each in found.rejected)
    for said in ("H300", "bought or rented", "2.5", "already"):
        assert said in reasons


def test_prices_become_offers(tmp_path: Path) -> None:
    found = import_prices(written(PRICES, tmp_path))
    offers = {offer["name"]: offer for offer in read_yaml(found.text)["offers"]}
    assert offers["buy"] == {
        "name": "buy", "hardware": "B200-SXM", "regions": ["east", "west"], "per": "host",
        "capex_usd_per_host": 446000.0, "lead_time_quarters": 1, "max_hosts": 10,
    }  # fmt: skip
    assert offers["rent"]["max_accelerators"] == 64
    assert offers["byhost"]["rent_usd_per_accelerator_hour"] == 2.05
    assert [each.place for each in found.rejected] == ["line 5", "line 6"]


def test_rows_that_a_fleet_file_would_not_take_are_rejected_with_their_reason(tmp_path: Path) -> None:
    text = (
        "name,hardware,hosts,capex_usd_per_host,in_service,price_as_of\n"
        "a,H200-SXM,1,100,2025Q9,\n"
        "b,H200-SXM,1,100,,2026-02-31\n"
        "c c,H200-SXM,1,100,,\n"
        "d\x1b[31m,H200-SXM,1,100,,\n"
        "good,H200-SXM,1,100,2025Q3,2026-02-28\n"
    )
    found = import_inventory(written(text, tmp_path))
    assert [pool["name"] for pool in read_yaml(found.text)["pools"]] == ["good"]
    assert [each.reason for each in found.rejected] == [
        "owned.in_service: must be a quarter such as 2025Q3 or FY26-Q2, or a month such as 2025-07, "
        "not '2025Q9'",
        "owned.price_as_of: there is no such day",
        "name: is not a name: 'c c'; names contain no blanks, commas, brackets or bars",
        "name contains the control character U+001B",
    ]
    prices = "name,hardware,per,capex_usd_per_host,price_as_of\nb,H200-SXM,host,5,2026-13\n"
    assert [each.reason for each in import_prices(written(prices, tmp_path)).rejected] == [
        "price_as_of: there is no such day"
    ]


@pytest.mark.parametrize("other", ["200000,5", "1.200.000", "200.000,50"])
def test_points_between_thousands_are_no_decimals(tmp_path: Path, other: str) -> None:
    rows = f'a,H100-SXM,1,300.000\nb,H100-SXM,1,"{other}"\n'
    path = written("name,hardware,hosts,capex_usd_per_host\n" + rows, tmp_path)
    with pytest.raises(InputError, match=r"3:1: capex_usd_per_host: .* has a decimal comma"):
        import_inventory(path)


def test_columns_that_nothing_reads_are_named_and_refuse_no_file(tmp_path: Path) -> None:
    """An unused column such as `serial` is named, and the file is read."""
    text = "name,hardware,hosts,serial,capex_usd_per_host,cost centre,\na,H200-SXM,1,S\x1b[1m77,100,4711,\n"
    found = import_inventory(written(text, tmp_path))
    assert [pool["name"] for pool in read_yaml(found.text)["pools"]] == ["a"]
    assert (found.taken, found.rejected) == (1, ())
    assert found.notes == ("ignored columns: 'serial', 'cost centre'",)
    assert f"# {found.notes[0]}" in found.text
    with pytest.raises(InputError, match="did you mean 'capex_usd_per_host'"):
        import_inventory(written("name,hardware,hosts,capex_usd_host\na,H200-SXM,1,1\n", tmp_path))


def test_a_misspelt_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'hardware'"):
        import_inventory(written("name,hardwear,hosts\na,b,1\n", tmp_path))


def test_what_is_imported_is_part_of_a_fleet(tmp_path: Path) -> None:
    (tmp_path / "inventory.csv").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "prices.csv").write_text(PRICES, encoding="utf-8")
    for what, out in (("inventory", "pools.yaml"), ("prices", "offers.yaml")):
        assert run("import", what, str(tmp_path / f"{what}.csv"), "--out", str(tmp_path / out)) == 0
    service = {
        "name": "chat", "model": "llama3.1-8b", "workload": {"input_tokens": 100, "output_tokens": 50},
        "slo": {"tpot_ms": 30}, "demand": {"east": 5},
    }  # fmt: skip
    fleet = {
        "imports": ["pools.yaml", "offers.yaml"], "version": 1, "horizon": {"periods": ["2027Q1", "2027Q2"]},
        "regions": {"east": {}, "west": {}}, "services": [service],
    }  # fmt: skip
    (tmp_path / "fleet.yaml").write_text(yaml_text(fleet), encoding="utf-8")
    built = load_fleet(tmp_path / "fleet.yaml")
    assert [pool.name for pool in built.pools] == ["old", "hired"]
    assert [offer.name for offer in built.offers] == ["buy", "rent", "byhost"]


def test_machines_of_an_inventory_have_their_own_size(tmp_path: Path) -> None:
    rows = ("p5.48xlarge,55.04", "g6e.12xlarge,10.48", "g6e.xlarge,1.861", "L40S,16.0")
    lines = [f"n{number},east,{row.replace(',', ',2,')}" for number, row in enumerate(rows)]
    path = tmp_path / "inventory.csv"
    path.write_text(
        "\n".join(["name,region,hardware,hosts,rent_usd_per_host_hour", *lines]), encoding="utf-8"
    )
    document = read_yaml(import_inventory(path).text)
    found = [(each["hardware"], each["rented"]["usd_per_accelerator_hour"]) for each in document["pools"]]
    assert found == [("H100-SXM", 6.88), ("L40S-x4", 2.62), ("L40S-x1", 1.861), ("L40S", 2.0)]
    assert document["hardware"]["L40S-x1"] == {"like": "L40S", "accelerators_per_host": 1}


def test_an_inventory_may_be_packed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "inventory.csv", tmp_path / "inventory.csv.gz"
    plain.write_text(INVENTORY, encoding="utf-8")
    packed.write_bytes(gzip.compress(INVENTORY.encode()))
    # But for the name of the file.
    assert import_inventory(packed).text.split("\n", 1)[1] == import_inventory(plain).text.split("\n", 1)[1]
