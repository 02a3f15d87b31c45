"""Write plan.json and its CSV tables, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import BaseModel

from fleetplan.fleet.files import write_whole, written_together
from fleetplan.planner.cells import as_text
from fleetplan.planner.plan import (
    PLAN_FILE,
    Commitment,
    Cost,
    DemandScenarioCost,
    Infeasible,
    KvFlow,
    OfflineWork,
    Placement,
    Plan,
    PoolUse,
    Purchase,
    RemainingValue,
    Retired,
    ScenarioPurchase,
    Shortage,
    SupplyOption,
    SurvivingPlacement,
    Transition,
    Unmet,
    WrongForecast,
    currency_of,
    in_currency,
    rate_row,
    titled,
)
from fleetplan.planner.plan.inputs import CostLine, DemandInput, PriceInput


def write_plan(outcome: Plan | Infeasible, folder: Path) -> list[Path]:
    """Write plan.json and the tables of a plan.

    Parameters
    ----------
    outcome : Plan or Infeasible
        Plan, or proof of infeasibility.
    folder : Path
        Output folder; created if it does not exist.

    Returns
    -------
    list[Path]
        Paths of the written files: all of them or none.
    """
    texts = {PLAN_FILE: outcome.model_dump_json(indent=2) + "\n"}
    if isinstance(outcome, Plan):
        tables = _shown_tables(outcome)
    else:
        tables = {"shortages": table(Shortage, outcome.shortages)}
    texts |= {f"{name}.csv": rows.to_csv(index=False) for name, rows in tables.items()}
    with written_together(folder) as parts:
        for name, text in texts.items():
            write_whole(parts / name, text)
    return [folder / name for name in texts]


def _shown_tables(plan: Plan) -> dict[str, pd.DataFrame]:
    """Return the tables in the currency of the report, which replaces USD in column names.

    The exchange rate is a row of the prices, which stay as in the fleet file.
    """
    currency = currency_of(plan)
    if currency is None:
        return plan_tables(plan)
    tables = plan_tables(in_currency(plan, currency))
    for name, rows in tables.items():
        tables[name] = rows.rename(columns=lambda title: titled(title, currency.code))
    rate = pd.DataFrame([rate_row(currency).model_dump()])
    tables["prices"] = pd.concat([tables["prices"], rate], ignore_index=True)
    return tables


def plan_tables(plan: Plan) -> dict[str, pd.DataFrame]:
    """Return every list of a plan as a table by file name; empty ones keep their columns."""
    tables = {
        "placements": table(Placement, plan.placements),
        "purchases": table(Purchase, plan.purchases),
        "pools": table(PoolUse, plan.pools),
        "costs": table(Cost, plan.costs),
        "retirements": table(Retired, plan.retirements),
        "commitments": table(Commitment, plan.commitments),
        "remaining_values": table(RemainingValue, plan.remaining_values),
        "supply_options": table(SupplyOption, plan.supply_options),
        "unmet": table(Unmet, plan.unmet),
        "transitions": table(Transition, plan.transitions),
        "demand_scenarios": table(DemandScenarioCost, plan.demand_scenarios),
        "scenario_purchases": table(ScenarioPurchase, plan.scenario_purchases),
        "wrong_forecasts": table(WrongForecast, plan.wrong_forecasts),
        "tides": table(Transition, plan.tides),
        "offline_work": table(OfflineWork, plan.offline_work),
        "region_losses": table(SurvivingPlacement, plan.region_losses),
        "kv_flows": table(KvFlow, plan.kv_flows),
    }
    if plan.inputs is not None:
        tables["bill"] = table(CostLine, plan.inputs.cost_lines)
        tables["prices"] = table(PriceInput, plan.inputs.prices)
        tables["demand"] = table(DemandInput, plan.inputs.demand)
    return tables


def table(kind: type[BaseModel], rows: Sequence[BaseModel]) -> pd.DataFrame:
    """Return records of a type as a table, with nested mappings as columns `name.key`."""
    flat = []
    for row in rows:
        cells: dict[str, object] = {}
        for name, value in row.model_dump().items():
            cells.update(_cells(name, value))
        flat.append(cells)
    return pd.DataFrame(flat) if flat else pd.DataFrame(columns=list(kind.model_fields))


def _cells(name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {name: as_text(value)}
    return {
        place: cell for key, inner in value.items() for place, cell in _cells(f"{name}.{key}", inner).items()
    }
