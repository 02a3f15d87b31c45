"""When does it pay to keep prefill and decode apart, and how do our best setups stand beside a peer's?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import (
    AGGREGATED,
    DECODE,
    PREFILL,
    LatencyTarget,
    Option,
    Points,
    RequestShape,
    SearchSpace,
    SweepSpace,
    sweep,
)

STUDY_HARDWARE: Final = "H200-SXM"
STUDY_PRECISION: Final = Precision("fp8", "bf16")

MODELS: Final = ("llama3-8b", "llama3-70b", "llama3-405b")

TRAFFIC: Final = (
    RequestShape(8000, 100),
    RequestShape(4000, 200),
    RequestShape(2000, 500),
    RequestShape(1000, 1000),
    RequestShape(500, 2000),
)
"""From prefill-heavy (80 prompt tokens an output token) to decode-heavy (a quarter)."""

LIMITS: Final = {
    "tight (TTFT 1 s, TPOT 30 ms)": LatencyTarget(1000.0, 30.0),
    "chat (TTFT 2 s, TPOT 60 ms)": LatencyTarget(2000.0, 60.0),
    "relaxed (TTFT 10 s, TPOT 200 ms)": LatencyTarget(10_000.0, 200.0),
    "none": LatencyTarget(),
}

PEER_DISAGGREGATED_TOKENS_PER_S: Final = (332.0, 360.0)
PEER_ACCELERATORS: Final = (8, 32)
PEER_AGGREGATED_TOKENS_PER_S: Final = 283.0
"""Output tokens a second and accelerator that aiconfigurator's own model gives for Llama 70B on H200, 2,000
tokens in, 150 out, TTFT 350 ms, TPOT 30 ms, on 8 to 32 accelerators."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """The two runtimes for one model, traffic and limit.

    Attributes
    ----------
    model : str
        Which model.
    request : RequestShape
        Which traffic.
    limits : str
        A key of `LIMITS`.
    disaggregated, aggregated : float
        Best requests a second and accelerator; 0 where nothing meets the limits. [1/s]
    """

    model: str
    request: RequestShape
    limits: str
    disaggregated: float
    aggregated: float

    @property
    def gain(self) -> float:
        """Disaggregated over aggregated; infinite where only the former meets the limits."""
        if self.aggregated:
            return self.disaggregated / self.aggregated
        return np.inf if self.disaggregated else np.nan


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One runtime beside the peer.

    Attributes
    ----------
    name : str
        Runtime and setup.
    tokens_per_s : float
        Output tokens a second and accelerator. [1/s]
    peer : str
        What the peer's model gives.
    """

    name: str
    tokens_per_s: float
    peer: str


@cache
def option(model: str) -> Option:
    """Return a model on the hardware of the study, without prices."""
    part = accelerators()[STUDY_HARDWARE]
    return Option(STUDY_HARDWARE, build_evaluator(model, part, "vllm", STUDY_PRECISION, Path()), None, None)


def study() -> list[StudyRow]:
    """Disaggregated and aggregated serving over traffic, model size and limits."""
    rows = []
    for model in MODELS:
        for name, target in LIMITS.items():
            space = SweepSpace((option(model),), TRAFFIC, target, SearchSpace())
            found = sweep(space).candidates
            for position, request in enumerate(TRAFFIC):
                own = found.take(found.request == position)
                apart = best_rate(own, PREFILL), best_rate(own, DECODE)
                disaggregated = 1.0 / (1.0 / apart[0] + 1.0 / apart[1]) if min(apart) > 0 else 0.0
                rows.append(StudyRow(model, request, name, disaggregated, best_rate(own, AGGREGATED)))
    return rows


def best_rate(points: Points, phase: str) -> float:
    """Highest rate of a phase a second and accelerator; 0 without any point. [1/s]."""
    own = points.requests_per_s_per_accelerator[points.phase == phase]
    return float(own.max()) if own.size else 0.0


@dataclass(frozen=True, slots=True)
class WholePair:
    """Whole replicas of both phases.

    Attributes
    ----------
    name : str
        Replicas and layouts.
    requests_per_s_per_accelerator : float
        The slower phase's rate over all accelerators. [1/s]
    """

    name: str
    requests_per_s_per_accelerator: float


def best_whole_pair(prefill: Points, decode: Points) -> WholePair:
    """Best pair of whole prefill and decode replicas on so many accelerators as the peer may use."""
    best = WholePair("nothing fits", 0.0)
    for first in range(prefill.count):
        for second in range(decode.count):
            sizes = prefill.layout[first].accelerators, decode.layout[second].accelerators
            for replicas in range(1, PEER_ACCELERATORS[1] // sizes[0] + 1):
                left = PEER_ACCELERATORS[1] - replicas * sizes[0]
                others = np.arange(1, left // sizes[1] + 1)
                total = replicas * sizes[0] + others * sizes[1]
                others, total = others[total >= PEER_ACCELERATORS[0]], total[total >= PEER_ACCELERATORS[0]]
                if not others.size:
                    continue
                slower = np.minimum(
                    replicas * sizes[0] * prefill.requests_per_s_per_accelerator[first],
                    others * sizes[1] * decode.requests_per_s_per_accelerator[second],
                )
                at = int(np.argmax(slower / total))
                rate = float(slower[at] / total[at])
                if rate > best.requests_per_s_per_accelerator:
                    names = [
                        f"{part.layout[row].label} b{part.batch[row]}"
                        for part, row in ((prefill, first), (decode, second))
                    ]
                    best = WholePair(f"{replicas} x {names[0]} + {others[at]} x {names[1]}", rate)
    return best


def beside_the_peer() -> list[PeerRow]:
    """Llama 70B on H200: our best setups of 8 to 32 accelerators beside the peer's."""
    request, target = RequestShape(2000, 150), LatencyTarget(350.0, 30.0)
    rows = []
    for weights in ("fp8", "bf16"):
        part = accelerators()[STUDY_HARDWARE]
        evaluator = build_evaluator("llama3-70b", part, "vllm", Precision(weights, "bf16"), Path())
        own = Option(STUDY_HARDWARE, evaluator, None, None)
        search = SearchSpace(max_accelerators=32)
        space = SweepSpace((own,), (request,), target, search)
        found = sweep(space).candidates
        prefill, decode = (found.take(found.phase == phase) for phase in (PREFILL, DECODE))
        low, high = PEER_DISAGGREGATED_TOKENS_PER_S
        best = best_whole_pair(prefill, decode)
        rows.append(
            PeerRow(
                f"{weights} disaggregated, {best.name}",
                best.requests_per_s_per_accelerator * request.output_tokens,
                f"{low:g}-{high:g}",
            )
        )
        rates = best_rate(found, PREFILL), best_rate(found, DECODE)
        rows.append(
            PeerRow(
                f"{weights} disaggregated, in a large pool",
                1.0 / (1.0 / rates[0] + 1.0 / rates[1]) * request.output_tokens,
                "-",
            )
        )
        together = found.take(found.phase == AGGREGATED)
        at = int(np.argmax(together.requests_per_s_per_accelerator))
        rows.append(
            PeerRow(
                f"{weights} aggregated, {together.layout[at].label} b{together.batch[at]}",
                float(together.requests_per_s_per_accelerator[at]) * request.output_tokens,
                f"{PEER_AGGREGATED_TOKENS_PER_S:g}",
            )
        )
    return rows
