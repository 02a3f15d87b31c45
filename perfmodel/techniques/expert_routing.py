"""Routing of tokens to experts: number of active experts, and load of the busiest rank.

Decode reads the experts that its tokens activate; prefill waits for the expert-parallel rank with most
tokens. Both scale the time of the routed experts relative to uniform random routing, which the tables of an
even spread and the roofline describe.

`ExpertRouting.balance` sets the load of the busiest rank. Without balancing (none), the tables of the
flattest power law apply, the skew of real traffic that aiconfigurator-core measured. With a load balancer
(eplb), the tables of an even spread apply, at the number of tokens of the busiest rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator, ExpertRouting, Techniques
from fleetplan.fleet.inventory.techniques import (
    ActivationModel,
    ExpertBalance,
    ExpertOverlap,
    ExpertPlacement,
)
from fleetplan.perfmodel.architecture import ModelArchitecture, MoeFfn
from fleetplan.perfmodel.operators import (
    EXPERT_KINDS,
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
    active_experts,
    work,
)
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.optables.formulas.roofline import busy_ms
from fleetplan.perfmodel.optables.measured.experts import EPLB_BUSIEST_RATIO
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps import OperatorTimesSource
from fleetplan.perfmodel.steps.experts import ExpertSpread
from fleetplan.perfmodel.techniques.record import ALL_MODES, LARGEST, Technique, choice, number

EXPERTS_PER_REDUNDANT: Final = 8
"""Experts for which a load balancer places one more copy: 32 for the 256 of DeepSeek-V3. Source: DeepSeek-V3
technical report (arXiv 2412.19437), section 3.4, and LMSYS blog, 5 May 2025: 288 places."""

USUAL_HOST_ACCELERATORS: Final = 8
"""Largest group of accelerators without load balancing of experts: most hosts, or two trays of a rack.
Source: the recipes of NVIDIA/srt-slurm, whose names contain the slots of the load balancer (eplb0 for 4 and 8
accelerators, eplb288 from 16)."""

RANDOM_PLACEMENTS: Final = 512
"""Placements by chance whose busiest rank is averaged: the mean is then known to about 1 %."""

_STEEPEST_EXPONENT: Final = 64.0
_BISECTIONS: Final = 60


def reached_experts(
    routing: ExpertRouting, tokens: IntArray, top_k: IntArray, experts: IntArray
) -> FloatArray:
    """Return the experts that a step reaches, by the activation model of `routing`.

    balanced: min(E, k T). uniform: E (1 - (1 - k/E)^T). log-linear: intercept + slope ln T, never fewer
    than the k of one token nor more than balanced. The three models are those of Meta, Optimizing
    Deployment Configurations for LLM Inference, section 4.5; the parameters of the last are the user's.
    """
    most: FloatArray = np.minimum(experts, top_k * tokens).astype(np.float64)
    match routing.activation:
        case "uniform":
            return active_experts(tokens, top_k, experts)
        case "balanced":
            return most
        case "log-linear":
            assert routing.log_linear_intercept is not None, "the schema asks for both parameters"
            assert routing.log_linear_slope is not None, "the schema asks for both parameters"
            line = routing.log_linear_intercept + routing.log_linear_slope * np.log(np.maximum(tokens, 1))
            reached: FloatArray = np.clip(line, np.minimum(top_k, most), most)
            return reached


def expert_spread(
    routing: ExpertRouting, experts: int, layouts: Layouts, accelerator: Accelerator
) -> ExpertSpread:
    """Return how tokens spread over the accelerators of each layout, and the redundant experts that help.

    Parameters
    ----------
    routing : ExpertRouting
        Its balance; a stated skew (`busiest_expert_ratio`) is counted from an even spread.
    experts : int
        Experts of a layer; 0 without any.
    layouts : Layouts
        Any shape.
    accelerator : Accelerator
        Its host.
    """
    host = max(accelerator.accelerators_per_host, USUAL_HOST_ACCELERATORS)
    everywhere = np.ones(layouts.ep.shape, dtype=np.bool_)
    nothing = np.zeros_like(layouts.ep)
    if routing.busiest_expert_ratio is not None or routing.balance == "perfect":
        return ExpertSpread(everywhere, 1.0, nothing)
    match routing.balance:
        case "none":
            balanced = ~everywhere
        case "eplb":
            balanced = layouts.ep > 1
        case "auto":
            balanced = (layouts.ep > 1) & (layouts.ep * layouts.ffn_tp > host)
    stated = routing.redundant_experts
    copies = -(-experts // EXPERTS_PER_REDUNDANT) if stated is None else stated
    return ExpertSpread(balanced, EPLB_BUSIEST_RATIO, np.where(balanced, copies, 0))


@cache
def expert_shares(experts: int, busiest_ratio: float) -> tuple[float, ...]:
    """Return the share of routed tokens by expert, the busiest first: a power law with the given first share.

    Raises
    ------
    ValueError
        The busiest of `experts` cannot have this share: less than an even one, or all.
    """
    if not 1 / experts <= busiest_ratio < 1:
        raise ValueError(
            f"the busiest of {experts} experts has {1 / experts:.4g} to 1, not {busiest_ratio:g}"
        )
    log_ranks = np.log(np.arange(1, experts + 1))
    low, high = 0.0, _STEEPEST_EXPONENT
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 / np.exp(-middle * log_ranks).sum() > busiest_ratio else (middle, high)
    weights = np.exp(-high * log_ranks)
    return tuple((weights / weights.sum()).tolist())


@cache
def busiest_rank_ratio(experts: int, ranks: int, busiest_ratio: float, placement: ExpertPlacement) -> float:
    """Return the tokens of the busiest expert-parallel rank over an even split; at least 1.

    Parameters
    ----------
    experts, ranks : int
        Experts, distributed over the ranks as evenly as possible.
    busiest_ratio : float
        Share of routed tokens that the busiest expert receives.
    placement : {"mixed", "random", "sorted"}
        Hottest experts to the rank with least load; by chance; in the order of their load (the worst).
    """
    if ranks == 1:
        return 1.0
    each = -(-experts // ranks)
    # Empty slots receive no tokens.
    shares = np.zeros(ranks * each)
    shares[:experts] = expert_shares(experts, busiest_ratio)
    match placement:
        case "sorted":
            busiest = float(shares[:each].sum())
        case "mixed":
            busiest = _mixed_busiest(shares, ranks, each)
        case "random":
            shuffler = np.random.default_rng(0)
            found = [
                shuffler.permutation(shares).reshape(ranks, each).sum(axis=1).max()
                for _ in range(RANDOM_PLACEMENTS)
            ]
            busiest = math.fsum(found) / RANDOM_PLACEMENTS
    return busiest * ranks


def _mixed_busiest(shares: FloatArray, ranks: int, each: int) -> float:
    load, room = np.zeros(ranks), np.full(ranks, each)
    for share in shares:
        rank = int(np.argmin(np.where(room > 0, load, np.inf)))
        load[rank] += share
        room[rank] -= 1
    return float(load.max())


def changes_times(routing: ExpertRouting) -> bool:
    """Return whether a routing changes the times of operators, not only which operators run."""
    return routing.activation != "uniform" or routing.busiest_expert_ratio is not None


@dataclass(frozen=True, slots=True)
class RoutedSource:
    """A source of operator times whose routed experts follow a routing.

    Attributes
    ----------
    source : OperatorTimesSource
        Times for tokens that pick experts evenly and at random.
    accelerator : Accelerator
        For the ratio of memory to compute time, by its roofline.
    routing : ExpertRouting
        Activation model, skew and placement.
    """

    source: OperatorTimesSource
    accelerator: Accelerator
    routing: ExpertRouting

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the time and provenance of an operator; changed ones are extrapolated at best."""
        return self._routed(kind, dtype, dims, self.source.times(kind, dtype, dims))

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the same results for rows of which few are equal."""
        return self._routed(kind, dtype, dims, self.source.times_of_distinct(kind, dtype, dims))

    def _routed(
        self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray], found: OperatorTimes
    ) -> OperatorTimes:
        if kind not in EXPERT_KINDS:
            return found
        ratio = self._time_ratio(kind, dtype, dims)
        changed = np.where(
            ratio == 1.0, found.provenance, np.maximum(found.provenance, Provenance.EXTRAPOLATED)
        )
        return OperatorTimes(found.latency_ms * ratio, changed.astype(np.uint8))

    def _time_ratio(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> FloatArray:
        even = work(kind, dtype, dims)
        tokens, top_k, experts = dims["tokens"], dims["top_k"], dims["experts"]
        reached = active_experts(tokens, top_k, experts)
        reading = reached_experts(self.routing, tokens, top_k, experts) / np.where(reached > 0, reached, 1.0)
        load = self._busiest_ranks(experts, dims["moe_ep"])
        routed = replace(
            even,
            flops=even.flops * load,
            weight_bytes=even.weight_bytes * reading,
            activation_bytes=even.activation_bytes * load,
        )
        before = busy_ms(self.accelerator, kind, dtype, even)
        after = busy_ms(self.accelerator, kind, dtype, routed)
        ratio: FloatArray = after / np.where(before > 0, before, 1.0)
        return ratio

    def _busiest_ranks(self, experts: IntArray, ranks: IntArray) -> FloatArray:
        busiest = self.routing.busiest_expert_ratio
        if busiest is None:
            return np.ones(experts.shape)
        pairs = np.stack([experts.ravel(), ranks.ravel()], axis=1)
        distinct, codes = np.unique(pairs, axis=0, return_inverse=True)
        found = [busiest_rank_ratio(e, r, busiest, self.routing.placement) for e, r in distinct.tolist()]
        loads: FloatArray = np.array(found)[codes.reshape(-1)].reshape(experts.shape)
        return loads


ACTIVATIONS: Final[tuple[ActivationModel, ...]] = ("uniform", "balanced", "log-linear")
PLACEMENTS: Final[tuple[ExpertPlacement, ...]] = ("mixed", "random", "sorted")
BALANCES: Final[tuple[ExpertBalance, ...]] = ("auto", "eplb", "none", "perfect")
OVERLAPS: Final[tuple[ExpertOverlap, ...]] = ("none", "two-batch", "single-batch")

_FIELD_OF_COLUMN: Final = {
    "expert_activation": "activation",
    "expert_placement": "placement",
    "expert_balance": "balance",
}


def _switched(values: Mapping[str, Any]) -> dict[str, Any]:
    routing = {_FIELD_OF_COLUMN.get(name, name): value for name, value in values.items()}
    overlap = routing.pop("expert_overlap", "none")
    return {"experts": ExpertRouting(**routing), "expert_overlap": overlap}


def _refused(cells: Mapping[str, str]) -> Iterator[str]:
    is_log_linear = cells.get("expert_activation", "").lower() == "log-linear"
    if is_log_linear != ("log_linear_slope" in cells):
        yield "log_linear_slope: is for expert_activation log-linear only"
    balance = cells.get("expert_balance", "auto").lower()
    if "busiest_expert_ratio" in cells and balance in {"eplb", "perfect"}:
        yield f"busiest_expert_ratio: cannot be combined with expert_balance {balance}"
    if "redundant_experts" in cells and balance in {"none", "perfect"}:
        yield "redundant_experts: needs expert_balance eplb"


def _problem(architecture: ModelArchitecture, framework: str, techniques: Techniques) -> str:
    busiest = techniques.experts.busiest_expert_ratio
    if techniques.experts == ExpertRouting() and techniques.expert_overlap == "none":
        return ""
    if not any(isinstance(group.ffn, MoeFfn) for group in architecture.groups):
        if techniques.experts == ExpertRouting():
            return f"expert_overlap: {architecture.name} has no experts, so it has no effect"
        return f"experts: {architecture.name} has none, so their routing has no effect"
    for group in architecture.groups:
        if busiest is not None and isinstance(group.ffn, MoeFfn):
            least, most = 1 / group.ffn.experts, 1 / group.ffn.top_k
            # With one expert a token the busiest may receive all but a trace of the others.
            if not least <= busiest <= most or busiest >= 1:
                return (
                    f"busiest_expert_ratio: {busiest:g} is outside {least:.4g} to {most:.4g}, with "
                    f"{group.ffn.experts} experts of which a token uses {group.ffn.top_k}"
                )
    return ""


EXPERTS: Final = Technique(
    {
        "expert_activation": choice(ACTIVATIONS),
        "log_linear_intercept": number(-LARGEST, LARGEST, ALL_MODES, "log_linear_slope"),
        "log_linear_slope": number(0, LARGEST, ALL_MODES, "log_linear_intercept"),
        "busiest_expert_ratio": number(0, 1),
        "expert_placement": choice(PLACEMENTS, "busiest_expert_ratio"),
        "expert_balance": choice(BALANCES),
        "redundant_experts": number(0, 1e4, ALL_MODES, whole=True),
        "expert_overlap": choice(OVERLAPS),
    },
    _switched,
    _refused,
    _problem,
)
"""The record of how tokens reach experts, and of what their travel hides behind."""
