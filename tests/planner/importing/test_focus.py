"""FOCUS billing exports as pools and offers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.planner.importing.supply_offers import BILL, billed, offers, read

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.importing.offers import OfferOptions


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_bill_is_prices_paid_and_capacity_that_is_held(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"billing.{form}"
    if form == "csv":
        pd.DataFrame(BILL).to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pylist(BILL), path)
    found = read(path)
    document = read_yaml(found.text)
    by_name = offers(found)
    assert by_name["p5.48xlarge-us-east-1"]["rent_usd_per_accelerator_hour"] == 84 / 3 / 8
    assert by_name["p5.48xlarge-us-east-1"]["price_as_of"] == "2026-10-01"
    assert by_name["p5e.48xlarge-us-west-2"]["hardware"] == "H200-SXM"
    (pool,) = document["pools"]
    assert pool == {
        "name": "p5.48xlarge-committed-us-east-1", "region": "us-east-1", "hardware": "H100-SXM", "hosts": 3,
        "rented": {"usd_per_accelerator_hour": 3.0, "energy_included": True, "price_as_of": "2026-10-01"},
    }  # fmt: skip
    assert "2026-10-01 to 2026-10-01 (4 hours)" in found.text
    said = " ".join(each.reason for each in found.rejected)
    for reason in ("spot-max-share", "names no instance type", "Tax", "EUR", "'GB'", "EffectiveCost",
                   "RegionId is missing", "not a time such as"):  # fmt: skip
        assert reason in said
    spot = offers(read(path, OfferOptions("2026-11-24", spot_max_share=0.2)))["p5.48xlarge-spot-us-east-1"]
    assert spot["rent_usd_per_accelerator_hour"] == 1.0


def test_times_are_read_as_bigquery_exports_them_and_unread_ones_are_told_once(tmp_path: Path) -> None:
    times = {"ChargePeriodStart": "2026-10-01 00:00:00 UTC", "ChargePeriodEnd": "2026-10-01 04:00:00 UTC"}
    path = tmp_path / "billing.csv"
    pd.DataFrame([billed(**times)]).to_csv(path, index=False)
    assert "2026-10-01 to 2026-10-01 (4 hours)" in read(path).text
    pd.DataFrame([billed(), *(billed(ChargePeriodStart=f"day {k}") for k in range(9))]).to_csv(
        path, index=False
    )
    assert [each.place for each in read(path).rejected] == ["row 3 and 8 more"]


@pytest.mark.parametrize("null", ["NULL", "null", "", "\\N"])
def test_nothing_is_no_region_and_no_currency_of_a_bill(tmp_path: Path, null: str) -> None:
    rows = [
        billed(BillingCurrency=null, PricingCategory=null, ChargeClass=null, ConsumedQuantity=null,
               PricingQuantity=1.0, PricingUnit="1 Hour"),
        billed(RegionId=null),
        billed(ChargeClass="Correction"),
        # Hours beside those of the machine would halve its price.
        billed(SkuPriceDetails=null, x_UsageType="USE1-EBSOptimized:p5.48xlarge", EffectiveCost=0.0),
    ]  # fmt: skip
    path = tmp_path / "bill.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    found = read(path)
    (offer,) = offers(found).values()
    assert (offer["regions"], offer["rent_usd_per_accelerator_hour"]) == (["us-east-1"], 7.0)
    reasons = [each.reason for each in found.rejected]
    assert len(reasons) == 3
    for part in ("RegionId is missing", "charge class Correction", "EBSOptimized"):
        assert any(part in each for each in reasons)


@pytest.mark.parametrize(("quantity", "unit"), [(1.0, "Hrs"), (60.0, "Minutes"), (3600.0, "Seconds")])
def test_an_hour_is_an_hour_in_every_unit(tmp_path: Path, quantity: float, unit: str) -> None:
    path = tmp_path / "bill.csv"
    pd.DataFrame([billed(ConsumedQuantity=quantity, ConsumedUnit=unit)]).to_csv(path, index=False)
    assert offers(read(path))["p5.48xlarge-us-east-1"]["rent_usd_per_accelerator_hour"] == pytest.approx(7.0)


def test_units_of_several_hours_and_the_unused_part_of_a_commitment_count(tmp_path: Path) -> None:
    # FOCUS admits units such as "100 Hours"; an unused commitment has no usage, and a quantity of its own.
    unused = {
        "PricingCategory": "Committed",
        "CommitmentDiscountStatus": "Unused",
        "ConsumedQuantity": None,
        "ConsumedUnit": None,
        "CommitmentDiscountQuantity": 1.0,
        "CommitmentDiscountUnit": "Hours",
        "EffectiveCost": 24.0,
    }
    rows = [
        billed(ConsumedUnit="100 Hours", ConsumedQuantity=0.02, EffectiveCost=112.0),
        billed(PricingCategory="Committed", EffectiveCost=24.0),
        billed(**unused),
    ]
    path = tmp_path / "bill.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    found = read(path)
    assert offers(found)["p5.48xlarge-us-east-1"]["rent_usd_per_accelerator_hour"] == 7.0
    (pool,) = read_yaml(found.text)["pools"]
    assert (pool["hosts"], pool["rented"]["usd_per_accelerator_hour"]) == (2, 3.0)


def test_a_map_of_price_details_and_times_of_parquet_are_read(tmp_path: Path) -> None:
    # AWS exports SkuPriceDetails as a map and periods as timestamps, Microsoft costs as decimals.
    row = billed()
    columns: dict[str, Any] = {name: pa.array([value]) for name, value in row.items()}
    columns["SkuPriceDetails"] = pa.array(
        [[("InstanceType", "p5.48xlarge"), ("Tenancy", "Shared")]], pa.map_(pa.string(), pa.string())
    )
    for name in ("ChargePeriodStart", "ChargePeriodEnd"):
        columns[name] = pa.array([pd.Timestamp(row[name])], pa.timestamp("ms", "UTC"))
    columns["EffectiveCost"] = pa.array([Decimal("56.0")], pa.decimal128(18, 6))
    pq.write_table(pa.table(columns), tmp_path / "bill.parquet")
    found = read(tmp_path / "bill.parquet")
    assert offers(found)["p5.48xlarge-us-east-1"]["rent_usd_per_accelerator_hour"] == 7.0
