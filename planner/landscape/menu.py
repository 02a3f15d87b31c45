"""Inference menu of a service: cost of a request by latency class, quality and length.

Teams choose from it: latency, quality (precision of weights and cache), complexity (request class), and the
resulting cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from fleetplan.perfmodel.landscape import AGGREGATED, PREFILL, LatencyTarget, Option
from fleetplan.planner.landscape.answer import LandscapeAnswer, answer, best_rows
from fleetplan.planner.landscape.question import Question


@dataclass(frozen=True, slots=True)
class LatencyClass:
    """Latency class of the menu.

    Attributes
    ----------
    name : str
        Displayed name.
    factor : float
        Its limits as a multiple of the service's; infinite for none.
    """

    name: str
    factor: float


LATENCY_CLASSES: Final = (
    LatencyClass("twice as fast", 0.5),
    LatencyClass("as agreed", 1.0),
    LatencyClass("relaxed", 3.0),
    LatencyClass("batch", np.inf),
)


def inference_menu(question: Question) -> pd.DataFrame:
    """Return the cheapest way to serve each request in each latency class.

    Parameters
    ----------
    question : Question
        Question whose limits define the class "as agreed".

    Returns
    -------
    pandas.DataFrame
        Columns `latency`, `quality` (weights and KV), `request` (its class), `input_tokens`, `output_tokens`,
        `usd_per_million_tokens`, `usd_per_thousand_requests`, `kwh_per_million_tokens`, `ttft_ms`, `tpot_ms`,
        `runtime`, `served_by`. Where nothing meets the limits, the numbers are NaN and `served_by` says so.
    """
    rows = []
    for latency in LATENCY_CLASSES:
        target = LatencyTarget(
            _times(question.space.target.ttft_ms, latency.factor),
            _times(question.space.target.tpot_ms, latency.factor),
        )
        for quality, options in _by_quality(question).items():
            space = replace(question.space, target=target, options=options)
            rows += _rows(replace(question, space=space), latency.name, quality)
    return pd.DataFrame(rows)


def _times(limit: float | None, factor: float) -> float | None:
    return None if limit is None or np.isinf(factor) else limit * factor


def _by_quality(question: Question) -> dict[str, tuple[Option, ...]]:
    found: dict[str, tuple[Option, ...]] = {}
    for option in question.space.options:
        precision = option.evaluator.precision
        name = f"{precision.weights}, KV {precision.kv}"
        found[name] = (*found.get(name, ()), option)
    return found


def _rows(question: Question, latency: str, quality: str) -> list[dict[str, object]]:
    found = answer(question)
    apart = found.pairs()
    if len(apart):
        apart = apart.assign(runtime="disaggregated", served_by=apart["prefill"] + " + " + apart["decode"])
    together, prompts = (_aggregated(found, phase) for phase in (AGGREGATED, PREFILL))
    rows: list[dict[str, object]] = []
    for position, request in enumerate(question.request_names):
        shape = question.space.requests[position]
        line: dict[str, object] = {
            "latency": latency,
            "quality": quality,
            "request": request,
            "input_tokens": shape.input_tokens,
            "output_tokens": shape.output_tokens,
        }
        # A single output token leaves nothing to decode: prefill replicas suffice.
        tables = (prompts if shape.output_tokens == 1 else apart, together)
        offered = [part[part["request"] == request] for part in tables if len(part)]
        best = (
            best_rows(pd.concat(offered, ignore_index=True)) if any(len(part) for part in offered) else None
        )
        if best is not None:
            # Without prices, the fastest replaces the cheapest.
            key = "cost" if (best["best_by"] == "cost").any() else "QPS"
            chosen = best[best["best_by"] == key].iloc[0]
            tokens = shape.input_tokens + shape.output_tokens
            line |= {
                "usd_per_million_tokens": chosen["usd_per_million_tokens"],
                "usd_per_thousand_requests": chosen["usd_per_million_tokens"] * tokens / 1e3,
                "kwh_per_million_tokens": chosen["kwh_per_million_tokens"],
                "ttft_ms": chosen["ttft_ms"],
                "tpot_ms": chosen["tpot_ms"],
                "runtime": chosen["runtime"],
                "served_by": chosen["served_by"],
            }
        else:
            line |= {"runtime": "-", "served_by": "nothing meets the limits"}
        rows.append(line)
    return rows


def _aggregated(found: LandscapeAnswer, phase: str) -> pd.DataFrame:
    """Return the configurations of a phase as servers of whole requests."""
    table = found.table(found.phase_points[phase], evidence=False)
    if table.empty:
        return table
    return table.assign(runtime="aggregated", served_by=table["hardware"] + " " + table["config"])
