"""Fit of a calibration: one ratio a phase, from few measurements that are not free of errors.

Every usable figure is one equation. The logarithm of measured over predicted time is that of decode, plus the
figure's share of prefill times that of prefill over decode; the share is found by predicting once more with
slower prompts. TPOT of a closed loop holds both phases, TPOT of a static batch decode alone; TTFT counts
where no request waits for another, because a benchmark that releases its requests together measures their
queue.

The equations are solved by least squares with Huber's weights, so that one odd row does not decide. Both
unknowns are expected near zero, which shrinks them: by half with one row, by a quarter with three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator.phase_ratios import PhaseRatios
from fleetplan.perfmodel.operators import FloatArray

ROW_SPREAD: Final = 0.10
"""Spread of the logarithm of measured over predicted time among the rows of one scope. Source: 1,038
published dense closed-loop rows of aiconfigurator-core 0.12.0 (silicon_sample.csv), median absolute deviation
times 1.48 within 12 scopes: 0.10."""

RATIO_SPREAD: Final = 0.10
"""Spread of the logarithm of the ratios, about 0, among scopes. Source: the same rows. Of 0.1, 0.15 and 0.2,
0.1 predicted best the rows that were not among three random ones of each scope: 5.5 % at the median, where it
is 7.6 % without calibration."""

_HUBER_LIMIT: Final = 1.0
"""Residual, in units of `ROW_SPREAD`, beyond which a figure counts linearly and not by its square."""

_ROUNDS: Final = 20
"""Rounds of reweighting; the weights converge after about ten."""


@dataclass(frozen=True, slots=True)
class FittedRatios:
    """Ratios of both phases, and how much evidence each rests on.

    Attributes
    ----------
    ratios : PhaseRatios
        Measured over predicted time.
    prefill_weight, decode_weight : float
        Sum of the shares that the figures have of each phase.
    """

    ratios: PhaseRatios
    prefill_weight: float
    decode_weight: float


def fit_ratios(log_ratio: FloatArray, prefill_share: FloatArray) -> FittedRatios:
    """Fit the ratios of one scope.

    Parameters
    ----------
    log_ratio : FloatArray
        Logarithm of measured over predicted time, shape (n_figures,).
    prefill_share : FloatArray
        Part of each figure that grows with the time of prompts, 0 to 1, same shape.

    Returns
    -------
    FittedRatios
        Ratios, 1 without figures.
    """
    if not log_ratio.size:
        return FittedRatios(PhaseRatios(1.0, 1.0), 0.0, 0.0)
    shares = np.stack([np.ones_like(prefill_share), prefill_share], axis=1)
    prior = np.eye(2) / RATIO_SPREAD**2
    weights: NDArray[np.float64] = np.ones_like(log_ratio)
    found: FloatArray = np.zeros(2)
    for _ in range(_ROUNDS):
        weighted = shares * weights[:, None] / ROW_SPREAD**2
        found = np.asarray(np.linalg.solve(weighted.T @ shares + prior, weighted.T @ log_ratio), np.float64)
        residual = np.abs(log_ratio - shares @ found) / ROW_SPREAD
        weights = np.minimum(1.0, _HUBER_LIMIT / np.maximum(residual, _HUBER_LIMIT))
    decode, prefill = float(np.exp(found[0])), float(np.exp(found.sum()))
    prefill_weight = float(prefill_share.sum())
    return FittedRatios(PhaseRatios(prefill, decode), prefill_weight, log_ratio.size - prefill_weight)
