"""Fit trend and season to a history by structural time series (statsmodels), and simulate futures."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.forecast.history import Step

Growth = Literal["constant", "changing"]
"""Whether the growth of the trend is constant or drifts; the level drifts in both."""

STEPS_PER_YEAR: Final[dict[Step, float]] = {"week": 365.25 / 7, "month": 12.0}

HARMONICS: Final = 2
"""Harmonics of the yearly season: a year and half a year."""

YEARS_FOR_A_SEASON: Final = 2
"""Years of history needed to separate a season from a trend."""

PATHS: Final = 1000
"""Number of simulated futures; the rank of their 10th percentile is then accurate to 0.01."""

_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class FittedForecast:
    """A fitted model's simulation of the steps after a history.

    Attributes
    ----------
    paths : FloatArray
        Values of each future, shape (n_ahead, PATHS).
    growth_per_step : float
        Ratio of a step to the one before, by the trend at the end, without the season.
    seasonal : bool
        Whether a yearly season was fitted.
    """

    paths: NDArray[np.float64]
    growth_per_step: float
    seasonal: bool


def fitted(values: NDArray[np.float64], step: Step, growth: Growth, n_ahead: int) -> FittedForecast:
    """Fit trend and season to the logarithm of a history, and simulate futures.

    Parameters
    ----------
    values : FloatArray
        Demand of each step, above 0; NaN if unknown. Shape (n_steps,).
    step : {"week", "month"}
        Length of a step.
    growth : {"constant", "changing"}
        Kind of trend: a random walk with constant drift, or with a drift that is a random walk.
    n_ahead : int
        Number of steps to simulate after the last one.

    Raises
    ------
    InputError
        The library is not installed.
    """
    seasonal = values.size >= math.floor(YEARS_FOR_A_SEASON * STEPS_PER_YEAR[step])
    season: dict[str, Any] = {}
    if seasonal:
        season["freq_seasonal"] = [{"period": STEPS_PER_YEAR[step], "harmonics": HARMONICS}]
        season["stochastic_freq_seasonal"] = [False]
    level = "lldtrend" if growth == "constant" else "lltrend"
    # Import the library before ignoring warnings, because its import enables them again.
    model = _models()
    with warnings.catch_warnings():
        # Convergence warnings: a variance at its bound of zero, which is a straight trend.
        warnings.simplefilter("ignore")
        result = model(np.log(values), level=level, **season).fit(disp=False)
    paths = np.exp(futures(result, n_ahead))
    return FittedForecast(paths, float(np.exp(result.trend["filtered"][-1])), seasonal)


def futures(result: Any, n_ahead: int) -> NDArray[np.float64]:
    """Simulate the steps after a history from a fitted model, all futures at once.

    `simulate` of the library draws futures one by one, which takes longer than the fit.

    Parameters
    ----------
    result : UnobservedComponentsResults
        Fitted model, y = Z a + e, a' = T a + R u; its matrices are equal in every step.
    n_ahead : int
        Number of steps to simulate after the last one.

    Returns
    -------
    FloatArray
        Logarithms of demand, shape (n_ahead, PATHS).
    """
    dice = np.random.default_rng(_SEED)
    model = result.model.ssm
    design, transition, selection = model["design"], model["transition"], model["selection"]
    shocks = selection @ _root(model["state_cov"])
    noise = math.sqrt(model["obs_cov", 0, 0])
    state = result.predicted_state[:, -1, None] + _normal(dice, _root(result.predicted_state_cov[..., -1]))
    drawn = np.empty((n_ahead, PATHS))
    for step in range(n_ahead):
        drawn[step] = (design @ state)[0] + noise * dice.standard_normal(PATHS)
        state = transition @ state + _normal(dice, shocks)
    return drawn


def _normal(dice: np.random.Generator, root: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a random vector with covariance `root @ root.T` for each future."""
    drawn: NDArray[np.float64] = root @ dice.standard_normal((root.shape[1], PATHS))
    return drawn


def _root(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a square root of a covariance, which is singular for a constant drift."""
    values, vectors = np.linalg.eigh(covariance)
    root: NDArray[np.float64] = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root


def _models() -> Any:
    try:
        from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415
    except ImportError as error:
        message = "forecasts need statsmodels, which is not installed"
        hint = "pip install 'fleetplan[forecast]'"
        raise InputError([Issue("plan forecast", 0, 0, "", message, hint)]) from error
    return UnobservedComponents
