"""docs/optables.md holds the columns, operators and errors of the tables that are installed."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from tests.measured import needs_tables

from fleetplan.perfmodel.optables.report import carried_over_hardware, coverage, errors, is_above

SCRIPT = Path(__file__).parents[2] / "docs" / "generate_optables.py"
WRITTEN = SCRIPT.with_name("optables.md").read_text(encoding="utf-8")
STALE = "run: python docs/generate_optables.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_optables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_columns_operators_and_dimensions_are_those_of_the_reader(generator: ModuleType) -> None:
    assert generator.page(WRITTEN) == WRITTEN, STALE


@needs_tables
def test_every_operator_of_the_installed_tables_has_its_line() -> None:
    # Parts that have all of them together: four-bit weights, eight-bit integers, and neither.
    parts = ("A100-SXM-80GB", "B200-SXM", "L40S")
    found = {(each.operator, each.dtype) for each in coverage(parts, ("vllm",))}
    lines = re.findall(r"^\| ([a-z_]+) \| (\w+) \| \d+ \|", WRITTEN, flags=re.MULTILINE)
    assert set(lines) == found, STALE
    assert f"aiconfigurator-core {version('aiconfigurator-core')}:" in WRITTEN, STALE
    assert f"carried over from others: {', '.join(carried_over_hardware())}." in " ".join(WRITTEN.split()), (
        STALE
    )


@needs_tables
def test_the_errors_of_one_part_are_those_of_today() -> None:
    # Of all parts in the slow stage.
    part, framework = "Arc-Pro-B60", "vllm"
    above = {
        f"{each.operator} {each.dtype}: {each.nodes.median_ratio:.1%}"
        for each in errors((part,), (framework,))
        if is_above(each) and each.nodes is not None
    }
    assert set(re.findall(rf"^\* {part} {framework} (.*)$", WRITTEN, flags=re.MULTILINE)) == above, STALE
    assert len(above) == 4


@needs_tables
@pytest.mark.slow
def test_the_page_holds_the_errors_of_all_tables(generator: ModuleType) -> None:
    assert generator.page(WRITTEN, generator.report_text()) == WRITTEN, STALE
