"""Conversion of solver units to rates."""

from __future__ import annotations

import pytest

from fleetplan.planner.assemble.traffic import shared_out


def test_a_rate_unit_of_a_pair_hands_over_nothing() -> None:
    # After the loss of a region one of 12 million units read as a replica that carries nothing (seed 906676).
    assert shared_out(3.0, [1, 12_000_000, 24_000_000]) == pytest.approx([0.0, 1.0, 2.0], abs=0.0)


def test_nothing_is_shared_out_where_no_pair_has_units() -> None:
    assert shared_out(3.0, [0, 0]) == [0.0, 0.0]
