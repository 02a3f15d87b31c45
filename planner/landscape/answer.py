"""Answer to a landscape question: the sweep, its rows, and the selection to show."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fleetplan.perfmodel.landscape import (
    AGGREGATED,
    DECODE,
    PREFILL,
    REASONS,
    GridBlock,
    Points,
    SweepResult,
    SweptPart,
    evaluate_block,
    evidence_table,
    frontiers,
    pair_table,
    pareto_mask,
    point_table,
    points_of,
    sweep,
    tasks_of,
)
from fleetplan.planner.landscape.question import Question, bad_option

BEST_BY = {
    "QPS": ("requests_per_s_per_accelerator", False),
    "cost": ("usd_per_million_tokens", True),
    "energy": ("kwh_per_million_tokens", True),
    "TTFT": ("ttft_ms", True),
    "TPOT": ("tpot_ms", True),
}
"""Measures of the best configurations: column, and whether less is better."""


@dataclass(frozen=True, slots=True)
class LandscapeAnswer:
    """Answer of a sweep to a question.

    Attributes
    ----------
    question : Question
        The question.
    result : SweepResult
        Counts and frontiers.
    wall_s : float
        Time of the sweep. [s]
    """

    question: Question
    result: SweepResult
    wall_s: float

    @property
    def phase_points(self) -> dict[str, Points]:
        """Return the best points of each hardware, by phase."""
        points = self.result.candidates
        return {phase: points.take(points.phase == phase) for phase in (PREFILL, DECODE, AGGREGATED)}

    def pairs(self) -> pd.DataFrame:
        """Return the undominated pairs of prefill and decode; empty without a disaggregated runtime."""
        phases = self.phase_points
        table = pair_table(
            frontiers(phases[PREFILL], across_options=True),
            frontiers(phases[DECODE], across_options=True),
            self.question.space,
            self.question.request_names,
        )
        return _frontier_rows(table)

    def table(self, points: Points, evidence: bool = True) -> pd.DataFrame:
        """Return points as a table, with the sources of their numbers."""
        space = self.question.space
        table = point_table(points, space, self.question.request_names)
        return table.join(evidence_table(points, space)) if evidence else table


def answer(
    question: Question, on_block: Callable[[GridBlock], None] | None = None, threads: int | None = None
) -> LandscapeAnswer:
    """Sweep the space of a question."""
    start = time.perf_counter()
    result = sweep(question.space, on_block, threads)
    return LandscapeAnswer(question, result, time.perf_counter() - start)


def _frontier_rows(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        return table
    kept = []
    for _, rows in table.groupby("request", sort=False):
        costs = [-rows["requests_per_s_per_accelerator"].to_numpy()]
        costs += [
            rows[name].fillna(0.0).to_numpy() for name in ("ttft_ms", "tpot_ms", "usd_per_million_tokens")
        ]
        kept.append(rows[pareto_mask(costs)])
    return pd.concat(kept, ignore_index=True)


def best_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the best row of a table by each available measure, with `best_by` as first column."""
    rows = []
    for label, (column, ascending) in BEST_BY.items():
        if table.empty or table[column].isna().all():
            continue
        # Ties: the higher rate first, then fewer accelerators.
        ordered = table.sort_values(
            [column, "requests_per_s_per_accelerator", "accelerators_per_replica"],
            ascending=[ascending, False, True],
            kind="stable",
        )
        rows.append(ordered.head(1).assign(best_by=label))
    if not rows:
        return table.assign(best_by="")
    found = pd.concat(rows, ignore_index=True)
    return found[["best_by", *table.columns]]


def filtered(table: pd.DataFrame, condition: str | None) -> pd.DataFrame:
    """Return the rows that satisfy a condition on the columns, such as `tp <= 8 and batch >= 16`.

    Raises
    ------
    InputError
        If the condition cannot be parsed.
    """
    if condition is None:
        return table
    if "@" in condition or "__" in condition:
        raise bad_option("--filter", f"{condition!r} may name only columns")
    try:
        kept = table.query(condition, engine="python")
    except Exception as error:  # the exception of pandas depends on the mistake
        columns = ", ".join(table.columns)
        raise bad_option(
            "--filter", f"{condition!r} cannot be read: {error}", f"columns: {columns}"
        ) from error
    if not isinstance(kept, pd.DataFrame):
        raise bad_option("--filter", f"{condition!r} is not a condition")
    return kept.reset_index(drop=True)


def block_table(block: GridBlock, question: Question, usable_only: bool) -> pd.DataFrame:
    """Return the rows of a block, each with its reason for exclusion."""
    excluded = block.excluded.ravel()
    flat = np.flatnonzero(excluded == 0) if usable_only else np.arange(excluded.size)
    table = point_table(points_of(block, flat.astype(np.int64)), question.space, question.request_names)
    table["excluded"] = np.array(REASONS, dtype=object)[excluded[flat]]
    return table


def point_of_row(question: Question, row: int) -> tuple[Points, str]:
    """Return one row of the search space, and its reason for exclusion ('' for none).

    Raises
    ------
    InputError
        If there is no such row.
    """
    last = 0
    for task in tasks_of(question.space):
        offset = row - task.place.first_row
        last = task.place.first_row + task.size
        if 0 <= offset < task.size:
            return _point(question, task, offset)
    raise bad_option("--explain", f"there is no row {row}", f"rows are numbered from 0 to {last - 1}")


def _point(question: Question, task: SweptPart, offset: int) -> tuple[Points, str]:
    """Evaluate one configuration of a task, even if it cannot run."""
    found = np.unravel_index(offset, [len(axis) for axis in task.axes])
    layout, batch, request = (int(position) for position in found)
    place = replace(
        task.place,
        first_row=task.place.first_row + offset,
        first_request=task.place.first_request + request,
    )
    axes = ([task.axes[0][layout]], [task.axes[1][batch]], [task.axes[2][request]])
    option = question.space.options[place.option]
    block = evaluate_block(option, place, axes, question.space.target, whole=True)
    return points_of(block, np.array([0], dtype=np.int64)), REASONS[int(block.excluded.ravel()[0])]
