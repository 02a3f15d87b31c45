"""YAML of plain values is read and written as PyYAML alone does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetplan.fleet.document.composer import compose
from fleetplan.fleet.document.edit import YamlText
from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import Issue

SCENARIO = (Path(__file__).parents[3] / "scenarios" / "uncertain.yaml").read_text(encoding="utf-8")


def test_values_are_those_of_pyyaml() -> None:
    assert read_yaml(SCENARIO) == yaml.safe_load(SCENARIO)


@pytest.mark.parametrize(
    "form",
    [{}, {"explicit_start": True}, {"sort_keys": True}, {"default_flow_style": None, "width": 110}],
    ids=str,
)
def test_texts_are_those_of_pyyaml(form: dict[str, Any]) -> None:
    value = yaml.safe_load(SCENARIO)
    assert yaml_text(value, **form) == yaml.safe_dump(value, **{"sort_keys": False, **form})


@pytest.mark.parametrize(
    "text", ["yes", "1e3", "a: b", "# x", " x ", "é", "line\nline", "\u2028", "\U0001f600"]
)
def test_what_is_written_is_read_again(text: str) -> None:
    value = {text: [text, {"key": text}]}
    assert read_yaml(yaml_text(value)) == value
    assert read_yaml(yaml_text(value, allow_unicode=True, default_flow_style=True)) == value


@pytest.mark.parametrize(
    "text", ["1e3", "-2E+4", ".5", "5.", "08", "0o17", "nan", "Inf", "+infinity", "y", "N"]
)
def test_text_stays_text_for_readers_of_other_versions(text: str) -> None:
    """A fleet file takes 1e3 for a number, kubectl and Helm take y for true."""
    written = [yaml_text({text: [text]}), yaml_text({text: [text]}, default_flow_style=True)]
    for each in written:
        assert each.count(f"'{text}'") == 2
        issues: list[Issue] = []
        root = compose(each, "a.yaml", issues)
        assert not issues
        assert root is not None
        assert root.plain() == {text: [text]}
    edited = YamlText("name: a\n")
    edited.put(("name",), text)
    assert edited.changed() == f"name: '{text}'\n"
