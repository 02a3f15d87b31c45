"""Every test is in one of three sets, and continuous integration runs two of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from _pytest.mark.structures import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import SWITCH, examples
from tests.parts import each_once, first_of, first_parts, those_with

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")

TARGETS = dict(re.findall(r'^([a-z-]+):.*\n\t.*\$\(PYTEST\) -m "?([a-z ]+?)"? -rs$', MAKEFILE, re.MULTILINE))
"""Targets of make that run tests, with what they select by marks."""


def targets_of(*marks: str) -> list[str]:
    """Return the targets that run a test with these marks."""
    return [
        target
        for target, expression in TARGETS.items()
        if Expression.compile(expression).evaluate(lambda name, **_: name in marks)
    ]


def test_every_test_is_in_one_set() -> None:
    assert targets_of() == ["test"]
    assert targets_of("more") == ["test-more"]
    assert targets_of("slow") == targets_of("slow", "more") == ["slow"]


def test_continuous_integration_runs_all_but_the_slow_tests() -> None:
    (stages,) = re.findall(
        r"^for stage in (.*); do$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE
    )
    assert set(TARGETS) - set(stages.split()) == {"slow"}
    for stage in stages.split():
        assert re.search(rf"^{stage}:", MAKEFILE, re.MULTILINE), stage


@pytest.mark.parametrize(
    ("switch", "number", "marks"), [(None, 2, []), ("more", 5, ["more"]), ("all", 9, ["slow"])]
)
def test_a_law_has_as_many_examples_as_its_set_tries(
    switch: str | None, number: int, marks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if switch is not None:
        monkeypatch.setenv(SWITCH, switch)
    tried = []

    @examples(9, 2, 5)
    @given(st.integers())
    def law(value: int) -> None:
        tried.append(value)

    law()
    assert len(tried) == number
    assert [mark.name for mark in getattr(law, "pytestmark", [])] == marks


def test_a_law_without_further_examples_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "more")

    @examples(9, 2)
    @given(st.integers())
    def law(value: int) -> None:
        assert value == value  # noqa: PLR0124

    assert not hasattr(law, "pytestmark")


def marked(values: list[Any]) -> dict[Any, str]:
    """Return the mark of each argument; of those without one an empty text."""
    return {
        (each.values[0] if len(each.values) == 1 else each.values): each.marks[0].name
        for each in values
        if isinstance(each, ParameterSet)
    } | {each: "" for each in values if not isinstance(each, ParameterSet)}


def test_arguments_are_left_to_other_sets() -> None:
    assert marked(first_parts("abc", 1)) == {"a": "", "b": "slow", "c": "slow"}
    assert marked(first_parts("abc", 1, 1)) == {"a": "", "b": "more", "c": "slow"}
    assert marked(first_of("abc", 1)) == {"a": "", "b": "more", "c": "more"}
    assert marked(those_with("abc", "b".__eq__)) == {"a": "more", "b": "", "c": "more"}


def test_every_value_of_either_list_is_tried_at_once() -> None:
    pairs = marked(each_once("abc", (1, 2)))
    assert len(pairs) == 6
    at_once = [pair for pair, mark in pairs.items() if not mark]
    assert {one for one, _ in at_once} == set("abc")
    assert {other for _, other in at_once} == {1, 2}
