"""Convert products of AWS's price list in JSON to rows of its CSV offer file.

Supported documents (November 2026): an offer file of the Bulk API (`products` by SKU, `terms` by kind and
SKU), and the output of `aws pricing get-products` (`PriceList`, each product with its own terms, as an object
or as text).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.fleet.document.records import NumberedRecord
from fleetplan.planner.importing.records import Record, at, rows_of

_ATTRIBUTES: Final = {
    "Instance Type": "instanceType",
    "Region Code": "regionCode",
    "Operating System": "operatingSystem",
    "Tenancy": "tenancy",
    "Pre Installed S/W": "preInstalledSw",
    "CapacityStatus": "capacitystatus",
    "MarketOption": "marketoption",
}
"""Columns of the offer file, and the equivalent attributes."""

_KINDS: Final = ("OnDemand", "Reserved")


def product_rows(document: object) -> Iterator[NumberedRecord]:
    """Yield a row for each product and price, with the number of its product.

    Parameters
    ----------
    document : object
        One page, or a list of several.
    """
    for position, product in enumerate(_products(document), start=1):
        attributes = at(product, "product", "attributes")
        if not isinstance(attributes, Mapping):
            yield position, {}
            continue
        row = {column: attributes[name] for column, name in _ATTRIBUTES.items() if name in attributes}
        for kind in _KINDS:
            for term in _values(at(product, "terms", kind)):
                said = at(term, "termAttributes")
                for dimension in _values(at(term, "priceDimensions")):
                    # A price may be stated in several currencies.
                    prices = dict(_items(at(dimension, "pricePerUnit")))
                    currency = "USD" if "USD" in prices else next(iter(prices), None)
                    usd = prices.get(str(currency))
                    price = {"TermType": kind, "Unit": dimension.get("unit"), "PricePerUnit": usd}
                    yield position, {**row, **dict(_items(said)), **price, "Currency": currency}


def publication_date(document: object) -> object:
    """Return the publication date of the list, the oldest of several pages; None if it is not stated."""
    pages = document if isinstance(document, list) else [document]
    heads = (page.get("publicationDate") for page in pages if isinstance(page, Mapping))
    products = (each.get("publicationDate") for each in _products(document))
    return min((str(each) for each in (*heads, *products) if each is not None), default=None)


def _products(document: object) -> Iterator[Record]:
    """Yield products with their terms."""
    for page in document if isinstance(document, list) else [document]:
        offer: Record = page if isinstance(page, Mapping) else {}
        by_sku = offer.get("products")
        if not isinstance(by_sku, Mapping):
            for each in rows_of(page, ("PriceList",)):
                yield _parsed(each)
            continue
        for sku, product in by_sku.items():
            terms = {kind: at(offer, "terms", kind, str(sku)) for kind in _KINDS}
            yield {"product": product, "terms": terms}


def _parsed(each: object) -> Record:
    """Return a product from an object, or from JSON text as in the output of the command."""
    if isinstance(each, str):
        try:
            each = json.loads(each)
        except ValueError:
            return {}
    return each if isinstance(each, Mapping) else {}


def _items(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _values(value: object) -> list[Record]:
    return [each for _, each in _items(value) if isinstance(each, Mapping)]
