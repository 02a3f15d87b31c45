from __future__ import annotations

import itertools

import numpy as np
import pytest

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.interpolation.leave_one_out import left_out_nodes, left_out_sites
from fleetplan.perfmodel.optables.rows import measured_rows

SIZES = (1024, 2048, 4096, 8192)


def table(part: Accelerator, m: tuple[int, ...], spread: float = 0.0) -> MeasuredRows:
    """Twice the speed of light, with alternating errors of `spread`."""
    shapes = np.array(list(itertools.product(SIZES, SIZES, m)))
    dims = {"m": shapes[:, 2], "n": shapes[:, 0], "k": shapes[:, 1]}
    light_ms = roofline_ms(part, OperatorKind.GEMM, "bf16", dims)
    error = 1 + spread * (-1.0) ** np.arange(len(shapes))
    return measured_rows(OperatorKind.GEMM, "bf16", dims, 2 * light_ms * error)


def test_sites_of_one_utilisation_are_predicted_exactly(toy: Accelerator) -> None:
    found = left_out_sites(toy, table(toy, (1, 64, 4096)))
    assert found.p99_ratio == pytest.approx(0.0, abs=1e-9)
    # Two inner levels of n and two of k, four sites a level, three nodes a site.
    assert found.n_predictions == 4 * 4 * 3


def test_nodes_on_a_straight_line_are_predicted(toy: Accelerator) -> None:
    found = left_out_nodes(toy, table(toy, (4096, 8192, 12288, 16384)))
    assert found.n_predictions == 2 * len(SIZES) ** 2
    assert found.p99_ratio < 0.01


def test_errors_of_the_measurements_show(toy: Accelerator) -> None:
    found = left_out_nodes(toy, table(toy, (4096, 8192, 12288, 16384), spread=0.1))
    assert 0.05 < found.median_ratio < 0.3


def test_a_table_without_neighbours_has_nothing_to_leave_out(toy: Accelerator) -> None:
    with pytest.raises(ValueError, match="nothing could be left out"):
        left_out_nodes(toy, table(toy, (64,)))
