"""Differences between two tables, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.perfmodel.fakes import accelerator

from fleetplan.perfmodel.microbench.comparison import differences
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.rows import measured_rows


def gemms(latency_ms: dict[int, float], dtype: str = "bf16") -> MeasuredRows:
    m = np.array(list(latency_ms))
    dims = {"n": np.full_like(m, 1024), "k": np.full_like(m, 512), "m": m}
    return measured_rows(OperatorKind.GEMM, dtype, dims, np.array(list(latency_ms.values())))


def test_the_second_table_at_the_points_of_the_first() -> None:
    first, second = gemms({1: 1.0, 8: 2.0, 64: 4.0}), gemms({1: 1.1, 8: 2.4, 64: 4.4})
    (found,) = differences([first], [second], accelerator(), n_worst=1)
    assert (found.n_points, found.n_compared) == (3, 3)
    assert found.quantiles[1] == pytest.approx(1.1)
    ((label, ratio),) = found.worst
    assert label.endswith("m=8")
    assert ratio == pytest.approx(1.2)


def test_points_that_nothing_surrounds_are_not_compared() -> None:
    first, second = gemms({1: 1.0, 8: 2.0, 4096: 90.0}), gemms({1: 1.0, 64: 4.0})
    (found,) = differences([first], [second], accelerator())
    assert (found.n_points, found.n_compared) == (3, 2)


def test_a_table_that_the_second_lacks_is_named() -> None:
    found = list(differences([gemms({1: 1.0}), gemms({1: 1.0}, "fp8")], [gemms({1: 1.0})], accelerator()))
    assert [each.n_compared for each in found] == [1, 0]
    assert math.isnan(found[1].quantiles[0])


def test_curves_are_compared_as_well() -> None:
    def traffic(latency_ms: dict[int, float]) -> MeasuredRows:
        dims = {"traffic_bytes": np.array(list(latency_ms))}
        return measured_rows(OperatorKind.ELEMENTWISE, "bf16", dims, np.array(list(latency_ms.values())))

    (found,) = differences(
        [traffic({10: 1.0, 20: 2.0, 1000: 9.0})], [traffic({10: 2.0, 30: 6.0})], accelerator()
    )
    assert (found.n_compared, found.quantiles[1]) == (2, pytest.approx(2.0))
