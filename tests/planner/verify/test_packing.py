"""Packing of replicas into hosts: exact against brute force, and fast for many replicas."""

import random
import time
from collections import Counter

import pytest
from tests.parts import first_of

from fleetplan.planner.verify.packing import fewest_units, fits


def units_by_trying(sizes: list[int], unit: int) -> int:
    """Fewest units, by every assignment."""
    best = len(sizes)

    def place(position: int, free: list[int]) -> None:
        nonlocal best
        if position == len(sizes):
            best = min(best, len(free))
        elif len(free) <= best:
            size = sizes[position]
            for place_at in {space: n for n, space in enumerate(free) if space >= size}.values():
                place(position + 1, [s - size if n == place_at else s for n, s in enumerate(free)])
            place(position + 1, [*free, unit - size])

    place(0, [])
    return best


@pytest.mark.parametrize("seed", first_of(range(40), 15))
def test_the_fewest_units_are_those_of_trying_everything(seed: int) -> None:
    dice = random.Random(seed)
    unit = dice.choice((4, 6, 8, 10, 12))
    small = sorted((dice.randint(1, unit - 1) for _ in range(dice.randint(0, 8))), reverse=True)
    large = [dice.choice((unit, unit + 1, 2 * unit)) for _ in range(dice.randint(0, 2))]
    least = units_by_trying(small, unit) + sum(-(-size // unit) for size in large)
    assert fewest_units(Counter(small + large), unit) == least
    assert fits(Counter(small + large), unit, least)
    assert not fits(Counter(small + large), unit, least - 1)


@pytest.mark.parametrize(
    ("sizes", "unit", "units"),
    [
        # One to a host with two cards left over, whatever their sum says.
        ({6: 10**9}, 8, 10**9),
        ({3: 10**9}, 8, 5 * 10**8),
        ({12: 10**9}, 8, 2 * 10**9),
        ({1: 10**9}, 8, 125 * 10**6),
        # The largest first is a host too many: 1,000 hosts of 4, 3, 3 and 1,000 of 6, 2, 2.
        ({6: 1_000, 4: 1_000, 3: 2_000, 2: 2_000}, 10, 2_000),
    ],
)
def test_many_replicas_are_counted_and_not_tried_one_by_one(
    sizes: dict[int, int], unit: int, units: int
) -> None:
    started = time.process_time()
    assert fewest_units(Counter(sizes), unit) == units
    assert fits(Counter(sizes), unit, units)
    assert not fits(Counter(sizes), unit, units - 1)
    assert time.process_time() - started < 5
