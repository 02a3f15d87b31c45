"""Tolerances of the verifier: rounding passes, real differences fail."""

from __future__ import annotations

import pytest

from fleetplan.planner.verify.rounding import RELATIVE_TOLERANCE, differs, exceeds


@pytest.mark.parametrize("size", [1e-7, 1e-3, 1.0, 1e9])
def test_one_per_cent_is_never_rounding(size: float) -> None:
    for sign in (1, -1):
        assert differs(sign * size, sign * size * 1.01)
        assert not differs(sign * size, sign * size * (1 + RELATIVE_TOLERANCE / 2))
    assert exceeds(size * 1.01, size)
    assert not exceeds(size * (1 + RELATIVE_TOLERANCE / 2), size)


def test_what_sums_that_cancel_leave_is_nothing() -> None:
    """A residue of -1.2e-15 USD/h of sums that cancel equals 0."""
    assert not differs(0.0, -1.2458831531136003e-15)
    assert not exceeds(1e-13, 0.0)
    assert differs(0.0, 1e-9)


def test_no_number_differs_from_all_and_exceeds_all() -> None:
    assert differs(float("nan"), 1.0)
    assert exceeds(float("nan"), 1.0)
