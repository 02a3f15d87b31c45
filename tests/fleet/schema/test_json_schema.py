"""The JSON Schema of fleet files: up to date, named by every scenario, and of one mind with the reader."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from pydantic import ValidationError
from tests.parts import first_parts

from fleetplan.fleet.document import read_document
from fleetplan.fleet.schema import FleetSpec, schema_text
from fleetplan.fleet.schema.json_schema import DIALECT, FILE_NAME

SCENARIOS = Path(__file__).parents[3] / "scenarios"
COMMITTED = SCENARIOS / FILE_NAME
FLEETS = sorted(SCENARIOS.rglob("*.yaml"))

BLOCKS = (("services",), ("regions",))

SMALL: Mapping[str, object] = {
    "version": 1,
    "offers": [{"name": "h200-rent", "hardware": "H200-SXM", "price_book": "rental_3y"}],
    "services": [
        {
            "name": "chat",
            "model": "llama3-8b",
            "workload": {"input_tokens": 100, "output_tokens": 10},
            "demand": 5,
        }
    ],
}


@cache
def validator() -> Draft7Validator:
    """Made when a test asks for it: half a second that no other process needs."""
    return Draft7Validator(json.loads(schema_text()))


def fleet_of(path: Path) -> dict[str, object]:
    plain = read_document(path).root.plain()
    assert isinstance(plain, dict)
    return plain


def reader_accepts(fleet: object) -> bool:
    try:
        FleetSpec.model_validate(fleet)
    except ValidationError:
        return False
    return True


def schema_accepts(fleet: object) -> bool:
    return bool(validator().is_valid(fleet))


def with_key(**changes: object) -> dict[str, object]:
    return {**deepcopy(dict(SMALL)), **changes}


def paths(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key of a fleet but those of which the reader keeps only the text until they are used."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        if key not in ("scenarios", "overrides", "demand"):
            yield (*above, key)
            yield from paths(each, (*above, key))


def changed(fleet: dict[str, object], path: tuple[str | int, ...], key: object, value: object) -> object:
    """The fleet with one key named otherwise, or with another value."""
    copy = deepcopy(fleet)
    holder: object = copy
    for part in path[:-1]:
        holder = holder[part]  # type: ignore[index]
    if isinstance(holder, list):
        holder[int(path[-1])] = value
    else:
        assert isinstance(holder, dict)
        del holder[path[-1]]
        holder[key] = value
    return copy


def value_at(fleet: object, path: tuple[str | int, ...]) -> object:
    for part in path:
        fleet = fleet[part]  # type: ignore[index]
    return fleet


def test_it_is_draft_7() -> None:
    Draft7Validator.check_schema(validator().schema)
    assert validator().schema["$schema"] == DIALECT
    assert '"$defs"' not in schema_text()


def test_the_committed_schema_is_up_to_date() -> None:
    assert COMMITTED.read_text("utf-8") == schema_text(), f"run: plan schema --out scenarios/{FILE_NAME}"


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.relative_to(SCENARIOS).as_posix())
def test_every_scenario_names_the_schema_first_and_obeys_it(path: Path) -> None:
    first = path.read_text("utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found is not None
    assert (path.parent / found[1]).resolve() == COMMITTED.resolve()
    assert [error.message for error in validator().iter_errors(fleet_of(path))] == []


def test_the_hook_reads_the_scenarios_as_we_do() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(COMMITTED), *map(str, FLEETS)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def one_of_each_list(places: Iterable[tuple[str | int, ...]]) -> Iterator[tuple[str | int, ...]]:
    """Yield places but for those like an earlier one, of another service, say."""
    seen: set[tuple[str, ...]] = set()
    for place in places:
        kind = tuple(part if isinstance(part, str) else "" for part in place)
        if kind not in seen:
            seen.add(kind)
            yield place


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.relative_to(SCENARIOS).as_posix())
@pytest.mark.parametrize("every", first_parts((False, True), 1), ids=("one of each", "every"))
def test_a_misspelt_key_is_refused_wherever_the_reader_refuses_it(path: Path, every: bool) -> None:
    fleet = fleet_of(path)
    refused = 0
    for place in paths(fleet) if every else one_of_each_list(paths(fleet)):
        if isinstance(place[-1], str):
            other = changed(fleet, place, f"{place[-1]}s", value_at(fleet, place))
            assert schema_accepts(other) == reader_accepts(other), place
            refused += not reader_accepts(other)
    assert refused >= 10


@pytest.mark.parametrize("value", [-1, 0, 1.5, True, "x", "a, b", "", None, [], ["x"], {}, {"x": 1}])
def test_values_are_accepted_where_the_reader_accepts_them(value: object) -> None:
    for name in ("bring-your-own-rates/fleet.yaml", "templates/quarterly.yaml"):
        fleet = fleet_of(SCENARIOS / name)
        for place in paths(fleet):
            # In Python `true` is 1, the version; and blocks that must not be empty are refused a step later.
            if (place, value) == (("version",), True) or (place in BLOCKS and value in ([], {})):
                continue
            other = changed(fleet, place, place[-1], value)
            assert schema_accepts(other) == reader_accepts(other), (name, place)


@pytest.mark.parametrize(
    "fleet",
    [
        with_key(verison=1),
        with_key(overrides={"cheap": {"offers": [{"name": "h200-rent", "max_host": 1}]}}),
        with_key(scenarios={"growth": {"services": [{"name": "chat", "slo": {"tfft_ms": 1}}]}}),
        with_key(scenarios={"growth": 5}),
        with_key(regions={"two words": {}}),
        with_key(services=[{"name": "chat", "demand": {"east": "many"}}]),
        with_key(services=[{"name": "chat", "demand": 1, "slo": {"ttft_p97_ms": 300}}]),
        with_key(imports="base.yaml"),
        {"imports": ["base.yaml"], "offers": [{"name": "h200-rent", "max_host": 1}]},
        {key: value for key, value in SMALL.items() if key != "version"},
    ],
)
def test_mistakes_that_an_editor_should_show(fleet: object) -> None:
    assert not schema_accepts(fleet)


@pytest.mark.parametrize(
    "fleet",
    [
        SMALL,
        with_key(overrides={"cheap": {"offers": [{"name": "h200-rent", "max_hosts": 1}]}}),
        with_key(
            scenarios={"growth": {"services": [{"name": "chat", "demand": {"now": 9}}]}, "one": ["cheap"]}
        ),
        # A file that is laid on others gives only what it changes.
        {"imports": ["base.yaml"], "offers": [{"name": "h200-rent", "max_hosts": 1}]},
    ],
)
def test_parts_of_a_file_need_not_be_whole(fleet: object) -> None:
    assert schema_accepts(fleet)


def test_keys_are_described_by_their_docstrings_units_included() -> None:
    definitions = validator().schema["definitions"]
    slo = definitions["SloSpec"]["properties"]
    assert slo["ttft_p95_ms"] == {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "maximum": 1e12,
        "description": "Time to first token that 95 % of the requests must meet under load. [ms]",
    }
    for name, block in definitions.items():
        for key, about in block.get("properties", {}).items():
            text = about.get("description", "")
            refers = "$ref" in about or "allOf" in about
            assert text or refers, f"{name}.{key}"
            assert "\n" not in text
            if re.search(r"_(ms|kw|w|gib|tflops|tops|gb_per_s|usd)$|_usd_per_|_kg_", key) and not refers:
                assert re.search(r"\[[\w$/ ]+\]", text), f"{name}.{key} has no unit"
