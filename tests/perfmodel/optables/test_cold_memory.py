"""Operators whose weights or context a benchmark kept in the cache of the chip."""

from __future__ import annotations

import numpy as np
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.cold_memory import read_from_memory
from fleetplan.perfmodel.optables.rows import MeasuredRows

CONTEXTS = np.array([1024, 16_384, 262_144])


def attention(rates: tuple[float, float, float], part: Accelerator) -> MeasuredRows:
    """Decode attention of three contexts (4 MB, 67 MB, 1.1 GB) at rates over that of the data sheet."""
    ones = np.ones(3, dtype=np.int64)
    dims = {"batch": ones, "context_tokens": CONTEXTS, "heads": 8 * ones, "kv_heads": 8 * ones}
    dims |= {"head_dim": 128 * ones, "window": 0 * ones}
    reading_ms = CONTEXTS * 2 * 2 * 8 * 128 / (part.hbm_gb_per_s * 1e6)
    return MeasuredRows(
        OperatorKind.DECODE_ATTENTION, "bf16", dims, reading_ms / rates, np.zeros(3, dtype=np.uint8)
    )


def test_small_reads_are_no_faster_than_large_ones(toy: Accelerator) -> None:
    rows = attention((0.1, 3.0, 0.8), toy)
    found = read_from_memory(rows, toy)
    assert found.latency_ms == pytest.approx(rows.latency_ms * (1.0, 3.0 / 0.8, 1.0))
    assert found.provenance.tolist() == [Provenance.MEASURED, Provenance.EXTRAPOLATED, Provenance.MEASURED]


def test_without_large_reads_the_data_sheet_is_the_limit(toy: Accelerator) -> None:
    rows = attention((0.1, 3.0, 0.8), toy).select(np.array([True, True, False]))
    assert read_from_memory(rows, toy).latency_ms == pytest.approx(rows.latency_ms * (1.0, 3.0))


@pytest.mark.parametrize("hardware", ["L40S", "RTX-PRO-6000-Server", "RTX-4090"])
def test_no_context_is_read_faster_than_memory_allows(hardware: str) -> None:
    """Decode attention never reads a context faster than the memory bandwidth."""
    part = accelerators()[hardware]
    contexts = 2 ** np.arange(12, 19)
    each = np.ones_like(contexts)
    dims = {"batch": each, "context_tokens": contexts, "heads": 64 * each, "kv_heads": 8 * each}
    found = operator_source(part, "vllm").times(
        OperatorKind.DECODE_ATTENTION, "bf16", dims | {"head_dim": 64 * each, "window": 0 * each}
    )
    rates = contexts * 2 * 2 * 8 * 64 / found.latency_ms / 1e6
    assert (rates <= part.hbm_gb_per_s).all()
