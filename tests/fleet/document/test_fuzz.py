"""Whatever a file holds, reading it ends in a fleet or in an InputError with places, never in a traceback."""

import json
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.fleet.document import Document, Node, SourcePlace, read_document, read_fragment
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.resolve import build_fleet
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2]}
regions: {eu: {power_kw: 100, pue: 1.1, energy_usd_per_kwh: {2027Q1: 0.1, 2027Q2: 0.2}}, us: {}}
hardware: {mine: {like: H200-SXM, power_cap_w: 500}, own: {bf16_tflops: 9, all_in_w: 5}, G2: {}}
pools:
  - {name: a, region: eu, hardware: mine, hosts: 4, owned: {capex_usd_per_host: 1, in_service: 2026Q1}}
offers:
  - {name: b, regions: [eu, us], hardware: H100-SXM, price_book: rental_3y, max_hosts: {2027Q1: 3}}
services:
  - name: chat
    model: llama3-8b
    workload: {classes: {x: {share: 0.5, input_tokens: 5, output_tokens: 5}}}
    slo: {ttft_ms: 100}
    demand: {eu: {2027Q1: 5}, us: {low: 1, mid: 2, high: 3}}
policy: {unmet: forbid}
budget: {capex_usd: {2027Q1: 5e6}}
"""


def issues_of(read: Callable[[], object]) -> tuple[Issue, ...]:
    try:
        read()
    except InputError as error:
        return error.issues
    return ()


PIECES = [
    "{}", "[]", "null", "true", "-1", "0", "1e9", ".nan", "x", "'", '"', "{", "}", "[", "]", ":", "\n", "  ",
    "- ", "&a", "*a", "<<: ", "demand", "hosts", "2027Q1", "eu", "name: chat", "{low: 1}", "!!set ", "\t",
]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, len(FLEET)), st.integers(0, 30), st.sampled_from(PIECES)),
        min_size=1,
        max_size=4,
    )
)
@examples(300, 25, 75, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
def test_damaged_files(tmp_path: Path, cuts: list[tuple[int, int, str]]) -> None:
    text = FLEET
    for start, length, piece in cuts:
        text = text[:start] + piece + text[start + length :]
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    for issue in issues_of(lambda: load_fleet(path)):
        assert issue.line >= 1
        assert issue.column >= 1
        assert issue.message


@given(st.binary(max_size=200))
@examples(200, 20, 50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(data)
    assert all(issue.message for issue in issues_of(lambda: read_document(path)))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.floats(-2, 1e9)
    | st.text(string.ascii_letters, max_size=4)
)
NAMES = [
    *("name", "hosts", "region", "regions", "hardware", "owned", "rented", "demand", "slo", "workload"),
    *("classes", "periods", "engines", "model", "share", "price_book", "like", "max_hosts", "eu", "2027Q1"),
]
KEYS = st.sampled_from(NAMES)
TREES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=12,
)


@given(
    st.sampled_from(["horizon", "regions", "hardware", "pools", "offers", "services", "policy", "budget"]),
    TREES,
)
@examples(300, 25, 75, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_block(tmp_path: Path, block: str, tree: object) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    document = read_document(path)
    entries = dict(document.root.entries)
    entries[block] = type(entries[block])(SourcePlace("x", 1, 1), _node(tree))
    changed = Document(path, Node.of_entries(entries, document.root.place), {})
    assert all(issue.message for issue in issues_of(lambda: build_fleet(changed)))


def _node(tree: object) -> Node:
    return read_fragment(json.dumps(tree), "fuzz")


@pytest.mark.parametrize("text", [FLEET])
def test_the_undamaged_file_has_one_mistake_in_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_fleet(path)
    assert [issue.key_path for issue in caught.value.issues] == [
        "hardware.own",
        "services.chat.workload.classes",
    ]
