"""Price lists of Azure and Google Cloud as offers, and rules common to all clouds."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import run
from tests.planner.importing.cloud_price_lists import OPTIONS, aws_products, azure_item, offers, reasons
from tests.planner.importing.fleets import fleet_with

from fleetplan.planner.cli import main
from fleetplan.planner.importing.cloud_prices import azure_offers, gcp_offers


def test_prices_of_azure_are_by_the_hour_also_those_of_a_term() -> None:
    h100 = "Standard_ND96isr_H100_v5"
    items = [
        azure_item(h100, 98.32),
        azure_item(h100, 120.0, productName="Virtual Machines NDsr H100 v5 Series Windows"),
        azure_item(h100, 40.0, skuName="ND96isr H100 v5 Spot"),
        azure_item(h100, 20.0, skuName="ND96isr H100 v5 Low Priority"),
        azure_item(h100, 3 * 8760 * 48.0, type="Reservation", reservationTerm="3 Years"),
        azure_item(h100, 90.0, currencyCode="EUR"),
        azure_item("Standard_D2s_v5", 0.1),
        azure_item(
            "Standard_ND96isr_MI300X_v5",
            48.0,
            armRegionName="westus",
            productName="Virtual Machines NDis MI300X v5",
        ),
    ]
    pages = [{"BillingCurrency": "USD", "Items": items[:4], "Count": 4}, {"Items": items[4:], "Count": 4}]
    found = azure_offers(pages, "prices.json", replace(OPTIONS, regions={"eastus": "east", "westus": "west"}))
    by_name = offers(found)
    assert {name: each["rent_usd_per_accelerator_hour"] for name, each in by_name.items()} == {
        "standard_nd96isr_h100_v5": 12.29,
        "standard_nd96isr_h100_v5-spot": 5.0,
        "standard_nd96isr_h100_v5-12q": 6.0,
        "standard_nd96isr_mi300x_v5": 6.0,
    }
    assert by_name["standard_nd96isr_h100_v5"]["regions"] == ["east"]
    assert by_name["standard_nd96isr_h100_v5-spot"]["max_share"] == 0.3
    assert by_name["standard_nd96isr_h100_v5-12q"]["term_quarters"] == 12
    for reason in ("Windows", "Low Priority", "is a price in EUR", "not an instance type"):
        assert reason in reasons(found)


def test_savings_plans_of_azure_are_by_the_hour_and_meters_that_nobody_is_billed_by_are_left_out() -> None:
    h100 = "Standard_ND96isr_H100_v5"
    plans = [
        {"unitPrice": 64.0, "retailPrice": 64.0, "term": "1 Year"},
        {"unitPrice": 48.0, "retailPrice": 48.0, "term": "3 Years"},
    ]
    items = [
        azure_item(h100, 98.32, isPrimaryMeterRegion=True, savingsPlan=plans),
        azure_item(h100, 1.0, isPrimaryMeterRegion=False),
        # The name of the meter says so where the name of the SKU does not.
        azure_item(h100, 2.0, meterName="ND96isr H100 v5 Low Priority"),
        azure_item(h100, 40.0, meterName="ND96isr H100 v5 Spot"),
    ]
    found = azure_offers({"Items": items}, "prices.json", OPTIONS)
    rents = {
        name: (each["rent_usd_per_accelerator_hour"], each.get("term_quarters"))
        for name, each in offers(found).items()
    }
    assert rents == {
        "standard_nd96isr_h100_v5": (12.29, None),
        "standard_nd96isr_h100_v5-spot": (5.0, None),
        "standard_nd96isr_h100_v5-4q": (8.0, 4),
        "standard_nd96isr_h100_v5-12q": (6.0, 12),
    }
    assert "non-primary" in reasons(found)
    untermed = azure_offers({"Items": items}, "prices.json", replace(OPTIONS, terms=False))
    assert len(offers(untermed)) == 2


def sku(
    said: str, usd: float, regions: tuple[str, ...] = ("us-central1",), usage: str = "OnDemand"
) -> dict[str, Any]:
    whole = int(usd)
    price = {"units": str(whole), "nanos": round((usd - whole) * 1e9), "currencyCode": "USD"}
    rates = [{"startUsageAmount": 0, "unitPrice": price}]
    return {
        "description": said,
        "category": {"resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": rates}}],
    }


H100_SPOT = "Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas"


def test_machines_of_google_are_the_sum_of_their_parts() -> None:
    skus = [
        sku("Nvidia H100 80GB GPU running in Americas", 9.8, ("us-central1", "us-east4")),
        sku("A3 Instance Core running in Americas", 0.03, ("us-central1", "us-east4")),
        sku("A3 Instance Ram running in Americas", 0.0025, ("us-central1",)),
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", 16.11),
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", 4.9542),
        sku(H100_SPOT, 3.0, usage="Preemptible"),
        sku("Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year", 4.0, usage="Commit1Yr"),
        sku("N1 Predefined Instance Core running in Americas", 0.03),
    ]
    found = gcp_offers({"skus": skus}, "skus.json", OPTIONS)
    rents = {name: each["rent_usd_per_accelerator_hour"] for name, each in offers(found).items()}
    whole = 9.8 + 26 * 0.03 + 234 * 0.0025
    # Of fewer than eight H100, Google Cloud starts no machine on demand.
    assert rents == {
        "a3-highgpu-8g": pytest.approx(whole),
        "a4-highgpu-8g": pytest.approx(16.11),
        "a4-highgpu-8g-spot": pytest.approx(4.9542),
    }
    assert offers(found)["a3-highgpu-8g"]["regions"] == ["us-central1"]
    for reason in (
        "us-east4 and 1 more: has no price for the cores",
        "usage type Commit1Yr",
        "not a part of a known machine",
    ):
        assert reason in reasons(found)


def test_h200_and_h100_mega_of_google_have_names_of_their_own() -> None:
    skus = [
        sku("H200 141GB GPU running in Netherlands", 10.5),
        sku("A3Ultra Instance Core running in Netherlands", 0.03),
        sku("A3Ultra Instance Ram running in Netherlands", 0.003),
        # The prices of Americas in 2026; the machine costs 92.74 USD an hour.
        sku("Nvidia H100 80GB Plus GPU running in Americas", 10.344276),
        sku("A3Plus Instance Core running in Americas", 0.026924),
        sku("A3Plus Instance Ram running in Americas", 0.002344),
        sku("Nvidia H100 80GB Mega GPU attached to Spot Preemptible VMs running in Tokyo", 4.0),
        sku("Spot Preemptible A3Plus Instance Core running in Tokyo", 0.01),
        sku("Spot Preemptible A3Plus Instance Ram running in Tokyo", 0.001),
        # Reserved for a time, at half the price: no offer on demand.
        sku("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", 4.841121),
        sku("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas", 4.423936),
    ]
    found = gcp_offers({"skus": skus}, "skus.json", OPTIONS)
    by_name = offers(found)
    rents = {name: each["rent_usd_per_accelerator_hour"] for name, each in by_name.items()}
    assert rents == {
        "a3-ultragpu-8g": pytest.approx(10.5 + 28 * 0.03 + 369 * 0.003),
        "a3-megagpu-8g": pytest.approx(92.74 / 8, abs=0.005),
        "a3-megagpu-8g-spot": pytest.approx(4.0 + 26 * 0.01 + 234 * 0.001),
    }
    assert by_name["a3-ultragpu-8g"]["hardware"] == "H200-SXM"
    assert by_name["a3-megagpu-8g"]["hardware"] == "H100-SXM"
    assert "not a part of a known machine" in reasons(found)


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"PriceList": ["{", 3, None]},
        {"Items": [3, {"armSkuName": "p5.48xlarge"}]},
        {"skus": [None, {"pricingInfo": 3}]},
        {
            "skus": [
                sku("Nvidia H100 80GB GPU running in X", 1)
                | {"pricingInfo": [{"pricingExpression": {"tieredRates": [3]}}]}
            ]
        },
        {
            "PriceList": [
                {
                    "product": {"attributes": {"instanceType": "p5.48xlarge"}},
                    "terms": {"OnDemand": {"A": {"priceDimensions": {"B": {}}}}},
                }
            ]
        },
        {"Items": [azure_item("p5.48xlarge", 1, retailPrice="much")]},
        [[["x"]]],
        "text",
        3,
    ],
)
def test_what_is_no_price_list_is_one_sentence(
    cloud: str, document: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["import", "cloud-prices", cloud, str(path), "--out", str(tmp_path / "offers.yaml")])
    assert ended.value.code == 2
    assert "no row can be imported" in capsys.readouterr().err
    assert not (tmp_path / "offers.yaml").exists()


def test_a_cloud_that_there_is_not_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["import", "cloud-prices", "asure", str(tmp_path / "x.json"), "--out", str(tmp_path / "o.yaml")])
    assert ended.value.code == 2
    assert "did you mean 'azure'" in capsys.readouterr().err


def test_a_fleet_takes_the_offers(tmp_path: Path) -> None:
    found = azure_offers(
        {"Items": [azure_item("Standard_ND96isr_H100_v5", 98.32)]},
        "x",
        replace(OPTIONS, regions={"eastus": "here"}),
    )
    (tmp_path / "offers.yaml").write_text(found.text, encoding="utf-8")
    assert [each.name for each in fleet_with(tmp_path, "offers.yaml").offers] == ["standard_nd96isr_h100_v5"]


def test_rows_that_are_not_asked_for_are_told_with_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {
        "Items": [
            azure_item("Standard_ND96isr_H100_v5", 98.32),
            azure_item("Standard_ND96isr_H200_v5", 110.0),
        ]
    }
    path = tmp_path / "azure.json"
    path.write_text(json.dumps(pages), encoding="utf-8")
    words = ("import", "cloud-prices", "azure", path, "--out", tmp_path / "offers.yaml")
    assert run(*words, "--region", "us-east") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "2 rows: skipped: --region excludes eastus" in said
    assert "0 rows taken, 2 not" in said
    assert run(*words, "--hardware", "H200-SXM") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "1 row: skipped: --hardware excludes H100-SXM" in said
    assert "1 row taken, 1 not" in said


def test_machines_that_start_as_spot_capacity_alone_have_no_other_price() -> None:
    skus = [
        sku("Nvidia H100 80GB GPU running in Americas", 9.8),
        sku("A3 Instance Core running in Americas", 0.03),
        sku("A3 Instance Ram running in Americas", 0.0025),
        sku(H100_SPOT, 3.0, usage="Preemptible"),
        sku("Spot Preemptible A3 Instance Core running in Americas", 0.009, usage="Preemptible"),
        sku("Spot Preemptible A3 Instance Ram running in Americas", 0.0008, usage="Preemptible"),
    ]
    found = gcp_offers({"skus": skus}, "skus.json", OPTIONS)
    assert set(offers(found)) == {
        "a3-highgpu-8g", *(f"a3-highgpu-{each}g-spot" for each in (1, 2, 4, 8)),
    }  # fmt: skip
    assert found.taken == len(skus)


def test_a_packed_list_is_read_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "products.json.gz", tmp_path / "offers.yaml"
    packed = gzip.compress(json.dumps(aws_products()).encode())
    path.write_bytes(packed)
    assert run("import", "cloud-prices", "aws", path, "--out", out) == 0
    assert "p5.48xlarge" in out.read_text(encoding="utf-8")
    path.write_bytes(packed[:-20])
    assert run("import", "cloud-prices", "aws", path, "--out", out) == 2
    assert "cut short or damaged" in " ".join(capsys.readouterr().err.split())
