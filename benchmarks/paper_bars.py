"""What the model must reproduce of the paper, row by row, each with its bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np
from benchmarks.paper_cases import (
    ONLINE,
    Catalogue,
    ContinuousRate,
    DisaggregatedRates,
    architecture,
    configurations,
    decode_rates,
    evaluator,
    prefill_rates,
    refusal,
)
from tests.perfmodel.paper_tables import HETEROGENEOUS, OUTPUT_TOKENS

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.evaluator import disaggregated_requests_per_s
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.steps import decode_shape

NEXT_GENERATION: Final = "NextGen"
FIGURE_BATCH: Final = 64
"""Sequences of Figures 12b and 13; of an attention-DP rank where there are several. [sequences]"""

DENSE_TP8_REQUESTS_PER_S: Final = 210.0
DENSE_TP16_TO_TP8: Final = 0.40
PREFILL_TP4_TO_TP2: Final = 0.80
ALL_REDUCE_GROWTH: Final = 3.0
"""Section 4.5: "AllReduce costs triple" from TP8 to TP16."""

MAVERICK: Final = {"TP8": 618.0, "TP16": 329.0, "TP8DP2-TP8EP2": 608.0, "TP4DP4-TP4EP4": 899.0}
"""Figure 13. [1/s]"""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure and its bar: it is met within `low` and `high`.

    Attributes
    ----------
    section, name : str
        Where it stands in the report.
    ours : float
        Our figure.
    low, high : float
        The bar.
    paper : float or None
        The paper's figure; None for a median of errors and for an order.
    refused : str
        Why `plan predict` does not take a layout of it; such a figure is shown and not counted.
    """

    section: str
    name: str
    ours: float
    low: float
    high: float
    paper: float | None = None
    refused: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is a figure of a configuration that can run."""
        return not self.refused

    @property
    def met(self) -> bool:
        """Whether our figure is within the bar."""
        return self.low <= self.ours <= self.high

    @property
    def error(self) -> float | None:
        """Ours over the paper's, less one."""
        return None if not self.paper else self.ours / self.paper - 1.0


def near(section: str, name: str, ours: float, paper: float, ratio: float) -> Check:
    """Check a figure that may differ from the paper's by a share of it."""
    return Check(section, name, ours, paper * (1 - ratio), paper * (1 + ratio), paper)


def _median(section: str, checks: Sequence[Check], limit: float) -> Check:
    errors = [abs(check.error) for check in checks if check.error is not None]
    return Check(section, "median error", median(errors), 0.0, limit)


def _refused(row: DisaggregatedRates | ContinuousRate, *labels: str) -> str:
    return refusal(architecture(row.row.model), accelerators()[row.row.hardware], labels)


def _name(row: DisaggregatedRates | ContinuousRate) -> str:
    return f"{row.row.table} {row.row.model} {row.row.hardware}"


def disaggregated_checks(found: Sequence[DisaggregatedRates]) -> Iterator[Check]:
    """Tables 6 and 7, rows that are fitted, and Next-Gen, which is not."""
    fitted = [each for each in found if each.row.hardware != NEXT_GENERATION]
    section = "Tables 6 and 7, disaggregated, requests/s"
    rates = [
        replace(
            near(section, _name(r), r.requests_per_s, r.row.requests_per_s, 0.10),
            refused=_refused(r, r.row.prefill, r.row.decode),
        )
        for r in fitted
    ]
    yield from (*rates, _median(section, rates, 0.03))
    section = "Tables 6 and 7, prefill, requests/s"
    for each in fitted:
        name = f"{_name(each)} {each.row.prefill}"
        found_here = near(section, name, each.prefill_requests_per_s, each.row.prefill_requests_per_s, 0.08)
        yield replace(found_here, refused=_refused(each, each.row.prefill))
    section = "Tables 6 and 7, decode, requests/s"
    decode = [
        replace(
            near(
                section,
                f"{_name(each)} {each.row.decode} b{each.row.batch}",
                each.decode_requests_per_s,
                each.row.decode_requests_per_s,
                0.14,
            ),
            refused=_refused(each, each.row.decode),
        )
        for each in fitted
    ]
    yield from (*decode, _median(section, decode, 0.04))
    section = "Tables 6 and 7, Next-Gen with GPU-B's constants, disaggregated, requests/s"
    for each in found:
        if each.row.hardware == NEXT_GENERATION:
            rate = near(section, _name(each), each.requests_per_s, each.row.requests_per_s, 0.16)
            yield replace(rate, refused=_refused(each, each.row.prefill, each.row.decode))


def continuous_checks(
    disaggregated: Sequence[DisaggregatedRates], continuous: Sequence[ContinuousRate]
) -> Iterator[Check]:
    """Continuous batching, never fitted, and what disaggregation gains over it."""
    section = "Tables 6 and 7, continuous batching, requests/s"
    rates = [
        replace(
            near(
                section,
                f"{_name(r)} {r.row.setup} b{r.row.batch}",
                r.requests_per_s,
                r.row.requests_per_s,
                0.13,
            ),
            refused=_refused(r, r.row.setup),
        )
        for r in continuous
    ]
    yield from (*rates, _median(section, rates, 0.06))
    section = "Disaggregated over continuous batching"
    for apart, fused in zip(disaggregated, continuous, strict=True):
        ours = apart.requests_per_s / fused.requests_per_s
        paper = apart.row.requests_per_s / fused.row.requests_per_s
        refused = _refused(apart, apart.row.prefill, apart.row.decode, fused.row.setup)
        yield replace(near(section, _name(apart), ours, paper, 0.10), refused=refused)
        low, high = (1.3, np.inf) if apart.row.table == ONLINE else (0.9, 1.1)
        yield Check(section, f"{_name(apart)}, range", ours, low, high, paper, refused)


def heterogeneous_checks(found: Sequence[DisaggregatedRates]) -> Iterator[Check]:
    """Table 8: prefill on one hardware, decode on another."""
    section = "Table 8, 405B online, requests/s"
    phases = {
        each.row.hardware: each
        for each in found
        if (each.row.table, each.row.model) == (ONLINE, "llama3-405b")
    }
    rates = {}
    for row in HETEROGENEOUS:
        prefill = np.array([phases[row.prefill_hardware].prefill_requests_per_s])
        decode = np.array([phases[row.decode_hardware].decode_requests_per_s])
        name = f"{row.prefill_hardware} prefill, {row.decode_hardware} decode"
        rates[name] = float(disaggregated_requests_per_s(prefill, decode)[0])
        yield near(section, name, rates[name], row.requests_per_s, 0.06)
    worst, *others = rates.values()
    # The paper's 41 against 65: clearly worst is at most three quarters of the next.
    yield Check(section, "GPU-A alone over the next worst", worst / min(others), 0.0, 0.75, 41 / 65)


def all_reduce_growth(part: Accelerator) -> float:
    """Return the all-reduce time of 405B decode under TP16 over that under TP8."""
    asked = configurations(
        [parse_parallelism("TP8"), parse_parallelism("TP16")],
        [FIGURE_BATCH] * 2,
        [OUTPUT_TOKENS[ONLINE]] * 2,
    )
    times = evaluator(architecture("llama3-405b"), part).step(decode_shape(asked))
    rows = [row for name, row in zip(times.names, times.breakdown_ms, strict=True) if "all_reduce" in name]
    eight, sixteen = np.sum(rows, axis=0)
    return float(sixteen / eight)


def figure_checks(part: Accelerator) -> Iterator[Check]:
    """Figures 9a, 12b and 13, all on GPU-A."""
    section = "Figures 9a, 12b and 13 on GPU-A"
    tp4, tp2 = prefill_rates("llama3-70b", part, ("PP2-TP4", "PP4-TP2"))
    name = "9a: 70B prefill, TP4PP2 over TP2PP4"
    yield Check(section, name, tp4 / tp2, 0.76, 0.84, PREFILL_TP4_TO_TP2)
    eight, sixteen = decode_rates("llama3-405b", part, ("TP8", "TP16"), FIGURE_BATCH)
    yield near(section, "12b: 405B decode TP8, requests/s", eight, DENSE_TP8_REQUESTS_PER_S, 0.08)
    yield Check(section, "12b: 405B decode, TP16 over TP8", sixteen / eight, 0.32, 0.48, DENSE_TP16_TO_TP8)
    name = "405B decode all-reduce time, TP16 over TP8"
    yield Check(section, name, all_reduce_growth(part), 2.5, 4.0, ALL_REDUCE_GROWTH)
    rates = decode_rates("llama4-maverick", part, tuple(MAVERICK), FIGURE_BATCH)
    for (label, paper), ours in zip(MAVERICK.items(), rates.tolist(), strict=True):
        figure = near(section, f"13: Maverick decode {label}, requests/s", ours, paper, 0.10)
        yield replace(figure, refused=refusal(architecture("llama4-maverick"), part, (label,)))
    same_order = np.array_equal(np.argsort(rates), np.argsort(list(MAVERICK.values())))
    yield Check(section, "13: Maverick in the paper's order (1 is yes)", float(same_order), 1.0, 1.0)


def table_checks(
    parts: Catalogue, disaggregated: Sequence[DisaggregatedRates], continuous: Sequence[ContinuousRate]
) -> Iterator[Check]:
    """All checks but those of the search."""
    yield from disaggregated_checks(disaggregated)
    yield from continuous_checks(disaggregated, continuous)
    yield from heterogeneous_checks(disaggregated)
    yield from figure_checks(parts["GPU-A"])
