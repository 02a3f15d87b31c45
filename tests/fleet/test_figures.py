"""Amounts, their differences and ranges as people read them."""

from __future__ import annotations

from fleetplan.fleet.figures import money_range, signed_money


def test_a_range_of_one_amount_is_written_once() -> None:
    """A range whose ends print alike is one amount."""
    assert money_range(350.41, 350.42) == "$350.4"
    assert money_range(350.41, 351.0) == "$350.4 to $351"
    assert money_range(0.5, 0.9, signed=True) == "+$0.5 to +$0.9"
    assert money_range(-1e-9, 1e-9, signed=True) == "$0"
    assert money_range(-2000.0, 1.0, signed=True) == "-$2 k to +$1"


def test_differences_have_a_sign_but_nothing_has_none() -> None:
    assert [signed_money(usd) for usd in (412.0, -8610.0, 0.0, -0.001)] == ["+$412", "-$8.61 k", "$0", "$0"]
