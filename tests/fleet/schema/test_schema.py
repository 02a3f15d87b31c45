"""The schema of the fleet file is documentation too."""

from collections.abc import Iterator, Mapping

from fleetplan.fleet.schema import FleetSpec
from fleetplan.fleet.schema.fleet import PolicySpec
from fleetplan.fleet.units import HOURS_PER_QUARTER


def blocks() -> Iterator[tuple[str, Mapping[str, object]]]:
    schema = FleetSpec.model_json_schema()
    yield "FleetSpec", schema
    yield from schema["$defs"].items()


def test_every_key_is_described_and_no_other_is_allowed() -> None:
    for name, block in blocks():
        assert block["additionalProperties"] is False, name
        assert block["description"], name
        properties = block["properties"]
        assert isinstance(properties, dict)
        for key, about in properties.items():
            # A key that holds a block of its own is described by the block.
            assert about.get("description") or "$ref" in about, f"{name}.{key}"


def test_keys_with_units_say_them_in_their_description() -> None:
    units = {
        "_ms": "[ms]",
        "_kw": "[kW]",
        "_usd": "[USD]",
        "_gib": "[GiB]",
        "_gb_per_s": "[GB/s]",
        "_w": "[W]",
    }
    for name, block in blocks():
        properties = block["properties"]
        assert isinstance(properties, dict)
        for key, about in properties.items():
            for suffix, unit in units.items():
                if key.endswith(suffix) and not about["description"].startswith("Percentile"):
                    assert unit in about["description"], f"{name}.{key}"


def test_a_reserve_counts_to_six_decimals() -> None:
    """A reserve is rounded to six decimals, so that its exact ratio fits into the model."""
    assert PolicySpec(reserve_percent_per_pool=100 / 3).reserve_percent_per_pool == 33.333333
    assert PolicySpec(reserve_percent_per_pool=33.3).reserve_percent_per_pool == 33.3


def test_the_quarter_is_the_one_of_the_format() -> None:
    assert HOURS_PER_QUARTER == 2190
