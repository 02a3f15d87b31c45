"""Changing values in the text of a YAML file: what it says then, and what stays as it was."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fleetplan.fleet.document import YamlText
from fleetplan.fleet.document.plain import read_yaml, yaml_text

FILE = """\
# The head
version: 1          # of the format
horizon:
  periods: [a, b]   # two
shared: &rates {low: 1, high: 2}
services:
  # The chat
  - name: chat
    demand:
      us: 100       # of last year
      # half of it
      eu: 50
    slo: {ttft_ms: 500}   # in the contract

  - {name: code, demand: 5, slo: {}}
  - name: tail
    demand: *rates
    note: |
      two
      lines
# The end
"""


def read(text: str) -> Any:
    return read_yaml(text)


def put(path: tuple[str | int, ...], value: object, *comment: str, text: str = FILE) -> str:
    edited = YamlText(text)
    edited.put(path, value, comment)
    return edited.changed()


@pytest.mark.parametrize("flow", [False, True])
@pytest.mark.parametrize("left", [("chat", "tail"), ("code",), ()])
def test_items_are_taken_out_of_a_list(flow: bool, left: tuple[str, ...]) -> None:
    text = FILE
    if flow:
        services = yaml_text(read(FILE)["services"], default_flow_style=True, width=1000).strip()
        text = f"services: {services}\nafter: 1\n"
    edited = YamlText(text)
    items = {each["name"]: each for each in read(text)["services"]}
    edited.keep_items(("services",), [items[name] for name in left])
    assert read(edited.changed()) == read(text) | {"services": [items[name] for name in left]}
    assert flow or "chat" not in left or "# of last year" in edited.changed()


@pytest.mark.parametrize(
    ("path", "at"),
    [
        (("services", "chat", "demand"), ("services", 0, "demand")),
        (("services", "chat", "demand", "eu"), ("services", 0, "demand", "eu")),
        (("services", "chat", "slo", "ttft_ms"), ("services", 0, "slo", "ttft_ms")),
        (("services", "chat", "slo", "tpot_ms"), ("services", 0, "slo", "tpot_ms")),
        (("services", "chat", "headroom"), ("services", 0, "headroom")),
        (("services", "code", "demand"), ("services", 1, "demand")),
        (("services", "code", "growth"), ("services", 1, "growth")),
        (("services", "code", "slo", "ttft_ms"), ("services", 1, "slo", "ttft_ms")),
        (("services", 2, "demand"), ("services", 2, "demand")),
        (("services", "tail", "note"), ("services", 2, "note")),
        (("horizon", "periods"), ("horizon", "periods")),
        (("uncertainty",), ("uncertainty",)),
        (("shared", "low"), ("shared", "low")),
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        7,
        "3 M requests/day",
        ["x", {"name": "on", "n": 1}],
        {"us": {"2027Q1": {"low": 1.0, "mid": 2.5, "high": 4.0}}},
        {f"region-{k}": {"low": k, "mid": k, "high": k} for k in range(9)},
    ],
)
def test_a_value_is_put_and_nothing_else_changes(
    path: tuple[str | int, ...], at: tuple[str | int, ...], value: object
) -> None:
    expected = read(FILE)
    holder = expected
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = value
    if path[0] == "shared":
        # The alias says what its anchor says.
        expected["services"][2]["demand"] = expected["shared"]
    changed = put(path, value, "why")
    assert read(changed) == expected
    for comment in ("# The head", "# of the format", "# two", "# The chat", "# The end", "# in the contract"):
        assert comment in changed
    kept = [line for line in FILE.splitlines() if line in changed.splitlines()]
    assert len(kept) >= len(FILE.splitlines()) - 5


def test_comments_stand_where_their_value_does() -> None:
    changed = put(
        ("services", "chat", "demand"), {f"r{k}": {"low": 1, "mid": 2} for k in range(9)}, "one", "two"
    )
    assert "    demand:\n      # one\n      # two\n      r0: {low: 1, mid: 2}\n" in changed
    assert "version: 2    # new          # of the format\n" in put(("version",), 2, "new")
    assert "# new" not in put(("services", "code", "demand"), 2, "new"), "a comment would end a flow mapping"


@pytest.mark.parametrize("text", [FILE, FILE.rstrip("\n"), FILE.replace("\n", "\r\n")])
def test_items_are_appended(text: str) -> None:
    edited = YamlText(text)
    edited.append(("services",), [{"name": "new", "demand": 1}, {"name": "newer"}])
    edited.append(("horizon", "periods"), [{"name": "c"}])
    edited.append(("pools",), [{"name": "p", "hosts": 2}])
    expected = read(FILE)
    expected["services"] += [{"name": "new", "demand": 1}, {"name": "newer"}]
    expected["horizon"]["periods"].append({"name": "c"})
    expected["pools"] = [{"name": "p", "hosts": 2}]
    found = read(edited.changed())
    assert found == expected


def test_what_cannot_hold_a_key_is_said() -> None:
    with pytest.raises(KeyError, match=r"services\.nobody\.demand"):
        put(("services", "nobody", "demand"), 1)
    with pytest.raises(KeyError, match=r"version\.x"):
        put(("version", "x"), 1)


def test_many_changes_at_once_are_those_one_by_one() -> None:
    dice = random.Random(1)
    paths: list[tuple[tuple[str | int, ...], tuple[str | int, ...]]] = [
        (("services", "chat", "demand", "us"), ("services", 0, "demand", "us")),
        (("services", "chat", "a"), ("services", 0, "a")),
        (("services", "chat", "b"), ("services", 0, "b")),
        (("services", "code", "demand"), ("services", 1, "demand")),
        (("version",), ("version",)),
        (("x",), ("x",)),
        (("y",), ("y",)),
    ]
    for _ in range(20):
        edited, expected = YamlText(FILE), read(FILE)
        for path, at in dice.sample(paths, 5):
            value = {f"k{k}": {"v": k} for k in range(dice.randint(1, 12))}
            edited.put(path, value)
            holder = expected
            for key in at[:-1]:
                holder = holder[key]
            holder[at[-1]] = value
        assert read(edited.changed()) == expected
