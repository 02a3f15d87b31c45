"""Corrections from few rows, always judged on rows, or hardware, that the fit has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_launches import cache_dtype
from scipy.optimize import least_squares

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Efficiency, Precision, Techniques
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import Load, default_scheduling
from fleetplan.perfmodel.serving.replica_loops import closed_loop
from fleetplan.perfmodel.steps.software_versions import Software

SEED: Final = 20260101
"""Of every draw of rows, so that a table can be repeated."""

OWN_ROWS: Final = 3
MATURITY_ROWS: Final = 8
MATURITY_DRAWS: Final = 20
ROOFLINE_HARDWARE: Final = ("H100-SXM", "H200-SXM", "B200-SXM")
ROOFLINE_ROWS: Final = 120
"""Rows of one hardware kind that a roofline is fitted on: more do not move the constants."""

_SAME_DEPLOYMENT: Final = ["hardware", "framework", "version", "model", "weights"]
_ONE_EVALUATOR: Final = ["model", "hardware", "framework", "weights", "kv", "sampling", "month"]
_FITTED: Final = (
    "gemm_ratio",
    "weight_read_ratio",
    "kv_read_ratio",
    "prefill_attention_ratio",
    "link_ratio",
    "collective_latency_us",
    "layer_overhead_us",
)


def after_own_rows(rows: pd.DataFrame, n_rows: int = OWN_ROWS) -> pd.Series[float]:
    """TPOT errors once each deployment was scaled by one factor from `n_rows` of its own rows.

    A deployment is one (hardware, framework, version, model, weights) with at least twice as many rows; the
    rows of the fit are drawn by `SEED` and left out of the errors.
    """
    return _scaled(rows, _SAME_DEPLOYMENT, n_rows)


def after_maturity(rows: pd.DataFrame, n_rows: int = MATURITY_ROWS) -> pd.Series[float]:
    """TPOT errors once each part was scaled by one factor from `n_rows` rows that the errors leave out.

    Of `MATURITY_DRAWS` draws together: rows of one part differ by their months, so that a draw is a matter of
    luck.
    """
    drawn = [_scaled(rows, ["hardware"], n_rows, SEED + draw) for draw in range(MATURITY_DRAWS)]
    return pd.concat(drawn)


def _scaled(rows: pd.DataFrame, by: list[str], n_rows: int, seed: int = SEED) -> pd.Series[float]:
    known = rows[rows["tpot_error"].notna()]
    draw = np.random.default_rng(seed)
    parts = []
    for _, group in known.groupby(by, sort=True):
        if len(group) < 2 * n_rows:
            continue
        chosen = draw.choice(len(group), n_rows, replace=False)
        ratio = 1.0 + group["tpot_error"]
        factor = float(ratio.iloc[chosen].median())
        parts.append(ratio.drop(group.index[chosen]) / factor - 1.0)
    return pd.concat(parts) if parts else pd.Series(dtype=float)


def roofline_left_out(rows: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """TPOT errors of dense decoders by a roofline fitted on the other hardware kinds, by hardware."""
    dense = rows[
        (rows["model_class"] == "dense") & rows["tpot_error"].notna() & (rows["mode"] == "closed_loop")
    ]
    samples = {}
    for hardware in ROOFLINE_HARDWARE:
        there = dense[dense["hardware"] == hardware]
        if len(there):
            samples[hardware] = there.sample(min(ROOFLINE_ROWS, len(there)), random_state=SEED)
    errors = {}
    for hardware, left_out in samples.items():
        others = [sample for name, sample in samples.items() if name != hardware]
        if others:
            fitted = _fit(pd.concat(others))
            errors[hardware] = pd.Series(np.expm1(_log_ratio(left_out, fitted)), index=left_out.index)
    return errors


def _fit(rows: pd.DataFrame) -> Efficiency:
    """Constants that hold best for `rows`, each by its logarithm and within a factor of four.

    Deployments weigh alike, so that a large series of one version does not decide.
    """
    start = accelerators()[ROOFLINE_HARDWARE[0]].efficiency
    initial = np.log([getattr(start, name) for name in _FITTED])
    same = rows.groupby(_SAME_DEPLOYMENT)["tpot_ms"].transform("size").to_numpy(dtype=np.float64)
    weight = np.sqrt(same.mean() / same)

    def residuals(logarithms: FloatArray) -> FloatArray:
        return weight * _log_ratio(rows, _with_constants(start, logarithms))

    bounds = (initial - np.log(4.0), initial + np.log(4.0))
    found = least_squares(residuals, initial, bounds=bounds, loss="soft_l1", f_scale=0.1, max_nfev=12)
    return _with_constants(start, found.x)


def _with_constants(start: Efficiency, logarithms: FloatArray) -> Efficiency:
    values = dict(zip(_FITTED, np.exp(logarithms).tolist(), strict=True))
    return replace(start, **values)


def _log_ratio(rows: pd.DataFrame, efficiency: Efficiency) -> FloatArray:
    """Logarithm of predicted over measured TPOT by a roofline with `efficiency`, shape (n_rows,)."""
    ratio = np.zeros(len(rows))
    for positions, group in _groups(rows):
        ratio[positions] = np.log(_roofline_tpot_ms(group, efficiency) / group["tpot_ms"].to_numpy())
    return ratio


def _groups(rows: pd.DataFrame) -> Iterator[tuple[FloatArray, pd.DataFrame]]:
    numbered = rows.assign(position=np.arange(len(rows)))
    for _, group in numbered.groupby(_ONE_EVALUATOR, sort=True):
        yield group["position"].to_numpy(), group


def _roofline_tpot_ms(rows: pd.DataFrame, efficiency: Efficiency) -> FloatArray:
    first = rows.iloc[0]
    framework, weights = str(first["framework"]), str(first["weights"])
    part = replace(accelerators()[str(first["hardware"])], measured_system=None, efficiency=efficiency)
    evaluator = Evaluator(
        load_architecture(str(first["model"]), Path()),
        part,
        OperatorSource(part, framework, None),
        Precision(weights, cache_dtype(framework, weights, str(first["kv"]))),
        techniques=Techniques(sampling="top-p" if first["sampling"] == "top-p" else "greedy"),
        software=Software(str(first["month"])),
    )
    layouts = Layouts.of([Parallelism(pp=1, tp=int(tp), dp=1, ffn_tp=int(tp), ep=1) for tp in rows["tp"]])
    inputs, outputs = (rows[name].to_numpy(dtype=np.int64) for name in ("input_tokens", "output_tokens"))
    scheduling = default_scheduling(framework, part)
    load = Load(layouts, inputs, np.zeros_like(inputs), outputs, scheduling)
    concurrency = rows["load"].to_numpy(dtype=np.float64) / (rows["n_accelerators"] / rows["tp"]).to_numpy()
    return closed_loop(evaluator, load, concurrency).tpot_ms
