"""Price lists of AWS and Azure, and their import by the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.importing.fragments import ImportedSupply
from fleetplan.planner.importing.offers import OfferOptions

OPTIONS = OfferOptions("2026-11-24", spot_max_share=0.3, terms=True)

AWS_HEAD = """\
"FormatVersion","v1.0"
"Disclaimer","made up"
"Publication Date","2026-11-20T00:00:00Z"
"Version","2"
"OfferCode","AmazonEC2"
"""


AWS_COLUMNS = (
    "SKU",
    "OfferTermCode",
    "TermType",
    "Unit",
    "PricePerUnit",
    "Currency",
    "LeaseContractLength",
    "PurchaseOption",
    "OfferingClass",
    "Instance Type",
    "Tenancy",
    "Operating System",
    "CapacityStatus",
    "MarketOption",
    "Pre Installed S/W",
    "Region Code",
)
"""Some of the columns of an offer file of AmazonEC2, by their names."""


def aws_row(machine: str, usd: float, region: str = "us-east-1", **changes: str) -> dict[str, str]:
    row = dict.fromkeys(AWS_COLUMNS, "") | {
        "SKU": "A",
        "OfferTermCode": "B",
        "TermType": "OnDemand",
        "Unit": "Hrs",
        "PricePerUnit": f"{usd:.10f}",
        "Currency": "USD",
        "Instance Type": machine,
        "Tenancy": "Shared",
        "Operating System": "Linux",
        "CapacityStatus": "Used",
        "MarketOption": "OnDemand",
        "Pre Installed S/W": "NA",
        "Region Code": region,
    }
    return row | {name.replace("_", " "): value for name, value in changes.items()}


RESERVED = {
    "TermType": "Reserved",
    "LeaseContractLength": "1yr",
    "PurchaseOption": "No Upfront",
    "OfferingClass": "standard",
}

AWS = [
    aws_row("p5.48xlarge", 56.0),
    aws_row("p5.48xlarge", 56.0, "us-west-2"),
    aws_row("p5.48xlarge", 40.0, **RESERVED),
    aws_row("p5.48xlarge", 36.0, **RESERVED | {"PurchaseOption": "All Upfront"}),
    aws_row("p5.48xlarge", 60.0, Operating_System="Windows"),
    aws_row("p5.48xlarge", 61.0, Tenancy="Dedicated"),
    aws_row("p5.48xlarge", 31.0, MarketOption="CapacityBlock"),
    aws_row("p5.48xlarge", 0.0, "eu-west-1"),
    aws_row("m5.large", 0.1),
    aws_row("p5.4xlarge", 7.0),
]


def offers(found: ImportedSupply) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in read_yaml(found.text).get("offers", [])}


def reasons(found: ImportedSupply) -> str:
    return "\n".join(f"{each.place}: {each.reason}" for each in found.rejected)


def aws_file(folder: Path) -> Path:
    lines = [",".join(json.dumps(name) for name in AWS_COLUMNS)]
    lines += [",".join(json.dumps(row[name]) for name in AWS_COLUMNS) for row in AWS]
    path = folder / "index.csv"
    path.write_text(AWS_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def aws_products() -> dict[str, Any]:
    """The same products as `aws pricing get-products` prints them."""
    products = []
    for row in AWS:
        attributes = {
            "instanceType": row["Instance Type"],
            "regionCode": row["Region Code"],
            "tenancy": row["Tenancy"],
            "operatingSystem": row["Operating System"],
            "preInstalledSw": row["Pre Installed S/W"],
            "capacitystatus": row["CapacityStatus"],
            "marketoption": row["MarketOption"],
        }
        price = {"unit": row["Unit"], "pricePerUnit": {row["Currency"]: row["PricePerUnit"]}}
        said = {name: row[name] for name in RESERVED if name != "TermType" and row[name]}
        term = {"termAttributes": said, "priceDimensions": {"A.B.C": price}}
        products.append({"product": {"attributes": attributes}, "terms": {row["TermType"]: {"A.B": term}}})
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(each) for each in products]}


def azure_item(machine: str, usd: float, **changes: object) -> dict[str, object]:
    return {
        "currencyCode": "USD",
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": "eastus",
        "location": "US East",
        "meterName": "ND96isr H100 v5",
        "productName": "Virtual Machines NDsr H100 v5 Series",
        "skuName": "ND96isr H100 v5",
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "armSkuName": machine,
    } | changes
