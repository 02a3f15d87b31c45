"""Three versions of a file: what is merged, what conflicts, and that comments stay."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from tests.fuzz.fleets import random_fleet
from tests.parts import first_parts

from fleetplan.fleet.document import YamlText, compose
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.document.three_way import by_name, is_gone, merged

SEEDS = 60


def said(text: str) -> Any:
    root = compose(text, "", [])
    assert root is not None
    return root.plain()


def become(text: str, value: Any) -> str:
    edited = YamlText(text)
    edited.become(value, said(text))
    return edited.changed()


def changed(value: Any, dice: random.Random) -> Any:
    """Change, add or drop something at a random depth; names of items stay."""
    value = copy.deepcopy(value)
    node = value
    while True:
        named = by_name(node)
        if isinstance(node, list) and named and dice.random() < 0.3 and len(node) > 1:
            node.pop(dice.randrange(len(node)))
            return value
        if isinstance(node, list):
            if not node or not isinstance(node[0], dict):
                node.append(dice.randrange(9))
                return value
            node = dice.choice(node)
            continue
        keys = [key for key in node if key != "name"]
        if not keys or dice.random() < 0.2:
            node[f"new{dice.randrange(3)}"] = {"a": dice.randrange(9), "b": [dice.randrange(9)]}
            return value
        key = dice.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and dice.random() < 0.8:
            node = node[key]
        elif dice.random() < 0.3:
            del node[key]
            return value
        else:
            node[key] = dice.choice((True, 1, "text", 2.5, None, {"x": 1}))
            return value


@pytest.mark.parametrize("seed", first_parts(range(SEEDS), 5, more=10))
def test_random_versions_merge_and_their_text_says_so(seed: int) -> None:
    dice = random.Random(seed)
    base = said(yaml_text(random_fleet(seed).file))
    mine, theirs = changed(base, dice), changed(changed(base, dice), dice)
    assert merged(base, mine, base).value == mine
    assert merged(base, base, theirs).value == theirs
    one, other = merged(base, mine, theirs), merged(base, theirs, mine, prefer_theirs=True)
    assert {each.key_path for each in one.conflicts} == {each.key_path for each in other.conflicts}
    assert as_sets(one.value) == as_sets(other.value), "whose version comes first does not matter"
    for flow in (None, False, True):
        text = yaml_text(mine, default_flow_style=flow)
        assert said(become(text, one.value)) == one.value


def as_sets(value: Any) -> Any:
    """Lists of named items by name: their order is that of the version that comes first."""
    if isinstance(value, dict):
        return {key: as_sets(each) for key, each in value.items()}
    named = by_name(value)
    return as_sets(named) if named else value


BASE = """\
# Who owns this file: capacity planning
version: 1
services:
- name: chat        # the assistant
  demand: 100       # measured in July
  slo: {ttft_ms: 300, tpot_ms: 30}
- name: voice
  # agreed with the team
  demand: 20
pools:
- {name: old, hosts: 4}
"""


def test_comments_of_one_version_stay_and_the_other_changes_values() -> None:
    theirs = said(BASE)
    theirs["services"][0]["demand"] = 120
    theirs["services"][0]["slo"]["tpot_ms"] = 25
    theirs["services"].append({"name": "code", "demand": 5})
    theirs["policy"] = {"unmet": "penalise"}
    result = merged(said(BASE), said(BASE), theirs)
    assert result.conflicts == []
    assert [path for path, _, _ in result.taken] == [
        ("services", "chat", "demand"),
        ("services", "chat", "slo", "tpot_ms"),
        ("services", "code"),
        ("policy",),
    ]
    text = become(BASE, result.value)
    assert said(text) == theirs
    for comment in ("# Who owns this file", "# the assistant", "# agreed with the team"):
        assert comment in text


def test_what_one_takes_out_goes_and_what_both_change_is_a_conflict() -> None:
    mine, theirs = said(BASE), said(BASE)
    del mine["services"][1]
    mine["services"][0]["demand"] = 110
    theirs["services"][1]["demand"] = 30
    theirs["services"][0]["demand"] = 120
    del theirs["pools"]
    result = merged(said(BASE), mine, theirs)
    by_path = {each.key_path: each for each in result.conflicts}
    assert list(by_path) == [("services", "chat", "demand"), ("services", "voice")]
    assert (by_path["services", "chat", "demand"].mine, by_path["services", "chat", "demand"].theirs) == (
        110,
        120,
    )
    assert is_gone(by_path["services", "voice"].mine)
    assert "pools" not in result.value  # type: ignore[operator]
    preferred = merged(said(BASE), mine, theirs, prefer_theirs=True).value
    assert said(become(BASE, preferred)) == preferred
    assert [each["demand"] for each in preferred["services"]] == [120, 30]  # type: ignore[index]


def test_lists_without_names_and_true_and_1_are_merged_as_a_whole() -> None:
    assert merged([1, 2], [1, 2, 3], [1, 2]).value == [1, 2, 3]
    assert len(merged([1, 2], [1, 2, 3], [0, 1, 2]).conflicts) == 1
    assert merged({"a": 1}, {"a": True}, {"a": 1}).value == {"a": True}
    assert len(merged({"a": 1}, {"a": True}, {"a": 2}).conflicts) == 1
