"""Estimate the busiest step of each period from simulated futures, with the error of a backtest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory.periods import DEFAULT_PERIOD, Calendar
from fleetplan.planner.forecast.fit import Growth, fitted
from fleetplan.planner.forecast.history import History, Step

STEPS_PER_QUARTER: Final[dict[Step, int]] = {"week": 13, "month": 3}

FEWEST_STEPS: Final[dict[Step, int]] = {"week": 16, "month": 12}
"""Minimum length of a history. [steps]"""

MOST_ORIGINS: Final = 4
"""Number of past quarters from which the backtest forecasts, the most recent ones."""

LOW_PERCENTILE: Final = 10.0
HIGH_PERCENTILE: Final = 90.0
"""Percentiles of low and high; probabilities of 0.3, 0.4 and 0.3 suit them (Keefer and Bodily 1983)."""

SIGNIFICANT_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """Demand of a period in its busiest step. [requests/s or requests/day]"""

    period: str
    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True)
class BacktestForecast:
    """One forecast of the backtest: a known quarter from the data before it.

    Attributes
    ----------
    lead : int
        Quarters ahead, from 1.
    actual, low, mid, high : float
        Busiest step of that quarter, actual and forecast.
    naive : float
        Busiest step of the last quarter before the origin: no growth, no season.
    """

    lead: int
    actual: float
    low: float
    mid: float
    high: float
    naive: float

    @property
    def error(self) -> float:
        """Forecast divided by actual, minus 1."""
        return self.mid / self.actual - 1

    @property
    def log_error(self) -> float:
        """Absolute logarithm of forecast over actual."""
        return abs(math.log(self.mid / self.actual))


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimates of one service and region, and their backtest.

    Attributes
    ----------
    history : History
        History behind the forecast.
    estimates : tuple[Estimate, ...]
        Estimates, one per period.
    growth : {"constant", "changing"}
        The trend with the lowest backtest error.
    growth_per_quarter : float
        Growth of the trend without the season: 0.1 is 10 %.
    seasonal : bool
        Whether a yearly season was fitted.
    trials : tuple[BacktestForecast, ...]
        Backtest with the model's own low and high; empty if the history is too short.
    """

    history: History
    estimates: tuple[Estimate, ...]
    growth: Growth
    growth_per_quarter: float
    seasonal: bool
    trials: tuple[BacktestForecast, ...]

    @property
    def error(self) -> float | None:
        """Median absolute error one quarter ahead, as a share; None without a backtest."""
        return _median([abs(each.error) for each in self.trials if each.lead == 1])

    @property
    def naive_error(self) -> float | None:
        """The same error if the last quarter is repeated."""
        return _median([abs(each.naive / each.actual - 1) for each in self.trials if each.lead == 1])


@dataclass(frozen=True, slots=True)
class ForecastRun:
    """All forecasts of a fleet.

    Attributes
    ----------
    forecasts : tuple[Forecast, ...]
        Forecasts, one per service and region.
    coverage : float or None
        Share of backtest values between the model's own low and high; None without a backtest.
    """

    forecasts: tuple[Forecast, ...]
    coverage: float | None


def forecast_demand(
    histories: Sequence[History], periods: Sequence[str], calendar: Calendar, say: Callable[[str], None]
) -> ForecastRun:
    """Return the forecast of every history.

    Parameters
    ----------
    histories : Sequence[History]
        Histories by service and region.
    periods : Sequence[str]
        Periods of the fleet, or the single unnamed period: the next quarter.
    calendar : Calendar
        Calendar of the periods.
    say : callable
        Receives progress messages.

    Raises
    ------
    InputError
        A history is too short, or the library is missing.
    """
    issues = [
        Issue(
            each.label,
            0,
            0,
            "",
            f"has {counted(each.values.size, each.step)}",
            f"needs {FEWEST_STEPS[each.step]}",
        )
        for each in histories
        if each.values.size < FEWEST_STEPS[each.step]
    ]
    if issues:
        raise InputError(issues)
    found = []
    for done, history in enumerate(histories):
        say(f"forecast {done + 1} of {len(histories)}: {history.label}")
        found.append(_forecast(history, periods, calendar))
    trials = [trial for each in found for trial in each.trials]
    covered = [each.low <= each.actual <= each.high for each in trials]
    return ForecastRun(tuple(found), sum(covered) / len(covered) if covered else None)


def _forecast(history: History, periods: Sequence[str], calendar: Calendar) -> Forecast:
    kinds: tuple[Growth, ...] = get_args(Growth)
    n_leads = max(1, len(periods) // calendar.per_quarter)
    tried = {kind: tuple(_backtest(history, kind, n_leads)) for kind in kinds}
    # For ties and histories too short for a backtest, choose the simpler model.
    best = min(kinds, key=lambda kind: sum(abs(math.log(each.mid / each.actual)) for each in tried[kind]))
    ranges = [_steps_of(history, period, calendar) for period in periods]
    n_known = history.values.size
    n_ahead = max(1, max(stop for _, stop in ranges) - n_known)
    model = fitted(history.values, history.step, best, n_ahead)
    known = np.repeat(history.values[:, None], model.paths.shape[1], axis=1)
    everything = np.concatenate([known, model.paths])
    estimates = []
    for period, (start, stop) in zip(periods, ranges, strict=True):
        seen = _busiest(history.values[start:stop]) if start < n_known else 0.0
        found = _estimate(period, everything[start:stop])
        if stop > n_known:
            found = _widened(found, _past_error(tried[best], stop - n_known, history.step), seen)
        estimates.append(_rounded(found))
    growth = model.growth_per_step ** STEPS_PER_QUARTER[history.step] - 1
    return Forecast(history, tuple(estimates), best, growth, model.seasonal, tried[best])


def _backtest(history: History, kind: Growth, n_leads: int) -> Iterator[BacktestForecast]:
    """Yield forecasts of known quarters, each from the data before it (rolling origin)."""
    quarter = STEPS_PER_QUARTER[history.step]
    for back in range(1, MOST_ORIGINS + 1):
        origin = history.values.size - back * quarter
        if origin < max(FEWEST_STEPS[history.step], quarter):
            return
        before = history.values[:origin]
        paths = fitted(before, history.step, kind, back * quarter).paths
        for lead in range(1, min(back, n_leads) + 1):
            part = slice((lead - 1) * quarter, lead * quarter)
            actual = _busiest(history.values[origin:][part])
            naive = _busiest(before[-quarter:])
            if math.isfinite(actual) and math.isfinite(naive):
                expected = _estimate("", paths[part])
                yield BacktestForecast(lead, actual, expected.low, expected.mid, expected.high, naive)


def _busiest(values: NDArray[np.float64]) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else math.nan


def _steps_of(history: History, period: str, calendar: Calendar) -> tuple[int, int]:
    """Return the first step of a period and the one after its last, from the start of the history.

    Raises
    ------
    InputError
        The period has no dates, or begins before the history.
    """
    n_known = history.values.size
    if period == DEFAULT_PERIOD:
        return n_known, n_known + STEPS_PER_QUARTER[history.step]
    dates = calendar.dates(period)
    if dates is None:
        message = f"the period {period!r} has no dates"
        raise InputError(
            [
                Issue(
                    "horizon.periods", 0, 0, "", message, "name quarters or months, such as 2027Q1 or 2027-01"
                )
            ]
        )
    longest = (dates[1] - history.first) // timedelta(days=7) + 2
    starts: list[date] = history.starts(max(longest, 1))
    inside = [k for k, start in enumerate(starts) if dates[0] <= start < dates[1]]
    if not inside or (starts[0] > dates[0] and inside[0] == 0 and inside[-1] < n_known - 1):
        message = f"{history.label}: the history begins in or after {period}"
        raise InputError([Issue("horizon.periods", 0, 0, "", message, "plan periods after the history")])
    return inside[0], inside[-1] + 1


def _estimate(period: str, steps: NDArray[np.float64]) -> Estimate:
    busiest = np.nanmax(steps, axis=0)
    low, mid, high = np.percentile(busiest, [LOW_PERCENTILE, 50.0, HIGH_PERCENTILE])
    return Estimate(period, float(low), float(mid), float(high))


def _past_error(trials: Sequence[BacktestForecast], steps_ahead: int, step: Step) -> float:
    """Return the log error that four in five trials up to this horizon stay below, or 0 without trials."""
    quarters = math.ceil(steps_ahead / STEPS_PER_QUARTER[step])
    errors = [each.log_error for each in trials if each.lead <= quarters]
    return float(np.percentile(errors, HIGH_PERCENTILE - LOW_PERCENTILE)) if errors else 0.0


def _widened(each: Estimate, log_error: float, seen: float) -> Estimate:
    """Widen low and high to the past error, and keep low above demand that has already occurred."""
    factor = math.exp(log_error)
    low, high = min(each.low, each.mid / factor), max(each.high, each.mid * factor)
    return Estimate(each.period, min(max(low, seen), each.mid), each.mid, high)


def _rounded(each: Estimate) -> Estimate:
    figures = (float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in (each.low, each.mid, each.high))
    return Estimate(each.period, *figures)


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
