"""Results of a sweep: one file per point, named by the hash of its inputs, and a long table of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Final

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from fleetplan.fleet.files import cache_key, write_whole
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.packages import installed_version, source_sha256
from fleetplan.planner.plan import Plan, most_at_once
from fleetplan.planner.questions.sweep.axes import SweepAxis, SweepPoint
from fleetplan.planner.search import SearchLimits

_DEPENDENCIES: Final = ("fleetplan", "ortools", "numpy", "scipy", "pandas", "aiconfigurator-core")
COLUMNS: Final = ("status", "metric", "unit", "value")
"""Columns of the table after those of the axes."""


class Figure(BaseModel):
    """One figure of a point."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    unit: str
    value: float


class PointResult(BaseModel):
    """Result of a point, independent of where and how fast it was solved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    point: tuple[tuple[str, str], ...]
    status: str
    """optimal, within_gap, limit, infeasible, or no_plan within the time"""
    figures: tuple[Figure, ...]


def figures_of(plan: Plan) -> tuple[Figure, ...]:
    """Return the figures by which a table compares plans."""
    bought: Counter[str] = Counter()
    used = most_at_once(plan.placements, lambda row: row.hardware)
    for purchase in plan.purchases:
        bought[purchase.hardware] += purchase.accelerators
    rows = [
        ("tco", "USD", plan.objective_usd),
        ("tco bound", "USD", plan.bound_usd),
        ("gap", "ratio", plan.gap),
        ("capex", "USD", sum(row.capex_usd for row in plan.purchases)),
        ("unmet", "requests/s", sum(row.requests_per_s for row in plan.unmet)),
    ]
    if plan.usd_per_million_tokens is not None:
        rows.append(("tco per million tokens", "USD", plan.usd_per_million_tokens))
    if plan.carbon_kg is not None:
        rows.append(("carbon", "kg CO2", plan.carbon_kg))
    rows += [(f"cost: {kind}", "USD", usd) for kind, usd in sorted(plan.cost_breakdown.items())]
    rows += [(f"in use: {name}", "accelerators", used[name]) for name in sorted(used)]
    rows += [(f"bought and rented: {name}", "accelerators", bought[name]) for name in sorted(bought)]
    return tuple(Figure(metric=metric, unit=unit, value=float(value)) for metric, unit, value in rows)


def point_key(fleet: Fleet, point: SweepPoint, limits: SearchLimits) -> str:
    """Return the hash of everything that the result of a point depends on."""
    parts = [f"{name} {installed_version(name)}" for name in _DEPENDENCIES]
    parts.append(source_sha256("fleet", "perfmodel", "planner", "scenarios"))
    parts += [f"{name} {digest}" for name, digest in sorted(fleet.input_hashes.items())]
    parts += [*fleet.scenarios, "", *fleet.assignments, "", repr(point.values), repr(limits)]
    return cache_key(parts)


def result_file(folder: Path, key: str) -> Path:
    """Return the path of a point's result."""
    return folder / "points" / f"{key}.json"


def read_result(path: Path) -> PointResult | None:
    """Return a stored result, or None if it is missing or unreadable."""
    try:
        return PointResult.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


def write_result(path: Path, result: PointResult) -> None:
    """Write a result in full or not at all."""
    write_whole(path, result.model_dump_json(indent=1) + "\n")


def sweep_table(axes: Sequence[SweepAxis], results: Sequence[PointResult]) -> pd.DataFrame:
    """Return one row per point and metric: a column per axis, `status`, `metric`, `unit`, `value`.

    A point without a plan has one row without a metric.
    """
    rows: list[list[object]] = []
    for result in results:
        place = [_number_or_text(value) for _, value in result.point]
        if not result.figures:
            rows.append([*place, result.status, "", "", None])
        for figure in result.figures:
            rows.append([*place, result.status, figure.metric, figure.unit, figure.value])
    table = pd.DataFrame(rows, columns=[*(axis.key for axis in axes), *COLUMNS], dtype=object)
    # A partial table has the same column types as the whole.
    kinds = {key: pd.Series(list(map(_number_or_text, texts))).dtype for key, texts in map(astuple, axes)}
    return table.astype({**kinds, "value": float})


def _number_or_text(value: str) -> object:
    """Return a value as given; numbers as numbers, so that a spreadsheet sorts them."""
    try:
        number = json.loads(value)
    except ValueError:
        return value
    return number if isinstance(number, int | float) and not isinstance(number, bool) else value
