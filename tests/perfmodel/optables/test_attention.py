from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance, attended_pairs
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.optables.attention import attention_times, length_of_pairs
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable, lookup_table
from fleetplan.perfmodel.optables.rows import measured_rows

from .conftest import ACCELERATOR

HEADS = {"heads": 8, "kv_heads": 1, "head_dim": 128}


def columns(rows: list[dict[str, int]]) -> dict[str, np.ndarray]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@cache
def prefill_table() -> LookupTable:
    """Sweeps without a window and with one of 128, the latter at half the speed."""
    rows = [
        {"batch": batch, "new_tokens": tokens, "window": window, "prefix_tokens": 0, **HEADS}
        for batch, tokens, window in itertools.product((1, 4), (16, 128, 512, 2048, 8192), (0, 128))
    ]
    dims = columns(rows)
    times = roofline_ms(ACCELERATOR, OperatorKind.PREFILL_ATTENTION, "bf16", dims) * np.where(
        dims["window"] > 0, 2, 1
    )
    del dims["prefix_tokens"]
    return lookup_table(ACCELERATOR, measured_rows(OperatorKind.PREFILL_ATTENTION, "bf16", dims, times))


@pytest.fixture
def prefill() -> LookupTable:
    return prefill_table()


@pytest.fixture
def decode(toy: Accelerator) -> LookupTable:
    """A sweep without a window."""
    rows = [
        {"batch": batch, "context_tokens": context, "window": 0, **HEADS}
        for batch, context in itertools.product((1, 16, 64), (1, 1023, 8191, 65535))
    ]
    dims = columns(rows)
    times = roofline_ms(toy, OperatorKind.DECODE_ATTENTION, "bf16", dims)
    return lookup_table(toy, measured_rows(OperatorKind.DECODE_ATTENTION, "bf16", dims, times))


def chunk(table: LookupTable, new: int, prefix: int = 0, window: int = 0) -> OperatorTimes:
    row = {"batch": 1, "new_tokens": new, "prefix_tokens": prefix, "window": window, **HEADS}
    return attention_times(table, columns([row]))


def step(table: LookupTable, context: int, window: int = 0) -> OperatorTimes:
    return attention_times(
        table, columns([{"batch": 16, "context_tokens": context, "window": window, **HEADS}])
    )


@given(st.integers(1, 10**5), st.integers(0, 10**5))
@examples(100, 25, 100)
def test_the_length_of_pairs_is_the_length_whose_pairs_they_are(new: int, window: int) -> None:
    nothing = np.array([0])
    pairs = attended_pairs(np.array([new]), nothing, np.array([window]))
    assert length_of_pairs(pairs, np.array([window]))[0] == pytest.approx(new, rel=1e-9)


def test_a_chunk_over_a_prefix_lies_between_the_chunk_and_the_whole_prompt(prefill: LookupTable) -> None:
    alone, over_prefix, whole = chunk(prefill, 2048), chunk(prefill, 2048, 6144), chunk(prefill, 8192)
    assert alone.latency_ms[0] < over_prefix.latency_ms[0] < whole.latency_ms[0]
    labels = [found.provenance[0] for found in (alone, over_prefix, whole)]
    assert labels == [Provenance.MEASURED, Provenance.INTERPOLATED, Provenance.MEASURED]


def test_a_prompt_costs_about_the_same_in_one_chunk_or_four(prefill: LookupTable) -> None:
    chunks = sum(chunk(prefill, 2048, prefix).latency_ms[0] for prefix in (0, 2048, 4096, 6144))
    assert chunks == pytest.approx(chunk(prefill, 8192).latency_ms[0], rel=0.25)


@given(st.integers(1, 20000), st.integers(0, 40000), st.sampled_from([0, 128, 1000]), st.integers(1, 5000))
@examples(100, 25, 100)
def test_a_chunk_grows_with_its_tokens_and_its_prefix(new: int, prefix: int, window: int, more: int) -> None:
    table = prefill_table()
    first = chunk(table, new, prefix, window).latency_ms[0]
    assert chunk(table, new + more, prefix, window).latency_ms[0] >= first * (1 - 1e-12)
    assert chunk(table, new, prefix + more, window).latency_ms[0] >= first * (1 - 1e-12)


def test_a_measured_window_is_used_and_another_one_sees_its_keys(prefill: LookupTable) -> None:
    assert chunk(prefill, 2048, window=128).provenance[0] == Provenance.MEASURED
    assert chunk(prefill, 512, window=1000).latency_ms == chunk(prefill, 512).latency_ms
    unmeasured = chunk(prefill, 2048, window=1000)
    assert unmeasured.provenance[0] == Provenance.INTERPOLATED
    assert unmeasured.latency_ms[0] < chunk(prefill, 2048).latency_ms[0]


def test_decode_with_a_window_sees_no_more_than_the_window(decode: LookupTable) -> None:
    assert step(decode, 60_000, window=1023).latency_ms == step(decode, 1023).latency_ms
    assert step(decode, 60_000, window=1023).provenance[0] == Provenance.INTERPOLATED
    assert step(decode, 8191, window=10_000).provenance[0] == Provenance.MEASURED


def test_more_heads_than_measured_are_borrowed(toy: Accelerator, decode: LookupTable) -> None:
    row = {"batch": 16, "context_tokens": 8191, "window": 0, **HEADS, "heads": 16, "kv_heads": 2}
    found = attention_times(decode, columns([row]))
    assert found.latency_ms == pytest.approx(
        roofline_ms(toy, OperatorKind.DECODE_ATTENTION, "bf16", columns([row]))
    )
    assert found.provenance[0] == Provenance.EXTRAPOLATED


@pytest.mark.parametrize(("new_tokens", "batch"), [(1, 1), (1, 8), (30, 4), (4096, 1)])
def test_prompts_of_few_tokens_wait_for_the_keys_and_values_of_their_prefix(
    prefill: LookupTable, new_tokens: int, batch: int
) -> None:
    """Attention after a long prefix takes at least the time to read the prefix's keys and values."""
    row = {"batch": batch, "new_tokens": new_tokens, "window": 0, "prefix_tokens": 65_536, **HEADS}
    windowed = row | {"window": 128}
    found = attention_times(prefill, columns([row, windowed]))
    kept_bytes = 2 * 2 * batch * HEADS["kv_heads"] * HEADS["head_dim"] * (65_536 + new_tokens)
    read_ms = kept_bytes / (ACCELERATOR.hbm_gb_per_s * 1e6)
    assert found.latency_ms[0] >= read_ms
    if new_tokens == 1:
        assert found.latency_ms[0] <= 1.01 * read_ms
        assert found.provenance[0] == Provenance.ROOFLINE
        assert found.latency_ms[1] < read_ms
