"""Forecasts of demand: history in, an estimate {low, mid, high} of every service, region and period out.

In: a table of what was asked for (`read_history`), or rates of monitoring (`history_of_rates`). Out:
forecasts with the error that they had on the history itself (`forecast_demand`), which `with_forecast` writes
into a fleet file.
"""

from fleetplan.planner.forecast.estimates import Estimate, Forecast, ForecastRun, forecast_demand
from fleetplan.planner.forecast.fleet_file import amount, with_forecast
from fleetplan.planner.forecast.history import History, history_of_rates, read_history

__all__ = [
    "Estimate",
    "Forecast",
    "ForecastRun",
    "History",
    "amount",
    "forecast_demand",
    "history_of_rates",
    "read_history",
    "with_forecast",
]
