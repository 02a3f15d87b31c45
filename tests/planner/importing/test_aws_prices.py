"""AWS price lists as offers: offer files and products in the documented formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import run
from tests.planner.importing.cloud_price_lists import OPTIONS, aws_file, aws_products, offers, reasons

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.cli import main
from fleetplan.planner.importing.cloud_prices import aws_offers


def test_an_offer_file_of_aws_is_read_below_its_head(tmp_path: Path) -> None:
    out = tmp_path / "offers.yaml"
    words = ["import", "cloud-prices", "aws", str(aws_file(tmp_path)), "--terms", "--as-of", "2026-11-24"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", str(out)])
    assert not ended.value.code
    by_name = {each["name"]: each for each in read_yaml(out.read_text(encoding="utf-8"))["offers"]}
    assert by_name["p5.48xlarge"] == {
        "name": "p5.48xlarge",
        "hardware": "H100-SXM",
        "regions": ["us-east-1", "us-west-2"],
        "per": "host",
        "rent_usd_per_accelerator_hour": 7.0,
        "energy_included": True,
        "price_as_of": "2026-11-24",
    }
    assert by_name["p5.48xlarge-4q"]["rent_usd_per_accelerator_hour"] == 5.0
    assert by_name["p5.48xlarge-4q"]["term_quarters"] == 4
    # A machine of one card is a host of one.
    assert (by_name["p5.4xlarge"]["per"], by_name["p5.4xlarge"]["hardware"]) == ("host", "H100-SXM-x1")
    assert set(by_name) == {"p5.48xlarge", "p5.48xlarge-4q", "p5.4xlarge"}


def test_an_offer_file_of_aws_may_have_blank_lines_and_is_told_by_its_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = aws_file(tmp_path), tmp_path / "offers.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\n", "\n\n"), encoding="utf-8")
    assert run("import", "cloud-prices", "aws", path, "--out", out) == 0
    path.write_text(text.replace(",", ";"), encoding="utf-8")
    capsys.readouterr()
    assert run("import", "cloud-prices", "aws", path, "--out", out) == 2
    assert "divided by semicolons" in capsys.readouterr().err


def test_products_and_the_offer_file_say_the_same(tmp_path: Path) -> None:
    out = tmp_path / "offers.yaml"
    with pytest.raises(SystemExit):
        main(
            [
                "import",
                "cloud-prices",
                "aws",
                str(aws_file(tmp_path)),
                "--terms",
                "--as-of",
                "2026-11-24",
                "--out",
                str(out),
            ]
        )
    found = aws_offers(aws_products(), "products.json", OPTIONS)
    assert offers(found) == {
        each["name"]: each for each in read_yaml(out.read_text(encoding="utf-8"))["offers"]
    }
    for reason in (
        "kind All Upfront standard",
        "Operating System is Windows",
        "Tenancy is Dedicated",
        "MarketOption is CapacityBlock",
        "PricePerUnit is 0",
        "not an instance type",
    ):
        assert reason in reasons(found)
    assert "commits to a term" in reasons(aws_offers(aws_products(), "", replace(OPTIONS, terms=False)))


def test_a_json_offer_file_of_aws_keeps_terms_apart_from_products(tmp_path: Path) -> None:
    # By the Bulk API: products by SKU, terms by kind and SKU.
    products: dict[str, Any] = {}
    terms: dict[str, dict[str, Any]] = {"OnDemand": {}, "Reserved": {}}
    for number, text in enumerate(aws_products()["PriceList"]):
        listed, sku = json.loads(text), f"SKU{number}"
        products[sku] = {"sku": sku, "productFamily": "Compute Instance", **listed["product"]}
        ((kind, found),) = listed["terms"].items()
        terms[kind][sku] = {f"{sku}.JRTCKXETXF": each for each in found.values()}
    offer = {
        "formatVersion": "v1.0",
        "disclaimer": "made up",
        "offerCode": "AmazonEC2",
        "version": "2",
        "publicationDate": "2026-11-20T00:00:00Z",
        "products": products,
        "terms": terms,
    }
    (tmp_path / "index.json").write_text(json.dumps(offer), encoding="utf-8")
    words = [
        "import",
        "cloud-prices",
        "aws",
        str(tmp_path / "index.json"),
        "--terms",
        "--as-of",
        "2026-11-24",
    ]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", str(tmp_path / "offers.yaml")])
    assert not ended.value.code
    listed = offers(aws_offers(aws_products(), "products.json", OPTIONS))
    written = read_yaml((tmp_path / "offers.yaml").read_text(encoding="utf-8"))["offers"]
    assert {each["name"]: each for each in written} == listed
    assert set(listed) == {"p5.48xlarge", "p5.48xlarge-4q", "p5.4xlarge"}


def test_a_price_of_aws_in_several_currencies_is_read_in_usd() -> None:
    listed = json.loads(aws_products()["PriceList"][0])
    (term,) = listed["terms"]["OnDemand"].values()
    (price,) = term["priceDimensions"].values()
    price["pricePerUnit"] = {"CNY": "400.0", "USD": "56.0"}
    found = offers(aws_offers({"PriceList": [json.dumps(listed)]}, "products.json", OPTIONS))
    assert found["p5.48xlarge"]["rent_usd_per_accelerator_hour"] == 7.0


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_day_of_an_offer_file_is_that_of_its_publication(tmp_path: Path, form: str) -> None:
    path = aws_file(tmp_path)
    if form == "json":
        path = tmp_path / "products.json"
        document = aws_products() | {"publicationDate": "2026-11-20T00:00:00Z"}
        path.write_text(json.dumps(document), encoding="utf-8")
    out = tmp_path / "offers.yaml"
    for words, day in (((), "2026-11-20"), (("--as-of", "2026-11-24"), "2026-11-24")):
        assert run("import", "cloud-prices", "aws", path, *words, "--out", out) == 0
        text = out.read_text(encoding="utf-8")
        assert f"Price list of Amazon EC2, {day}." in text
        assert {each["price_as_of"] for each in read_yaml(text)["offers"]} == {day}
