"""Iterations of prompts alone, against numbers of prompts that are drawn."""

import numpy as np
import pytest
from tests.perfmodel.serving.test_ranks_in_step import APART, CHUNK, grids

from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths


def times(prompt_tokens: int) -> IterationTimes:
    return IterationTimes(grids(1), Lengths(prompt_tokens, 0.0, 64.0), CHUNK, APART)


@pytest.mark.parametrize(("prompt_tokens", "off"), [(20, 0.01), (283, 0.02), (700, 0.07), (1000, 0.06)])
@pytest.mark.parametrize("mean", [1.2, 2.0, 5.0, 7.2, 7.3, 22.0, 60.0])
def test_short_prompts_take_as_long_as_numbers_of_them_in_the_mean(
    prompt_tokens: int, off: float, mean: float
) -> None:
    """Where their mean is a token more than iterations hold they took another whole one."""
    found, none = times(prompt_tokens), np.zeros(20_000)
    drawn = 1.0 + np.random.default_rng(3).poisson(mean - 1.0, none.size)
    expected = found.mixed_ms(drawn * prompt_tokens, none).mean()
    taken = found.cycle_ms(np.array([mean * prompt_tokens]), np.zeros(1))[0]
    assert taken == pytest.approx(expected, rel=off)


@pytest.mark.parametrize(("prompt_tokens", "margin"), [(20, 1e-9), (283, 1e-9), (1000, 0.04)])
def test_more_prompts_together_take_longer_and_less_each(prompt_tokens: int, margin: float) -> None:
    """Of those of which two fill an iteration a few together take longer each than one alone."""
    tokens = prompt_tokens * np.linspace(1.0, 80.0, 2_000)
    taken = times(prompt_tokens).cycle_ms(tokens, np.zeros_like(tokens))
    assert (np.diff(taken) >= -1e-9).all()
    each = taken / tokens
    assert (each <= (1 + margin) * np.minimum.accumulate(each)).all()
