"""Every configuration of a service on one accelerator kind, with its numbers or the reason against it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator import Engines, Evaluator
from fleetplan.perfmodel.landscape.blocks import PendingBlock, ask_block
from fleetplan.perfmodel.landscape.grid import GridBlock, Option
from fleetplan.perfmodel.landscape.phases import LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape.points import points_of
from fleetplan.perfmodel.landscape.reasons import CODES, REASONS, USABLE
from fleetplan.perfmodel.landscape.search_space import SearchSpace
from fleetplan.perfmodel.landscape.sweeps import SweepSpace, tasks_of
from fleetplan.perfmodel.landscape.tables import config_column, evidence_columns, layout_columns
from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.serving import Scheduling
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups

Column: TypeAlias = NDArray[Any]
"""Numbers or texts, shape (n_rows,)."""

TTFT: Final = "ttft"
TPOT: Final = "tpot"


@dataclass(frozen=True, slots=True)
class Landscape:
    """The configurations of one service on one accelerator kind.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a phase (prefill, decode, aggregated) and configuration. Columns: `phase`, `config`,
        `parallelism`, `pp`, `tp`, `cp`, `dp`, `ffn_tp`, `ep`, `batch`, `accelerators_per_replica`,
        `requests_per_s` (of one replica), `latency_ms` (of the step), `ttft_ms` (with the KV transfer
        and the front end in prefill rows), `tpot_ms`, `kv_transfer_ms`, `memory_gib_per_accelerator`,
        `share_measured`, `share_interpolated`, `share_extrapolated`, `share_roofline`, `source`,
        `bottleneck`, `excluded` ('' or the first reason that holds). Numbers that were not computed, or
        that a phase does not have, are NaN.
    excluded_counts : Mapping[str, int]
        Rows by reason.
    late : FloatArray
        TTFT and TPOT of rows that only miss a latency limit, where these are not in the table. [ms]
    """

    table: pd.DataFrame
    excluded_counts: Mapping[str, int]
    late: FloatArray = field(default_factory=lambda: np.zeros((2, 0)))

    @classmethod
    def of_table(cls, table: pd.DataFrame) -> Landscape:
        """Return the landscape of a table, its reasons counted."""
        counts = table["excluded"].value_counts()
        return cls(table, {str(reason): int(count) for reason, count in counts.items() if reason})

    def without_excluded(self) -> Landscape:
        """Return the landscape of its usable rows alone; the others are still counted."""
        latencies = np.concatenate([_latencies(self._late_rows), self.late], axis=1)
        return Landscape(self.usable.reset_index(drop=True), self.excluded_counts, latencies)

    def within(self, target: LatencyTarget) -> Landscape:
        """Return the usable rows within tighter limits, the others counted: as if evaluated with these.

        Parameters
        ----------
        target : LatencyTarget
            Neither limit above that of this landscape.
        """
        usable = self.usable
        ttft, tpot = np.concatenate([_latencies(usable), _latencies(self._late_rows), self.late], axis=1)
        # A phase without this latency has NaN, which exceeds no limit.
        is_late = ttft > _limit(target.ttft_ms)
        is_slow = ~is_late & (tpot > _limit(target.tpot_ms))
        counts = dict(self.excluded_counts) | {TTFT: int(is_late.sum()), TPOT: int(is_slow.sum())}
        counts = dict(sorted(counts.items(), key=lambda pair: -pair[1]))
        beyond = is_late | is_slow
        kept = usable[~beyond[: len(usable)]].reset_index(drop=True)
        late = np.stack([ttft[beyond], tpot[beyond]])
        return Landscape(kept, {reason: count for reason, count in counts.items() if count}, late)

    @property
    def _late_rows(self) -> pd.DataFrame:
        return self.table[self.table["excluded"].isin((TTFT, TPOT))]

    @property
    def usable(self) -> pd.DataFrame:
        """Rows without a reason against them."""
        return self.table[self.table["excluded"] == ""]


def _latencies(rows: pd.DataFrame) -> FloatArray:
    return np.stack([rows[name].to_numpy(dtype=float) for name in ("ttft_ms", "tpot_ms")])


def _limit(limit_ms: float | None) -> float:
    return math.inf if limit_ms is None else limit_ms


def service_landscape(
    evaluator: Evaluator,
    request: RequestShape,
    target: LatencyTarget,
    space: SearchSpace,
    framework: str = "",
    scheduling: Scheduling | None = None,
    usable_alone: bool = False,
) -> Landscape:
    """Evaluate every configuration of a service on one accelerator kind: a sweep of one option, as a table.

    Parameters
    ----------
    evaluator : Evaluator
        The model at its precision on the accelerator.
    request : RequestShape
        Mean lengths. A sequence holds the cache of its context and half its output.
    target : LatencyTarget
        Rows beyond a limit are excluded as `ttft` or `tpot`.
    space : SearchSpace
        Runtimes, parallelism and batch sizes to try.
    framework : str
        Framework whose layout rules apply; empty for none.
    scheduling : Scheduling, optional
        Scheduling of the framework; without it, the identities of the paper.
    usable_alone : bool
        Leave all other rows out, as `Landscape.without_excluded` does: most rows are not made at all then. No
        column `config` either: to name a row takes longer than all numbers of it, and a plan names few.

    Returns
    -------
    Landscape
        Rows are excluded for the reasons that `fleetplan.perfmodel.landscape.REASON_TEXTS` explains. Of
        rows that miss no more than a latency limit the numbers are given, of usable ones also what they
        rest on.

    Raises
    ------
    UnsupportedArchitecture
        The model has layers that are not evaluated yet.
    """
    question = LandscapeQuestion(evaluator, request, target, space, framework, scheduling)
    return ask_landscape(question, SharedLookups()).evaluated(usable_alone)


@dataclass(frozen=True, slots=True)
class LandscapeQuestion:
    """Key of a landscape; attributes are the parameters of `service_landscape`."""

    evaluator: Evaluator
    request: RequestShape
    target: LatencyTarget
    space: SearchSpace
    framework: str = ""
    scheduling: Scheduling | None = None


@dataclass(frozen=True, slots=True)
class PendingLandscape:
    """A landscape whose operators wait for a look-up.

    Attributes
    ----------
    whole : SweepSpace
        Its space.
    blocks : tuple[PendingBlock, ...]
        Its parts.
    """

    whole: SweepSpace
    blocks: tuple[PendingBlock, ...]

    def evaluated(self, usable_alone: bool = False) -> Landscape:
        """Return the landscape with its numbers; `usable_alone` as in `service_landscape`."""
        whole = self.whole
        blocks = [each.evaluated(whole.target, noting=True) for each in self.blocks]
        if not usable_alone:
            return Landscape.of_table(
                _table([_described(block, whole, np.arange(block.excluded.size)) for block in blocks])
            )
        pairs = [(block, np.flatnonzero(block.excluded == USABLE)) for block in blocks]
        # A table without rows has no types of columns to keep.
        parts = [_columns(block, whole, rows) for block, rows in pairs if rows.size]
        parts = parts or [_columns(block, whole, rows) for block, rows in pairs]
        excluded = np.concatenate([block.excluded.ravel() for block in blocks])
        late = np.concatenate([_late_of(block) for block in blocks], axis=1)
        return Landscape(_table(parts), _counted(excluded), late)


def ask_landscape(question: LandscapeQuestion, lookups: SharedLookups) -> PendingLandscape:
    """Queue the operators of a landscape for look-up, with those of others."""
    of = question
    stages = of.space.pipeline_stages
    option = Option("", of.evaluator, None, None, of.framework, of.scheduling, stages)
    whole = SweepSpace((option,), (of.request,), of.target, of.space)
    blocks = (ask_block(option, task.place, task.axes, lookups) for task in tasks_of(whole))
    return PendingLandscape(whole, tuple(blocks))


def _counted(excluded: ByteArray) -> dict[str, int]:
    """Return the rows by reason, the most frequent first; as `Landscape.of_table` counts them."""
    counts = pd.Series(excluded).value_counts()
    pairs = zip(counts.index.tolist(), counts.tolist(), strict=True)
    return {REASONS[code]: count for code, count in pairs if code != USABLE}


def _late_of(block: GridBlock) -> FloatArray:
    """Return TTFT and TPOT of the rows of a block that only miss a latency limit. [ms]."""
    rows = np.flatnonzero(np.isin(block.excluded, (CODES[TTFT], CODES[TPOT])))
    latencies = (block.ttft_ms, block.tpot_ms)
    none = np.full(rows.size, np.nan)
    return np.stack([none if values is None else values.ravel()[rows] for values in latencies])


def _table(parts: list[dict[str, Column]]) -> pd.DataFrame:
    """Return a table of parts, one after the other: made once, as texts are converted when it is."""
    return pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _described(block: GridBlock, whole: SweepSpace, rows: IntArray) -> dict[str, Column]:
    """Return the columns of some rows of a block with their names, in the order of a table."""
    columns = _columns(block, whole, rows)
    return {"phase": columns.pop("phase"), "config": config_column(points_of(block, rows)), **columns}


def _columns(block: GridBlock, whole: SweepSpace, rows: IntArray) -> dict[str, Column]:
    """Return the columns of some rows of a block, by their positions in its order; all but `config`."""
    excluded = block.excluded.ravel()[rows]
    points = points_of(block, rows)
    layouts = layout_columns(points)
    columns: dict[str, Column] = {
        "phase": points.phase,
        **layouts,
        "memory_gib_per_accelerator": points.memory_gib,
        "ttft_ms": points.ttft_ms,
        "tpot_ms": points.tpot_ms,
        "requests_per_s": points.requests_per_s_per_accelerator * layouts["accelerators_per_replica"],
        "latency_ms": block.known(block.latency_ms)[rows],
        "kv_transfer_ms": block.known(block.kv_transfer_ms)[rows],
    }
    usable = np.flatnonzero(excluded == USABLE)
    engines = None
    if block.engines is not None:
        engines = Engines(*(values.ravel()[rows[usable]] for values in block.engines))
    steps = None
    if block.steps is not None and usable.size:
        layout, batch, request = np.unravel_index(rows[usable], block.excluded.shape)
        steps = block.steps.details((layout, batch, request))
    for name, known in evidence_columns(points.take(usable), whole, engines, steps).items():
        # Only usable rows have evidence.
        blank = np.full(excluded.size, "" if known.dtype == object else np.nan, dtype=known.dtype)
        blank[usable] = known
        columns[name] = blank
    return columns | {"excluded": np.array(REASONS, dtype=object)[excluded]}
