"""SkyPilot's catalogue as offers, and in a fleet together with a FOCUS bill."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.planner.command_line import run
from tests.planner.importing.fleets import fleet_with
from tests.planner.importing.supply_offers import BILL, SKYPILOT, offers, read

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.importing.offers import OfferOptions
from fleetplan.scenarios.load import load_fleet


@pytest.fixture
def vms(tmp_path: Path) -> Path:
    path = tmp_path / "vms.csv"
    path.write_text(SKYPILOT, encoding="utf-8")
    return path


def test_a_machine_is_an_offer_for_each_price_with_its_regions(vms: Path) -> None:
    found = read(vms)
    by_name = offers(found)
    assert by_name["p5.48xlarge-us-east-1"] == {
        "name": "p5.48xlarge-us-east-1", "hardware": "H100-SXM", "regions": ["us-east-1", "us-west-2"],
        "per": "host", "rent_usd_per_accelerator_hour": 7.0, "energy_included": True,
        "price_as_of": "2026-11-24",
    }  # fmt: skip
    assert by_name["p5.48xlarge-eu-west-1"]["rent_usd_per_accelerator_hour"] == 10.0
    assert (by_name["box-h200"]["per"], by_name["box-h200"]["hardware"]) == ("host", "H200-SXM-x1")
    assert by_name["box-h200x4"]["hardware"] == "H200-SXM-x4"
    # A machine of one card is a host of one: no link joins it to those of other machines.
    made = read_yaml(found.text)["hardware"]
    assert made["H200-SXM-x4"] == {"like": "H200-SXM", "accelerators_per_host": 4}
    assert made["H200-SXM-x1"] == {"like": "H200-SXM", "accelerators_per_host": 1}
    # The machine says which H100 it has.
    assert by_name.pop("standard_nc40ads_h100_v5")["hardware"] == "H100-NVL-x1"
    assert set(by_name) == {"p5.48xlarge-us-east-1", "p5.48xlarge-eu-west-1", "box-h200", "box-h200x4"}
    reasons = {each.place: each.reason for each in found.rejected}
    for place, said in {
        "line 2": "has no accelerators",
        "line 14": "has 94 GiB",
        "line 10": "is a PCIe card",
        "line 11": "without their machine",
        "line 12": "V100",
        "line 13": "has no price",
    }.items():
        assert said in reasons.pop(place)
    assert reasons == {}


def test_a_price_of_zero_is_none(tmp_path: Path) -> None:
    header = SKYPILOT.splitlines()[0]
    path = tmp_path / "vms.csv"
    # As Vast has it, with regions that are no names: 0.00 where there is no spot price.
    rows = ['1x-L40S-32-65536,L40S,1,32,64,0.60,"Bulgaria, BG, EU",,0.00,', "free,L40S,1,32,64,0.0,bg,,0.0,"]
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    found = read(path, OfferOptions("2026-11", {"Bulgaria, BG, EU": "bg", "bg": "bg"}, spot_max_share=0.5))
    (offer,) = offers(found).values()
    assert (offer["rent_usd_per_accelerator_hour"], offer["regions"], "spot" in offer) == (0.6, ["bg"], False)
    assert [(each.place, each.reason) for each in found.rejected] == [("line 3", "has no price")]


def test_what_is_wanted_is_chosen_and_regions_are_renamed(vms: Path) -> None:
    chosen = OfferOptions("2026-11", {"us-east-1": "east"}, frozenset({"H100-SXM"}), 0.3)
    by_name = offers(read(vms, chosen))
    assert {name: each["regions"] for name, each in by_name.items()} == {
        "p5.48xlarge": ["east"],
        "p5.48xlarge-spot": ["east"],
    }
    # The cheaper of two zones.
    assert by_name["p5.48xlarge-spot"]["rent_usd_per_accelerator_hour"] == 2.5
    assert (by_name["p5.48xlarge-spot"]["spot"], by_name["p5.48xlarge-spot"]["max_share"]) == (True, 0.3)


OTHER_CLOUDS = """\
InstanceType,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
1x_H100-SXM,H100-SXM,1.0,"{'Gpus': [{'Name': 'H100 SXM', 'MemoryInfo': {'SizeInMiB': 80}}]}",US,a,3.0,3.0
1x_H100,H100,1.0,"{'Gpus': [{'Name': 'H100 PCIe', 'MemoryInfo': {'SizeInMiB': 80}}]}",US,a,2.5,2.5
1x_A100-80GB,A100-80GB,1.0,"{'Gpus': [{'Name': 'A100 PCIe', 'MemoryInfo': {'SizeInMiB': 80}}]}",US,,1.4,1
1H200.96S,H200,1.0,"{""Gpus"": [{""Name"": ""H200"", ""MemoryInfo"": {""SizeInMiB"": 98304}}]}",US,,3.4,
a3-highgpu-8g,,,,us-central1,us-central1-a,10.0,2.0
a3-megagpu-8g,,,,us-central1,us-central1-a,11.0,
a2-highgpu-1g,,,,us-central1,us-central1-a,1.0,0.4
a3-highgpu-8g,,,,us-east4,us-east4-a,10.0,2.0
,H100,8.0,H100,us-central1,us-central1-a,70.0,30.0
,H100-MEGA,8.0,H100-MEGA,us-central1,us-central1-a,80.0,
,A100,1.0,A100,us-central1,us-central1-a,3.0,1.6
,V100,1.0,V100,us-central1,us-central1-a,2.0,1.0
,tpu-v6e-8,1,tpu-v6e-8,us-east5,us-east5-a,21.6,9.7
,tpu-v5p-8,1,tpu-v5p-8,us-east5,us-east5-a,16.8,700.0
,tpu-v6e-64,1,tpu-v6e-64,us-east5,us-east5-a,172.8,77.8
,tpu-v6e-4,1,tpu-v6e-4,asia-east1,asia-east1-c,700.0,700.0
"""
"""Rows as RunPod, Verda and Google Cloud have them in catalogs/v8; the prices are rounded."""


def test_rows_of_clouds_that_write_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "vms.csv"
    path.write_text(OTHER_CLOUDS, encoding="utf-8")
    found = read(path, OfferOptions("2026-11-27", spot_max_share=0.5))
    usd = {
        name: (each["hardware"], each["rent_usd_per_accelerator_hour"])
        for name, each in offers(found).items()
    }
    assert usd == {
        # Gigabytes under MiB; the form of the card in its name alone.
        "1x_h100-sxm": ("H100-SXM-x1", 3.0),
        "1x_h100-sxm-spot": ("H100-SXM-x1", 3.0),
        "1x_h100": ("H100-PCIe-x1", 2.5),
        "1x_h100-spot": ("H100-PCIe-x1", 2.5),
        # A machine and its accelerators: (10 + 70) / 8, (2 + 30) / 8, (11 + 80) / 8, 1 + 3, 0.4 + 1.6.
        "a3-highgpu-8g": ("H100-SXM", 10.0),
        "a3-highgpu-8g-spot": ("H100-SXM", 4.0),
        "a3-megagpu-8g": ("H100-SXM", 11.375),
        "a2-highgpu-1g": ("A100-SXM-40GB-x1", 4.0),
        "a2-highgpu-1g-spot": ("A100-SXM-40GB-x1", 2.0),
        # Slices as large as a host; v5p counts TensorCores, two a chip. 700 stands for no price.
        "tpu-v6e-8": ("TPU-v6e", 2.7),
        "tpu-v6e-8-spot": ("TPU-v6e", 1.2125),
        "tpu-v5p-8": ("TPU-v5p", 4.2),
    }
    assert {each.place: each.reason for each in found.rejected} == {
        "line 4": "A100-80GB of 1x_A100-80GB is a PCIe card, which differs from A100-SXM-80GB",
        "line 5": "H200 has 96 GiB, but H200-SXM has 140",
        "line 9": "its accelerators have no price in its zone",
        "line 13": "is a price of accelerators without their machine",
        "line 16": "tpu-v6e-64 is a slice of several hosts or of a part of one",
        "line 17": "has no price",
    }


def test_accelerators_that_are_no_number_are_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "vms.csv"
    path.write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,Price,Region\n"
        "a3-highgpu-8g,,,10,us\n,H100,many,70,us\n,H100,8,70,us\n",
        encoding="utf-8",
    )
    found = read(path)
    assert offers(found)["a3-highgpu-8g"]["rent_usd_per_accelerator_hour"] == 10.0
    assert ["AcceleratorCount is 'many'" in each.reason for each in found.rejected] == [True]


def test_offers_and_pools_are_part_of_a_fleet(
    vms: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = tmp_path / "billing.parquet"
    pq.write_table(pa.Table.from_pylist(BILL), bill)
    region = ("--region", "us-east-1=east")
    assert run("import", "skypilot", vms, *region, "--out", tmp_path / "offers.yaml") == 0
    assert run("import", "focus", bill, *region, "--hardware", "h100", "--out", tmp_path / "paid.yaml") == 0
    (tmp_path / "fleet.yaml").write_text(
        "version: 1\nimports: [offers.yaml, paid.yaml]\nregions: {east: {}}\nservices:\n  - {name: chat, "
        "model: llama3.1-8b, workload: {input_tokens: 9, output_tokens: 9}, slo: {tpot_ms: 50}, demand: 1}\n",
        encoding="utf-8",
    )
    fleet = load_fleet(tmp_path / "fleet.yaml", (), ())
    assert {"p5.48xlarge", "box-h200", "p5.48xlarge-east"} <= {offer.name for offer in fleet.offers}
    assert [pool.hosts for pool in fleet.pools] == [3]
    capsys.readouterr()
    assert run("import", "skypilot", bill, "--out", tmp_path / "x.yaml") == 2
    assert "InstanceType: the column is missing" in capsys.readouterr().err
    assert run("import", "focus", tmp_path / "none.csv", "--out", tmp_path / "x.yaml") == 2
    assert run("import", "skypilot", vms, "--hardware", "h1oo", "--out", tmp_path / "x.yaml") == 2
    assert not (tmp_path / "x.yaml").exists()


def test_zones_of_a_machine_are_rows_of_one_offer(vms: Path) -> None:
    found = read(vms)
    # Three rows of p5.48xlarge in the United States and one in Europe, and two boxes.
    wanted = read(vms, OfferOptions("2026-11", {"us-east-1": "east"}, frozenset({"H100-SXM"})))
    assert (found.taken, wanted.taken) == (7, 2)
    assert {each.place: each.reason for each in wanted.rejected if "excludes" in each.reason} == {
        "2 rows": "--region excludes eu-west-1, us-west-2",
        "4 rows": "--hardware excludes H100-NVL, H200-SXM",
    }


def test_a_fleet_joins_no_cards_of_machines_with_one(vms: Path, tmp_path: Path) -> None:
    here = read(vms, OfferOptions("2026-11", {"us-east-1": "here"}))
    (tmp_path / "offers.yaml").write_text(here.text, encoding="utf-8")
    found = fleet_with(tmp_path, "offers.yaml").hardware["H200-SXM-x1"].accelerator
    assert found is not None
    assert found.scale_up_accelerators == 1
