"""Warnings on the first screen are short and refer to their full text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fleetplan.planner.commands.terminal import WARNING_LETTERS, say_warnings

LONG = f"MI300X: a factor of 1.14: {'median of published rows ' * 20}"


@pytest.mark.parametrize(("whole", "short"), [(True, False), (False, True)])
def test_a_long_warning_is_cut_on_the_first_screen_alone(whole: bool, short: bool) -> None:
    screen = io.StringIO()
    say_warnings(["price: no date", LONG.strip()], Console(file=screen, width=1000), whole=whole)
    first, second, *more = screen.getvalue().splitlines()
    assert first == "warning: price: no date"
    assert second.startswith("warning: MI300X: a factor of 1.14: median")
    assert second.endswith(" …") is short
    assert (len(second) <= len("warning: ") + WARNING_LETTERS) is short
    assert more == (["Warnings in full: `--full`, plan.json and report of `--out`"] if short else [])
