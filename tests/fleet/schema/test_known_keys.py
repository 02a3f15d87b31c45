"""Messages about unknown keys name the blocks in which a key is valid."""

from __future__ import annotations

import pytest

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.schema.known_keys import allowed_keys, places_of


@pytest.mark.parametrize(
    ("key", "location", "places"),
    [
        ("currency", (), ["finance.currency"]),
        ("power_kw", ("pools", 0), ["regions.power_kw"]),
        ("ttft_ms", ("services", 0), ["services.slo.ttft_ms"]),
        ("input_tokens", ("services", 0), ["services.workload.input_tokens"]),
        # A pool says `rented` before it.
        ("rent_usd_per_accelerator_hour", ("pools", 1), ["pools.rented.usd_per_accelerator_hour"]),
        ("name", ("finance",), []),
        ("colour", (), []),
    ],
)
def test_a_key_of_another_block_is_found(key: str, location: KeyPath, places: list[str]) -> None:
    assert places_of(key, location) == places


def test_items_under_names_have_their_keys() -> None:
    """An unknown key of a region names the keys that a region allows."""
    assert "power_kw" in allowed_keys(("regions", "us-east"))
    assert "tdp_w" in allowed_keys(("hardware", "own"))
