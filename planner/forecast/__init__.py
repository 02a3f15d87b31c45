"""Forecast demand: from its history to {low, mid, high} for every service, region and period.

Input: a table of past demand (`read_history`), or monitored rates (`history_of_rates`). Output: forecasts
with their backtest error (`forecast_demand`), which `with_forecast` writes into a fleet file.
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
