"""A scenario that is written from the difference of two trees makes the second of the first."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.fleet.document import Node, compose, merge, read_fragment
from fleetplan.scenarios.difference import difference


def tree(text: str) -> Node:
    issues: list[object] = []
    node = compose(text, "text", issues)  # type: ignore[arg-type]
    assert node is not None
    assert not issues
    return node


def test_only_what_differs_is_laid_on() -> None:
    before = tree("{a: 1, services: [{name: x, demand: 5, slo: {ttft_ms: 3}}, {name: y, demand: 2}]}")
    after = tree("{a: 1, services: [{name: x, demand: 5, slo: {ttft_ms: 4}}, {name: y, demand: 2}]}")
    assert difference(before, after) == {"services": [{"name": "x", "slo": {"ttft_ms": 4}}]}
    assert difference(before, before) == {}


def test_lists_without_names_are_replaced_and_named_items_are_added() -> None:
    before, after = (
        tree("{h: [a, b], s: [{name: x}]}"),
        tree("{h: [a], s: [{name: x}, {name: z, n: 1}], k: null}"),
    )
    assert difference(before, after) == {"h": ["a"], "s": [{"name": "z", "n": 1}], "k": None}


def test_true_is_not_one() -> None:
    assert difference(tree("{a: {k: true}, h: [0]}"), tree("{a: {k: 1}, h: [false]}")) == {
        "a": {"k": 1},
        "h": [False],
    }


def _named(items: dict[str, object]) -> list[dict[str, object]]:
    return [{"name": name, "v": value} for name, value in items.items()]


_SCALARS = st.sampled_from([None, True, 0, 1, "a", "b"])
_TREES = st.recursive(
    _SCALARS,
    lambda below: st.one_of(
        st.dictionaries(st.sampled_from("kmn"), below, max_size=3),
        st.lists(below, max_size=2),
        st.dictionaries(st.sampled_from("xyz"), below, max_size=3).map(_named),
    ),
    max_leaves=8,
)
_ROOTS = st.dictionaries(st.sampled_from("abc"), _TREES, max_size=3)


@examples(100, 10, 25)
@given(_ROOTS, _ROOTS)
def test_what_is_laid_on_a_tree_is_found_again(before: object, over: object) -> None:
    first = read_fragment(json.dumps(before), "first")
    after = merge(first, read_fragment(json.dumps(over), "over"))
    found = read_fragment(json.dumps(difference(first, after)), "found")
    assert json.dumps(merge(first, found).plain(), sort_keys=True) == json.dumps(
        after.plain(), sort_keys=True
    )
