from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.perfmodel.operators import IntArray, Provenance
from fleetplan.perfmodel.optables.interpolation import surfaces
from fleetplan.perfmodel.optables.interpolation.surfaces import (
    Axis,
    SiteSurfaces,
    Surfaces,
    build_surfaces,
    evaluate,
    locate,
)

FIRST = Axis(np.array([1.0, 2.0, 4.0]), 1.0)
SECOND = Axis(np.array([16.0, 64.0, 256.0, 1024.0]), 1.5)
LIGHT = np.outer(FIRST.nodes, SECOND.nodes)[None] / 1e3
LABEL = np.zeros(LIGHT.shape, dtype=np.uint8)

times = st.lists(
    st.one_of(st.floats(0.01, 10.0), st.just(float("nan"))), min_size=LIGHT.size, max_size=LIGHT.size
).filter(lambda values: not all(np.isnan(values)))


@given(times, st.lists(st.tuples(st.floats(0.5, 6.0), st.floats(8.0, 2000.0)), min_size=2, max_size=8))
@examples(100, 25, 100)
def test_surfaces_have_no_holes_and_never_fall(
    values: list[float], points: list[tuple[float, float]]
) -> None:
    surfaces = build_surfaces((FIRST, SECOND), np.array(values).reshape(LIGHT.shape), LABEL, LIGHT)
    assert not np.isnan(surfaces.latency_ms).any()
    assert (np.diff(surfaces.latency_ms, axis=1) >= 0).all()
    assert (np.diff(surfaces.latency_ms, axis=2) >= 0).all()
    across = np.sort(np.array([point[0] for point in points]))
    along = np.full(across.shape, points[0][1])
    site = np.zeros(across.shape, dtype=np.int64)
    found, _ = evaluate(surfaces, site, locate(FIRST, across), locate(SECOND, along))
    assert (np.diff(found) >= -1e-12 * found[1:]).all()


def test_measured_nodes_that_grow_are_returned_as_they_are() -> None:
    measured = LIGHT * 1.7
    surfaces = build_surfaces((FIRST, SECOND), measured, LABEL, LIGHT)
    assert (surfaces.latency_ms == measured).all()
    assert (surfaces.provenance == Provenance.MEASURED).all()


def test_an_outlier_is_moved_and_no_longer_counts_as_measured() -> None:
    measured = LIGHT.copy()
    measured[0, 1, 1] *= 10
    surfaces = build_surfaces((FIRST, SECOND), measured, LABEL, LIGHT)
    assert surfaces.provenance[0, 1, 1] == Provenance.INTERPOLATED
    assert surfaces.latency_ms[0, 1, 1] < measured[0, 1, 1]
    assert surfaces.latency_ms[0, 0, 0] == measured[0, 0, 0]


def test_holes_between_are_interpolated_and_those_beyond_hold_the_utilisation() -> None:
    measured = LIGHT * 3.0
    measured[0, :, 1] = np.nan
    measured[0, 2, 3] = np.nan
    surfaces = build_surfaces((FIRST, SECOND), measured, LABEL, LIGHT)
    assert (surfaces.provenance[0, :, 1] == Provenance.INTERPOLATED).all()
    assert surfaces.provenance[0, 2, 3] == Provenance.EXTRAPOLATED
    assert surfaces.latency_ms[0, 2, 3] == pytest.approx(LIGHT[0, 2, 3] * 3.0)


def test_points_between_nodes_and_outside_them_say_so() -> None:
    surfaces = build_surfaces((FIRST, SECOND), LIGHT, LABEL, LIGHT)
    site = np.zeros(3, dtype=np.int64)
    first, second = np.array([2.0, 3.0, 8.0]), np.array([64.0, 64.0, 64.0])
    found, label = evaluate(surfaces, site, locate(FIRST, first), locate(SECOND, second))
    assert label.tolist() == [Provenance.MEASURED, Provenance.INTERPOLATED, Provenance.EXTRAPOLATED]
    assert found[:2] == pytest.approx([LIGHT[0, 1, 1], (LIGHT[0, 1, 1] + LIGHT[0, 2, 1]) / 2])


def test_each_site_is_built_once_and_only_when_it_is_asked_for() -> None:
    rng = np.random.default_rng(1)
    measured = LIGHT * rng.uniform(0.5, 5.0, (5, *LIGHT.shape[1:]))
    measured[rng.uniform(size=measured.shape) < 0.2] = np.nan
    light, labels = np.repeat(LIGHT, 5, axis=0), np.repeat(LABEL, 5, axis=0)
    whole = build_surfaces((FIRST, SECOND), measured, labels, light)
    built: list[list[int]] = []

    def build(rows: IntArray) -> Surfaces:
        built.append(rows.tolist())
        return build_surfaces((FIRST, SECOND), measured[rows], labels[rows], light[rows])

    surfaces = SiteSurfaces((FIRST, SECOND), 5, build)
    for asked in ([3, 1, 3], [1], [1, 4]):
        held = surfaces.holding(np.array(asked))
        assert (held.latency_ms[asked] == whole.latency_ms[asked]).all()
        assert (held.provenance[asked] == whole.provenance[asked]).all()
    assert built == [[1, 3], [4]]
    part = surfaces.part(np.array([False, True, True, False, False]))
    assert (part.holding(np.array([1])).latency_ms[1] == whole.latency_ms[2]).all()
    assert built == [[1, 3], [4], [2]]


def test_few_lines_are_fitted_at_once_to_the_same_numbers() -> None:
    random = np.random.default_rng(0)
    for shape in ((1, 2), (3, 17), (20, 40)):
        lines = random.normal(size=shape)
        total = np.concatenate([np.zeros((len(lines), 1)), np.cumsum(lines, axis=-1)], axis=-1)
        assert np.array_equal(surfaces._of_few(total), surfaces._of_many(total))
