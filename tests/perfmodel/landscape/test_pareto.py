import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.perfmodel.landscape import pareto_mask


def brute_force(points: np.ndarray) -> np.ndarray:
    nowhere_larger = (points[None] <= points[:, None]).all(axis=2)
    somewhere_smaller = (points[None] < points[:, None]).any(axis=2)
    return ~(nowhere_larger & somewhere_smaller).any(axis=1)


@examples(200, 20, 50)
@given(
    objectives=st.integers(1, 5),
    count=st.integers(0, 250),
    levels=st.sampled_from([2, 5, 1000]),
    infinite=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_frontier_is_that_of_every_pair_compared(
    objectives: int, count: int, levels: int, infinite: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    points = random.integers(-levels, levels, (count, objectives)).astype(np.float64)
    if infinite and count:
        points[random.random(points.shape) < 0.05] = np.inf
    assert pareto_mask(list(points.T)).tolist() == brute_force(points).tolist()


def test_large_sets_with_a_curved_frontier() -> None:
    random = np.random.default_rng(3)
    first = random.random(3000)
    points = np.stack([first, 1 / (0.1 + first) + random.random(3000), random.random(3000)], axis=1)
    mask = pareto_mask(list(points.T))
    assert mask.tolist() == brute_force(points).tolist()
    assert 10 < mask.sum() < 3000


@examples(100, 15, 40)
@given(count=st.integers(1, 300), levels=st.sampled_from([3, 50]), seed=st.integers(0, 2**32 - 1))
def test_an_objective_that_follows_another_decides_nothing(count: int, levels: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.integers(1, levels, (count, 3)).astype(np.float64)
    # Steps and a strict function of the first objective, and one that is a function of the second.
    followers = [points[:, 0] // 2, np.exp(points[:, 0] / 9), -1 / points[:, 1], np.full(count, np.inf)]
    whole = np.column_stack([points, *followers])
    assert pareto_mask(list(whole.T)).tolist() == brute_force(whole).tolist()
    assert pareto_mask(list(points.T)).tolist() == brute_force(whole).tolist()


def test_equal_points_all_stay_and_nothing_compares_with_nan() -> None:
    twice = np.array([1.0, 1.0, 2.0])
    assert pareto_mask([twice, twice]).tolist() == [True, True, False]
    assert pareto_mask([np.ones(3), np.ones(3)]).tolist() == [True, True, True]
    with pytest.raises(ValueError, match="NaN"):
        pareto_mask([np.array([1.0, np.nan])])
