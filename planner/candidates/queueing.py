"""Rates of configurations with latency limits under load: what pools of each size carry.

Prefill and decode pools have formulas (`fleetplan.perfmodel.queueing.phase_pools`); continuous batching is
simulated (`fleetplan.perfmodel.replay.capacity`). Both yield a rate, and lines below the load as a function
of the replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import AGGREGATED, PREFILL
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism, parse_parallelism
from fleetplan.perfmodel.queueing import (
    POOL_SIZES,
    CapacityLine,
    PrefillServers,
    capacity_lines,
    decode_loads,
    prefill_loads,
    prefill_shares,
    prompt_spread,
)
from fleetplan.perfmodel.replay import EnginePool, LoadTarget, deployed_engine
from fleetplan.perfmodel.serving import RequestKind
from fleetplan.perfmodel.steps import ConfigurationBatch
from fleetplan.planner.candidates.load_question import LoadQuestion
from fleetplan.planner.candidates.rate_cache import cached_rate_per_s

CARRIED: Final = "carried_per_s"
"""Column: requests/s of one replica in a pool that serves the largest demand within the limits. [1/s]"""

LOADS: Final = "loads"
"""Column: load that pools of `POOL_SIZES` carry, shape (n,), in replicas at `requests_per_s`."""

SIMULATED_LAYOUTS: Final = 4
"""Simulated layouts of continuous batching per hardware: those with the highest mean rates."""

MOST_ENGINES: Final = 8
"""Engines of the largest simulated pool. Larger pools carry a few per cent more per replica, which is
ignored."""

_RATE_SEARCH: Final = 1.3
"""Start of the search for a rate, as a multiple of the mean rate: no limit under load allows more."""


def under_load(
    question: LoadQuestion,
    evaluator: Evaluator,
    usable: pd.DataFrame,
) -> pd.DataFrame:
    """Add to landscape rows what their pools carry, in the columns `CARRIED` and `LOADS`.

    Parameters
    ----------
    question : LoadQuestion
        Limits under load.
    evaluator : Evaluator
        Model on its accelerator.
    usable : pandas.DataFrame
        Rows that meet the limits without load and fit memory.

    Returns
    -------
    pandas.DataFrame
        Without rows whose pools carry nothing; `requests_per_s` of aggregated rows is the simulated rate.
    """
    if usable.empty:
        return usable.assign(**{CARRIED: usable["requests_per_s"], LOADS: pd.Series([], dtype=object)})
    parts = []
    for phase, rows in usable.groupby("phase", sort=False):
        if phase == AGGREGATED:
            parts.append(_aggregated(question, evaluator, rows))
            continue
        loads = (_prefill if phase == PREFILL else _decode)(question, evaluator, rows)
        carried = rows["requests_per_s"].to_numpy(dtype=np.float64)
        carried = carried * _carried_ratio(loads, question.demand_per_s[1] / carried)
        of_pools = {CARRIED: pd.Series(carried, rows.index), LOADS: pd.Series(list(loads), rows.index)}
        parts.append(rows.assign(**of_pools))
    found = pd.concat(parts)
    return found[found[CARRIED] > 0]


def lines_of(
    loads: Sequence[FloatArray], needed: Sequence[float], simulated: bool
) -> tuple[CapacityLine, ...]:
    """Return lines below a configuration's pool loads; none if pools carry all their replicas can.

    Parameters
    ----------
    loads : Sequence[FloatArray]
        Loads of pools of `POOL_SIZES` by class; a pool with several classes carries the least.
    needed : Sequence[float]
        Loads at which the lines should be exact.
    simulated : bool
        Whether loads are known at some sizes only; in between, a replica carries what it does in the next
        smaller pool.
    """
    least = np.min(np.stack(list(loads)), axis=0)
    if np.array_equal(least, POOL_SIZES):
        return ()
    at_knots = np.minimum(np.searchsorted(least, np.array(needed)), POOL_SIZES.size - 1)
    knots = sorted({int(size) for size in POOL_SIZES[at_knots]})
    if not simulated:
        return capacity_lines(POOL_SIZES, least, knots)
    each = least / POOL_SIZES
    steps = [0, *np.flatnonzero(np.diff(each) > 1e-12) + 1]
    return tuple(CapacityLine(float(each[at]), 0.0, int(POOL_SIZES[at])) for at in steps if each[at] > 0)


def _carried_ratio(loads: FloatArray, needed: FloatArray) -> FloatArray:
    """Return the load per replica in the smallest pool that carries `needed`, or else in the largest."""
    reached = loads >= needed[:, None]
    at = np.where(reached.any(axis=1), reached.argmax(axis=1), POOL_SIZES.size - 1)
    found: FloatArray = loads[np.arange(at.size), at] / POOL_SIZES[at]
    return found


def _prefill(question: LoadQuestion, evaluator: Evaluator, rows: pd.DataFrame) -> FloatArray:
    labels = list(dict.fromkeys(rows["parallelism"]))
    shares = prefill_shares(question.traffic.ttft)
    spread = prompt_spread(evaluator, [parse_parallelism(label) for label in labels], question.kind, shares)
    of_row = rows["parallelism"].map({label: k for k, label in enumerate(labels)}).to_numpy()
    pass_ms = rows["latency_ms"].to_numpy(dtype=np.float64)
    servers = PrefillServers(
        pass_ms=pass_ms,
        stages=rows["pp"].to_numpy(dtype=np.int64),
        prompts=(rows["batch"] * rows["dp"]).to_numpy(dtype=np.int64),
        # Front end, and transfer of the cache.
        after_ms=rows["ttft_ms"].to_numpy(dtype=np.float64) - pass_ms,
        spread=replace(
            spread,
            mean=spread.mean[of_row],
            variation=spread.variation[of_row],
            percentiles={share: values[of_row] for share, values in spread.percentiles.items()},
        ),
    )
    outside_ms = question.service.outside_ms.total_ms
    loads = prefill_loads(servers, question.traffic.ttft, outside_ms, question.traffic.burstiness)
    return loads * question.carried_ratio(servers.spread.variation)[:, None]


def _decode(question: LoadQuestion, evaluator: Evaluator, rows: pd.DataFrame) -> FloatArray:
    del evaluator  # TPOT is the landscape's, at a full batch.
    places = (rows["batch"] * rows["dp"] * rows["pp"]).to_numpy(dtype=np.int64)
    variation = question.kind.output_variation
    loads = decode_loads(places, question.traffic.ttft, question.traffic.burstiness, variation)
    return loads * float(question.carried_ratio(variation))


def _aggregated(question: LoadQuestion, evaluator: Evaluator, rows: pd.DataFrame) -> pd.DataFrame:
    """Simulate the most promising layouts, each with the largest batch that meets the limits."""
    largest = rows.sort_values("batch", kind="stable").drop_duplicates("parallelism", keep="last")
    best_rate = rows.groupby("parallelism", sort=False)["requests_per_s"].max()
    each = largest["parallelism"].map(best_rate) / largest["accelerators_per_replica"]
    chosen = largest.loc[_promising(question, evaluator, largest, each)]
    found = []
    for index, row in chosen.iterrows():
        layout = parse_parallelism(str(row["parallelism"]))
        batch, mean_rate = int(row["batch"]), float(best_rate[row["parallelism"]])
        rates = _simulated_rates(question, evaluator, layout, batch, mean_rate)
        free = float(question.carried_ratio(question.kind.output_variation))
        rates = {size: rate * free for size, rate in rates.items()}
        top = max(rates.values())
        if top > 0:
            loads = _step_loads(rates, top)
            found.append(row.to_dict() | {"requests_per_s": top, CARRIED: top, LOADS: loads, "index": index})
    columns = [*rows.columns, CARRIED, LOADS]
    return pd.DataFrame(found, columns=[*columns, "index"]).set_index("index")[columns]


def _promising(
    question: LoadQuestion, evaluator: Evaluator, rows: pd.DataFrame, each_per_s: pd.Series[float]
) -> pd.Index:
    """Return the rows whose long prompts leave room within the limits, by potential rate per accelerator."""
    room = np.ones(len(rows))
    shares = [limit.share for limit in question.inner_ttft if limit.share is not None]
    layouts = [parse_parallelism(label) for label in rows["parallelism"]]
    spread = prompt_spread(evaluator, layouts, question.kind, shares)
    mean_ms = _prompt_ms(evaluator, layouts, question.kind) * spread.mean
    for limit in question.inner_ttft:
        widest = np.ones(len(rows)) if limit.share is None else spread.percentiles[limit.share]
        room = np.minimum(room, 1 - mean_ms * widest / limit.limit_ms)
    promise = (each_per_s * room)[pd.Series(room > 0, rows.index)]
    return promise.sort_values(ascending=False, kind="stable").index[:SIMULATED_LAYOUTS]


def _prompt_ms(evaluator: Evaluator, layouts: Sequence[Parallelism], kind: RequestKind) -> FloatArray:
    """Return the time of one prompt of mean length alone, by layout. [ms]"""

    def filled(value: int) -> IntArray:
        return np.full(len(layouts), value, dtype=np.int64)

    batch = ConfigurationBatch(
        Layouts.of(list(layouts)),
        filled(1),
        filled(kind.input_tokens),
        filled(kind.prefix_tokens),
        filled(kind.prefix_tokens + kind.input_tokens),
        filled(kind.output_tokens),
    )
    return evaluator.prefill(batch).ttft_ms


def _simulated_rates(
    question: LoadQuestion, evaluator: Evaluator, layout: Parallelism, batch: int, mean_rate: float
) -> dict[int, float]:
    """Return the rate per replica by pool size, for the smallest and the largest demand. [1/s]"""
    engine = deployed_engine(
        evaluator, layout, batch, question.kind.longest_tokens, question.service.framework
    )
    kind = replace(
        question.kind, output_tokens=max(1, round(question.kind.output_tokens / engine.tokens_per_step))
    )
    tpot = tuple(
        replace(limit, limit_ms=limit.limit_ms * engine.tokens_per_step) for limit in question.traffic.tpot
    )
    target = LoadTarget(kind, question.traffic.burstiness, question.inner_ttft, tpot)
    engines_each = layout.dp * layout.pp
    most = max(1, MOST_ENGINES // engines_each)
    sizes = {1} | {
        int(np.clip(np.ceil(demand / mean_rate), 1, most)) for demand in question.demand_per_s if demand > 0
    }
    rates: dict[int, float] = {}
    for replicas in sorted(sizes):
        pool = EnginePool(engine.costs, engine.limits, replicas * engines_each)
        rate = cached_rate_per_s(pool, target, _RATE_SEARCH * mean_rate * replicas)
        # A larger pool carries no less per replica; simulation noise must not contradict that.
        rates[replicas] = max([rate / replicas, *rates.values()])
    return rates


def _step_loads(rates: dict[int, float], top: float) -> FloatArray:
    """Return loads of pools of `POOL_SIZES` from rates known at some sizes, in replicas at rate `top`."""
    known = np.array(sorted(rates))
    at = np.searchsorted(known, POOL_SIZES, side="right") - 1
    each = np.array([rates[int(size)] for size in known])[at] / top
    found: FloatArray = POOL_SIZES * each
    return found
