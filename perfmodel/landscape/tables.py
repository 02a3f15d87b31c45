"""Points of a sweep as a table: names instead of positions, and what the numbers rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.perfmodel.evaluator import (
    Engines,
    PhaseResult,
    disaggregated_requests_per_s,
    prefill_to_decode_ratio,
)
from fleetplan.perfmodel.landscape.grid import Option
from fleetplan.perfmodel.landscape.phases import RequestShape, engines_iteration, evaluate_phase
from fleetplan.perfmodel.landscape.points import Points
from fleetplan.perfmodel.landscape.sweeps import SweepSpace
from fleetplan.perfmodel.operators import FloatArray, IntArray, Provenance
from fleetplan.perfmodel.parallelism import Configuration, Layouts, Parallelism, batched_label
from fleetplan.perfmodel.serving import MeanIteration
from fleetplan.perfmodel.steps import ConfigurationBatch, provenance_shares, weakest_provenance
from fleetplan.perfmodel.techniques.chunked_prefill import StepsEvaluator

CLUSTER_ACCELERATORS: Final = 256
"""Accelerators of a cluster in rates per cluster, as in the tables of Meta, Optimizing Deployment
Configurations for LLM Inference."""

MOST_PAIRS: Final = 2_000_000
"""Most pairs of a prefill and a decode configuration that are held at once."""


def point_table(points: Points, space: SweepSpace, request_names: tuple[str, ...]) -> pd.DataFrame:
    """Return one row a point.

    Returns
    -------
    pandas.DataFrame
        Columns `row`, `phase`, `request`, `hardware`, `weights`, `kv`, `config`, `parallelism`, `pp`, `tp`,
        `cp`, `dp`, `ffn_tp`, `ep`, `batch`, `accelerators_per_replica`, `requests_per_s_per_accelerator`,
        `requests_per_s_per_256`, `ttft_ms`, `tpot_ms`, `usd_per_million_tokens`, `kwh_per_million_tokens`,
        `memory_gib_per_accelerator`.
    """
    options = [space.options[position] for position in points.option.tolist()]
    return pd.DataFrame(
        {
            "row": points.row,
            "phase": points.phase,
            "request": [request_names[position] for position in points.request.tolist()],
            "hardware": [option.hardware for option in options],
            "weights": [option.evaluator.precision.weights for option in options],
            "kv": [option.evaluator.precision.kv for option in options],
            "config": config_column(points),
            **layout_columns(points),
            "requests_per_s_per_accelerator": points.requests_per_s_per_accelerator,
            "requests_per_s_per_256": points.requests_per_s_per_accelerator * CLUSTER_ACCELERATORS,
            "ttft_ms": points.ttft_ms,
            "tpot_ms": points.tpot_ms,
            "usd_per_million_tokens": points.usd_per_million_tokens,
            "kwh_per_million_tokens": points.kwh_per_million_tokens,
            "memory_gib_per_accelerator": points.memory_gib,
        }
    )


def config_column(points: Points) -> NDArray[np.object_]:
    """Return the column `config` of `point_table`: layout and batch size in one name."""
    labels = {id(layout): layout.label for layout in points.layout.tolist()}
    pairs = zip(points.layout.tolist(), points.batch.tolist(), strict=True)
    return np.array([batched_label(labels[id(layout)], size) for layout, size in pairs], dtype=object)


def layout_columns(points: Points) -> dict[str, IntArray | NDArray[np.object_]]:
    """Return columns `parallelism` to `accelerators_per_replica` of `point_table`, once per layout."""
    known: dict[int, int] = {}
    of_point = points.layout.tolist()
    codes = np.array([known.setdefault(id(layout), len(known)) for layout in of_point], dtype=np.int64)
    distinct = list({id(layout): layout for layout in of_point}.values())
    labels = [layout.label for layout in distinct]
    layouts = Layouts.of(distinct)
    return {
        "parallelism": np.array(labels, dtype=object)[codes],
        **{name: getattr(layouts, name)[codes] for name in ("pp", "tp", "cp", "dp", "ffn_tp", "ep")},
        "batch": points.batch,
        "accelerators_per_replica": layouts.accelerators[codes],
    }


def evidence_table(points: Points, space: SweepSpace) -> pd.DataFrame:
    """Return `evidence_columns` as a table."""
    return pd.DataFrame(evidence_columns(points, space))


def evidence_columns(
    points: Points,
    space: SweepSpace,
    engines: Engines | None = None,
    steps: StepsEvaluator | None = None,
) -> dict[str, FloatArray | NDArray[np.object_]]:
    """Return what the numbers of some points rest on, one row a point and in the same order.

    Parameters
    ----------
    points, space
        As in `point_table`.
    engines : Engines, optional
        Load of the engines of the points, if all are of one phase with solved loops.
    steps : callable, optional
        Function for the details of their steps, if all are of another, evaluated phase.

    Returns
    -------
    pandas.DataFrame
        Columns `source` (the weakest kind of evidence that holds a tenth of the time), `bottleneck`, and
        `share_measured` to `share_roofline`.
    """
    columns: dict[str, FloatArray | NDArray[np.object_]] = {
        f"share_{each.label}": np.full(points.count, np.nan) for each in Provenance
    }
    columns["source"] = np.full(points.count, "", dtype=object)
    columns["bottleneck"] = np.full(points.count, "", dtype=object)
    labels = np.array([each.label for each in Provenance], dtype=object)
    for position, option in enumerate(space.options):
        for phase in np.unique(points.phase).tolist():
            rows = np.flatnonzero((points.option == position) & (points.phase == phase))
            if not rows.size:
                continue
            result = _iterations(option, phase, points.take(rows), space.requests, engines, steps)
            shares = provenance_shares(result.by_provenance_ms)
            for each in Provenance:
                columns[f"share_{each.label}"][rows] = shares[each]
            columns["source"][rows] = labels[weakest_provenance(shares)]
            columns["bottleneck"][rows] = np.array(result.names, dtype=object)[result.bottleneck]
    return columns


def _iterations(
    option: Option,
    phase: str,
    points: Points,
    requests: tuple[RequestShape, ...],
    engines: Engines | None,
    steps: StepsEvaluator | None,
) -> PhaseResult | MeanIteration:
    """Return the breakdown of the iterations of points, without solving loops again."""
    if engines is None or option.scheduling is None:
        return evaluate_points(option, phase, points, requests, steps)
    return engines_iteration(
        option.evaluator, _configurations_of_points(points, requests), option.scheduling, engines
    )


def evaluate_points(
    option: Option,
    phase: str,
    points: Points,
    requests: tuple[RequestShape, ...],
    steps: StepsEvaluator | None = None,
) -> PhaseResult:
    """Evaluate points of one option and phase once more, in full detail; `steps` as in `evaluate_phase`."""
    configurations = _configurations_of_points(points, requests)
    return evaluate_phase(option.evaluator, phase, configurations, option.scheduling, steps)


def _configurations_of_points(points: Points, requests: tuple[RequestShape, ...]) -> ConfigurationBatch:
    return configurations_of(points.layout.tolist(), points.batch, requests, points.request)


def configurations_of(
    layouts: list[Parallelism], batch: IntArray, requests: Sequence[RequestShape], request: IntArray
) -> ConfigurationBatch:
    """Return configurations one after the other, shape (n_points,) each array.

    Parameters
    ----------
    layouts, batch
        Layout and batch of each configuration.
    requests : Sequence[RequestShape]
        Distinct requests.
    request : IntArray
        Index of the request of each configuration.
    """

    def lengths(values: list[int]) -> IntArray:
        return np.array(values, dtype=np.int64)[request]

    return ConfigurationBatch(
        Layouts.of(layouts),
        batch,
        lengths([request.input_tokens for request in requests]),
        lengths([request.prefix_tokens for request in requests]),
        lengths([request.decode_context_tokens for request in requests]),
        lengths([request.output_tokens for request in requests]),
    )


def pair_table(
    prefill: Points, decode: Points, space: SweepSpace, request_names: tuple[str, ...]
) -> pd.DataFrame:
    """Return disaggregated pairs: every prefill configuration with every decode configuration of a request.

    Parameters
    ----------
    prefill, decode : Points
        Frontiers of the phases. They contain the best pairs, because every number of a pair improves with a
        number of one of the two.
    space, request_names
        As in `point_table`.

    Returns
    -------
    pandas.DataFrame
        Columns `request`, `prefill_row`, `decode_row`, `prefill`, `decode` (hardware and configuration),
        `accelerators_per_replica` (of one replica of each), `prefill_accelerators_per_decode_accelerator`,
        `requests_per_s_per_accelerator`, `requests_per_s_per_256`, `ttft_ms`, `tpot_ms`,
        `usd_per_million_tokens`, `kwh_per_million_tokens`. One row a pair.

    Raises
    ------
    ValueError
        More than `MOST_PAIRS` pairs.
    """
    parts = []
    for request in np.unique(decode.request).tolist():
        first = prefill.take(prefill.request == request)
        second = decode.take(decode.request == request)
        if first.count * second.count > MOST_PAIRS:
            raise ValueError(f"{first.count} x {second.count} pairs are more than {MOST_PAIRS}")
        left = np.repeat(np.arange(first.count), second.count)
        right = np.tile(np.arange(second.count), first.count)
        parts.append(_pairs(first.take(left), second.take(right), space, request_names[request]))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _pairs(prefill: Points, decode: Points, space: SweepSpace, request: str) -> pd.DataFrame:
    rates = prefill.requests_per_s_per_accelerator, decode.requests_per_s_per_accelerator
    rate = disaggregated_requests_per_s(*rates)
    names = [
        [
            f"{space.options[position].hardware} {Configuration(layout, size).label}"
            for position, layout, size in zip(
                part.option.tolist(), part.layout.tolist(), part.batch.tolist(), strict=True
            )
        ]
        for part in (prefill, decode)
    ]
    accelerators = [
        np.array([layout.accelerators for layout in part.layout.tolist()], dtype=np.int64)
        for part in (prefill, decode)
    ]
    return pd.DataFrame(
        {
            "request": request,
            "prefill_row": prefill.row,
            "decode_row": decode.row,
            "prefill": names[0],
            "decode": names[1],
            "accelerators_per_replica": accelerators[0] + accelerators[1],
            "prefill_accelerators_per_decode_accelerator": prefill_to_decode_ratio(*rates),
            "requests_per_s_per_accelerator": rate,
            "requests_per_s_per_256": rate * CLUSTER_ACCELERATORS,
            "ttft_ms": prefill.ttft_ms,
            "tpot_ms": decode.tpot_ms,
            "usd_per_million_tokens": prefill.usd_per_million_tokens + decode.usd_per_million_tokens,
            "kwh_per_million_tokens": prefill.kwh_per_million_tokens + decode.kwh_per_million_tokens,
        }
    )
