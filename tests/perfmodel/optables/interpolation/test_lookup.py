from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable, lookup_table
from fleetplan.perfmodel.optables.rows import measured_rows

SIZES = (1024, 2048, 8192)
SLOWNESS = 1.5


def gemm(m: list[int], n: int, k: int) -> dict[str, np.ndarray]:
    return {"m": np.array(m), "n": np.full(len(m), n), "k": np.full(len(m), k)}


def light(part: Accelerator, dims: dict[str, np.ndarray]) -> np.ndarray:
    return roofline_ms(part, OperatorKind.GEMM, "bf16", dims)


@pytest.fixture
def table(toy: Accelerator) -> LookupTable:
    """A GEMM that takes 1.5 times the speed of light at each measured shape."""
    shapes = np.array(list(itertools.product((1, 16, 256), SIZES, SIZES)))
    dims = {name: shapes[:, column] for column, name in enumerate("mnk")}
    return lookup_table(toy, measured_rows(OperatorKind.GEMM, "bf16", dims, SLOWNESS * light(toy, dims)))


def test_an_exact_hit_is_the_measurement(toy: Accelerator, table: LookupTable) -> None:
    dims = gemm([1, 16, 256], 2048, 8192)
    found = table.times(dims)
    assert found.latency_ms.tolist() == (SLOWNESS * light(toy, dims)).tolist()
    assert (found.provenance == Provenance.MEASURED).all()


def test_between_nodes_the_time_lies_between_theirs(table: LookupTable) -> None:
    found = table.times(gemm([16, 100, 256], 2048, 2048))
    assert found.latency_ms[0] < found.latency_ms[1] < found.latency_ms[2]
    assert found.provenance.tolist() == [Provenance.MEASURED, Provenance.INTERPOLATED, Provenance.MEASURED]


@pytest.mark.parametrize(
    ("n", "k", "label"),
    [
        (3000, 2048, Provenance.INTERPOLATED),
        (3000, 3000, Provenance.INTERPOLATED),
        (100_000, 2048, Provenance.EXTRAPOLATED),
        (512, 512, Provenance.EXTRAPOLATED),
    ],
)
def test_an_unmeasured_shape_has_the_utilisation_of_its_neighbours(
    toy: Accelerator, table: LookupTable, n: int, k: int, label: Provenance
) -> None:
    dims = gemm([1, 16, 256], n, k)
    found = table.times(dims)
    assert found.latency_ms == pytest.approx(SLOWNESS * light(toy, dims))
    assert (found.provenance == label).all()


def test_beyond_the_largest_m_the_utilisation_is_held(toy: Accelerator, table: LookupTable) -> None:
    dims = gemm([257, 100_000], 2048, 2048)
    found = table.times(dims)
    assert found.latency_ms == pytest.approx(SLOWNESS * light(toy, dims))
    assert (found.provenance == Provenance.EXTRAPOLATED).all()


def test_a_missing_corner_of_the_grid_does_not_matter(toy: Accelerator) -> None:
    shapes = np.array(
        [shape for shape in itertools.product((1, 256), SIZES, SIZES) if shape[1:] != (8192, 8192)]
    )
    dims = {name: shapes[:, column] for column, name in enumerate("mnk")}
    table = lookup_table(toy, measured_rows(OperatorKind.GEMM, "bf16", dims, SLOWNESS * light(toy, dims)))
    asked = gemm([1, 256], 8000, 8000)
    assert table.times(asked).latency_ms == pytest.approx(SLOWNESS * light(toy, asked))


def test_experts_borrow_from_the_most_alike_site(toy: Accelerator) -> None:
    def site(hidden: int, n_tokens: int) -> dict[str, int]:
        return {
            "tokens": n_tokens,
            "hidden": hidden,
            "intermediate": 1024,
            "top_k": 2,
            "experts": 16,
            "moe_tp": 1,
            "moe_ep": 1,
        }

    rows = [site(hidden, n_tokens) for hidden in (1024, 8192) for n_tokens in (1, 64, 1024)]
    dims = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    slowness = np.where(dims["hidden"] == 1024, 3.0, 1.5)
    light_ms = roofline_ms(toy, OperatorKind.MOE, "bf16", dims)
    table = lookup_table(toy, measured_rows(OperatorKind.MOE, "bf16", dims, slowness * light_ms))
    asked = {name: np.array([value]) for name, value in site(7168, 64).items()}
    found = table.times(asked)
    ratio = found.latency_ms / roofline_ms(toy, OperatorKind.MOE, "bf16", asked)
    assert 1.5 <= ratio[0] < 1.6
    assert found.provenance[0] == Provenance.INTERPOLATED


@pytest.mark.parametrize(("system", "most"), [("h100_sxm", 1.1), ("b200_sxm", 1.9)])
def test_experts_in_one_group_are_not_predicted_from_the_busiest_of_several(
    toy: Accelerator, system: str, most: float
) -> None:
    part = replace(toy, measured_system=system)
    # Experts in four groups hold as many as are asked for; those in one hold four times as many.
    groups = {"hidden": [64, 64, 128], "experts": [128, 128, 128], "moe_ep": [4, 1, 1]}
    columns = {"tokens": 1024, "intermediate": 64, "top_k": 8, "moe_tp": 1}
    dims = {name: np.array(values) for name, values in groups.items()}
    dims |= {name: np.full(3, value) for name, value in columns.items()}
    slowness = np.array([2.0, 1.0, 1.0])
    light_ms = roofline_ms(part, OperatorKind.MOE, "bf16", dims)
    table = lookup_table(part, measured_rows(OperatorKind.MOE, "bf16", dims, slowness * light_ms))
    asked = {name: values[:1].copy() for name, values in dims.items()}
    asked |= {"experts": np.array([32]), "moe_ep": np.array([1]), "top_k": np.array([4])}
    ratio = table.times(asked).latency_ms / roofline_ms(part, OperatorKind.MOE, "bf16", asked)
    assert 1.0 <= float(ratio[0]) < most
    assert (float(ratio[0]) > 1.3) == (system == "b200_sxm")
