"""Iterations of prompts alone, against numbers of prompts that are drawn."""

import numpy as np
import pytest
from tests.parts import each_once
from tests.perfmodel.serving.test_ranks_in_step import APART, CHUNK, grids

from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths

MARGIN = 1e-3
PROMPT_TOKENS = (20, 283, 700, 1000, 1500, 5000)
MEANS = (1.05, 7.2, 2.0, 5.0, 1.2, 22.0, 60.0, 7.3)
"""Numbers of prompts of an iteration in the mean. With prompts of 283 tokens, of which 7.24 fit into one,
`make test` has those on both sides of it.
"""


def times(prompt_tokens: int) -> IterationTimes:
    return IterationTimes(grids(1), Lengths(prompt_tokens, 0.0, 64.0), CHUNK, APART)


@pytest.mark.parametrize(("prompt_tokens", "mean"), each_once(PROMPT_TOKENS, MEANS, pytest.mark.more))
def test_prompts_take_as_long_as_numbers_of_them_in_the_mean(prompt_tokens: int, mean: float) -> None:
    """Prompts take the mean time over Poisson-distributed numbers of them."""
    found, random = times(prompt_tokens), np.random.default_rng(3)
    # As many as a Poisson process brings, where it brings any.
    arrivals = mean
    for _ in range(100):
        arrivals = mean * -np.expm1(-arrivals)
    drawn = random.poisson(arrivals, 400_000).astype(np.float64)
    drawn = drawn[drawn > 0]
    assert drawn.mean() == pytest.approx(mean, rel=5e-3)
    expected = found.mixed_ms(drawn * prompt_tokens, np.zeros_like(drawn)).mean()
    one = np.ones(1)
    taken = (found.cycle_ms(mean * prompt_tokens * one, one) - found.decode_ms(one))[0]
    assert taken == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("running", [0.0, 1.0])
@pytest.mark.parametrize("prompt_tokens", [20, 283, 1000, 1500, 5000])
def test_more_prompts_together_take_longer_and_less_each(prompt_tokens: int, running: float) -> None:
    tokens = prompt_tokens * np.linspace(1.0, 80.0, 2_000)
    taken = times(prompt_tokens).cycle_ms(tokens, np.full_like(tokens, running))
    assert (np.diff(taken) >= -1e-9).all()
    each = taken / tokens
    assert (each <= (1 + MARGIN) * np.minimum.accumulate(each)).all()


def test_prompts_that_nobody_generates_between_share_the_last_iteration() -> None:
    """With no generation to wait for, new one-token requests fill a half-empty iteration."""
    found, none = times(100), np.zeros(1)
    full_ms = found.mixed_ms(np.array([float(CHUNK)]), none)
    tokens = np.array([CHUNK * 1.25])
    assert found.cycle_ms(tokens, none) == pytest.approx(1.25 * full_ms)
    # A prompt of its own that needs a second iteration has both.
    alone = times(CHUNK + 100).cycle_ms(np.array([CHUNK + 100.0]), none)
    assert alone == pytest.approx(times(CHUNK + 100).mixed_ms(np.array([CHUNK + 100.0]), none))
