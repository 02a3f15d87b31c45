"""Sources of the plan's figures in the report: evidence, published errors and excluded configurations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetplan.perfmodel.landscape import REASON_TEXTS
from fleetplan.planner.plan import Plan, Rejections

KINDS = ("measured", "interpolated", "extrapolated", "roofline", "given")
"""From the strongest evidence to the weakest; `given` marks rates stated by the user."""


@dataclass(frozen=True, slots=True)
class ShareBar:
    """Shares that add up to one, in the order of `KINDS`."""

    name: str
    usd: float
    shares: tuple[tuple[str, float], ...]


def share_bars(plan: Plan) -> tuple[ShareBar, ...]:
    """Return the evidence behind the whole spend, then behind each hardware, the most expensive first."""
    by_hardware: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    usd: dict[str, float] = defaultdict(float)
    for row in plan.placements:
        usd[row.hardware] += row.usd
        for kind, share in row.provenance.items():
            by_hardware[row.hardware][kind] += share * row.usd
    bars = [ShareBar("all", sum(usd.values()), _ordered(plan.provenance.spend_share))]
    for name in sorted(usd, key=lambda each: -usd[each]):
        if usd[name] > 0:
            shares = {kind: spent / usd[name] for kind, spent in by_hardware[name].items()}
            bars.append(ShareBar(name, usd[name], _ordered(shares)))
    return tuple(bars)


def _ordered(shares: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple((kind, shares[kind]) for kind in KINDS if shares.get(kind, 0.0) > 0)


@dataclass(frozen=True, slots=True)
class ExcludedConfigurations:
    """Excluded configurations of a service.

    Attributes
    ----------
    service : str
        Name of the service.
    total : int
        Number of excluded configurations.
    reasons : tuple[tuple[str, int], ...]
        Reasons and their counts, most frequent first.
    by_hardware : tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
        The same reasons and counts for each hardware.
    """

    service: str
    total: int
    reasons: tuple[tuple[str, int], ...]
    by_hardware: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


REASONS = {**REASON_TEXTS, "dominated": "another configuration is at least as good in every figure"}
"""Explanations of abbreviated reasons."""


def left_out(rows: tuple[Rejections, ...]) -> tuple[ExcludedConfigurations, ...]:
    """Return the reasons for exclusion in words, one row per service."""
    return tuple(
        ExcludedConfigurations(
            row.service,
            sum(row.counts.values()),
            _in_words(row.counts),
            tuple((name, _in_words(counts)) for name, counts in row.by_hardware.items()),
        )
        for row in rows
    )


def _in_words(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (REASONS.get(reason, reason), count)
        for reason, count in sorted(counts.items(), key=lambda item: -item[1])
    )
