"""Offers of imported catalogues and bills, and a bill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.document.records import open_table
from fleetplan.planner.importing.focus import focus_supply
from fleetplan.planner.importing.fragments import ImportedSupply
from fleetplan.planner.importing.offers import OfferOptions
from fleetplan.planner.importing.skypilot import skypilot_offers

SKYPILOT = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice,AvailabilityZone
m5.large,,,2,8,0.096,us-east-1,,0.04,us-east-1a
p5.48xlarge,H100,8,192,2048,60.0,us-east-1,,20.0,us-east-1a
p5.48xlarge,H100,8,192,2048,56.0,us-east-1,,24.0,us-east-1b
p5.48xlarge,H100,8,192,2048,56.0,us-west-2,,,us-west-2a
p5.48xlarge,H100,8,192,2048,80.0,eu-west-1,,,eu-west-1a
box-h200,H200,1,16,200,3.5,us-east-1,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 144384}}]}",1.45,
box-h200x4,H200,4,64,800,14.0,us-east-1,,,
Standard_NC40ads_H100_v5,H100,1,40,320,7.0,us-east-1,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 95830}}]}",,
gpu_1x_h100_pcie,H100,1,26,200,2.5,us-east-1,,,
,H100,8,,,50.0,us-east-1,,,
p3.2xlarge,V100,1,4,16,1.0,us-east-1,,,
p5e.48xlarge,H200,8,192,2048,,us-east-1,,,
box-h100,H100,1,16,200,3.0,us-east-1,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 95830}}]}",,
"""
"""By the columns of catalogs/v8; the prices are made up."""

OPTIONS = OfferOptions("2026-11-24")


def read(path: Path, options: OfferOptions = OPTIONS) -> ImportedSupply:
    with open_table(path) as table:
        importer = skypilot_offers if path.name.startswith("vms") else focus_supply
        return importer(table, str(path), options)


def offers(found: ImportedSupply) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in read_yaml(found.text).get("offers", [])}


def billed(**change: object) -> dict[str, object]:
    """An hour of one p5.48xlarge, by FOCUS 1.2."""
    return {
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargePeriodStart": "2026-10-01T00:00:00Z",
        "ChargePeriodEnd": "2026-10-01T01:00:00Z",
        "EffectiveCost": 56.0,
        "ConsumedQuantity": 1.0,
        "ConsumedUnit": "Hours",
        "PricingCategory": "Standard",
        "RegionId": "us-east-1",
        "SkuPriceDetails": '{"InstanceType": "p5.48xlarge"}',
        "x_UsageType": "",
        **change,
    }


BILL = [
    billed(),
    # Two hours at a lower price: 84 USD for three hours.
    billed(EffectiveCost=28.0, ConsumedQuantity=2.0, ChargePeriodEnd="2026-10-01T04:00:00Z"),
    # Twelve hours within four: three hosts are held.
    billed(EffectiveCost=288.0, ConsumedQuantity=12.0, PricingCategory="Committed"),
    billed(EffectiveCost=8.0, ConsumedQuantity=3600.0, ConsumedUnit="Seconds", PricingCategory="Dynamic"),
    billed(SkuPriceDetails="", x_UsageType="BoxUsage:p5e.48xlarge", EffectiveCost=80.0, RegionId="us-west-2"),
    billed(SkuPriceDetails='{"InstanceType": "m5.large"}'),
    billed(ChargeCategory="Tax"),
    billed(BillingCurrency="EUR"),
    billed(ConsumedUnit="GB"),
    billed(EffectiveCost=-5.0),
    billed(RegionId=""),
    billed(ChargePeriodStart="yesterday"),
]
