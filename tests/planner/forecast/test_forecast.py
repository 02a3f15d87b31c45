"""`plan forecast` on known processes: estimates, and coverage of low and high."""

from __future__ import annotations

import math
import warnings
from datetime import date
from typing import Any

import numpy as np
import pytest
from tests.parts import first_of, first_parts
from tests.warm import ran

from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.planner.forecast import Forecast, History, forecast_demand
from fleetplan.planner.forecast.fit import PATHS, futures
from fleetplan.planner.forecast.history import Step

GROWTH_PER_QUARTER = 1.08
SEASON = 0.15
NOISE = 0.03


def process(step: Step, n_steps: int, seed: int, start: date) -> tuple[History, History]:
    """A history with growth, a season and noise, and the same with what came after it."""
    dice = np.random.default_rng(seed)
    per_year = 365.25 / 7 if step == "week" else 12.0
    ahead = round(per_year)
    k = np.arange(n_steps + ahead)
    log = math.log(GROWTH_PER_QUARTER) * k / (per_year / 4) + SEASON * np.sin(
        2 * np.pi * (k / per_year + 0.1)
    )
    values = 100 * np.exp(log + dice.normal(0, NOISE, k.size))
    whole = History("chat", "us", "requests", False, step, start, values, True)
    return History("chat", "us", "requests", False, step, start, values[:n_steps], True), whole


def actual(whole: History, period: str) -> float:
    dates = QUARTERS.dates(period)
    assert dates is not None
    starts = whole.starts(whole.values.size)
    return max(v for v, s in zip(whole.values, starts, strict=True) if dates[0] <= s < dates[1])


def forecast_of(history: History, periods: list[str]) -> Forecast:
    return forecast_demand([history], periods, QUARTERS, lambda _: None).forecasts[0]


@pytest.mark.parametrize(("step", "n_steps"), first_of((("month", 36), ("week", 156)), 1))
def test_growth_and_season_of_a_known_process_are_found(step: Step, n_steps: int) -> None:
    start = date(2024, 1, 1)
    history, whole = process(step, n_steps, 5, start)
    last = QUARTERS.period_of(history.starts(n_steps)[-1])
    found = forecast_of(history, ["2027Q1", "2027Q2", "2027Q3"])
    assert last == "2026Q4"
    assert found.seasonal
    assert found.growth_per_quarter == pytest.approx(GROWTH_PER_QUARTER - 1, abs=0.02)
    for each in found.estimates:
        assert each.mid == pytest.approx(actual(whole, each.period), rel=0.08)
        assert each.low < each.mid < each.high
    assert found.naive_error is not None
    assert found.error is not None
    assert found.error < 0.6 * found.naive_error, "the last quarter misses growth and season"


@pytest.mark.parametrize(("level", "n_steps"), [("lldtrend", 20), ("lltrend", 20), ("lltrend", 36)])
def test_futures_have_the_mean_and_the_variance_of_the_model(level: str, n_steps: int) -> None:
    # Every worker would wait for it at the start, and one needs it.
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415

    history, _ = process("month", n_steps, 5, date(2024, 1, 1))
    season: dict[str, Any] = {"freq_seasonal": [{"period": 12.0, "harmonics": 2}]} if n_steps > 24 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = UnobservedComponents(np.log(history.values), level=level, **season)
        result = model.fit(disp=False)
    drawn, expected = futures(result, 9), result.get_forecast(9)
    deviation = np.sqrt(expected.var_pred_mean)
    # Four standard errors of a mean, and of a deviation, of so many futures.
    assert np.all(np.abs(drawn.mean(axis=1) - expected.predicted_mean) < 4 * deviation / math.sqrt(PATHS))
    assert drawn.std(axis=1) == pytest.approx(deviation, rel=4 / math.sqrt(2 * PATHS))
    assert drawn.shape == (9, PATHS)


def test_the_library_says_nothing_beside_the_forecast() -> None:
    """The first fit of a process prints no warning of the library."""
    code = (
        "import numpy as np; from fleetplan.planner.forecast.fit import fitted; "
        "fitted(np.full(30, 5.0), 'month', 'constant', 1)"
    )
    done = ran(["-c", code], text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("n_seeds", first_parts((3, 40), 0, 1))
def test_four_in_five_actuals_lie_between_low_and_high(n_seeds: int) -> None:
    inside = []
    for seed in range(n_seeds):
        history, whole = process("month", 36, seed, date(2024, 1, 1))
        for each in forecast_of(history, ["2027Q1", "2027Q2"]).estimates:
            inside.append(each.low <= actual(whole, each.period) <= each.high)
    # Pairs depend on each other: 0.6 is three deviations of 40 draws at 80 %.
    assert 0.6 <= float(np.mean(inside)) <= 1.0


def test_low_and_high_hold_the_errors_of_the_past() -> None:
    history, _ = process("month", 36, 3, date(2024, 1, 1))
    values = history.values * np.where(np.arange(36) >= 30, 2.5, 1.0)
    jump = History("code", "us", "requests", False, "month", history.first, values, True)
    ran = forecast_demand([history, jump], ["2027Q1"], QUARTERS, lambda _: None)
    trials = [trial for each in ran.forecasts for trial in each.trials]
    assert ran.coverage == pytest.approx(np.mean([t.low <= t.actual <= t.high for t in trials]))
    for each in ran.forecasts:
        first = [abs(trial.mid / trial.actual - 1) for trial in each.trials if trial.lead == 1]
        assert each.error == pytest.approx(float(np.median(first)))
        logs = [abs(math.log(trial.mid / trial.actual)) for trial in each.trials if trial.lead == 1]
        half, estimate = float(np.percentile(logs, 80)), each.estimates[0]
        assert math.log(estimate.high / estimate.mid) >= half - 1e-3
        assert math.log(estimate.mid / estimate.low) >= half - 1e-3
    # The jump of one service is no news of another one.
    alone = forecast_of(history, ["2027Q1"])
    assert ran.forecasts[0].estimates == alone.estimates


def test_a_quarter_that_has_begun_holds_what_was_seen_of_it() -> None:
    history, _ = process("week", 150, 1, date(2024, 4, 1))
    values = history.values.copy()
    seen = [s for s in history.starts(150) if s >= date(2027, 1, 1)]
    assert 0 < len(seen) < 13
    values[-1] = 10 * values.max()
    found = forecast_of(
        History("c", None, "requests", False, "week", history.first, values, True), ["2027Q1"]
    )
    assert found.estimates[0].low >= 0.99 * values[-1]
    whole = forecast_of(history, ["2026Q4"]).estimates[0]
    assert whole.low == whole.high, "a quarter that is over is known"
