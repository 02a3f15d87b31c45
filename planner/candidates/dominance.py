"""Exact pruning of dominated candidates: only those that another one can replace in every plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from fleetplan.fleet.inventory import Hardware
from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.candidates.rejections import DOMINATED, RejectionLog
from fleetplan.planner.problem import Candidate, ConfigurationKey, Phase


def prune_dominated(
    candidates: Sequence[Candidate],
    hardware: Mapping[str, Hardware],
    log: RejectionLog,
    keep: Collection[ConfigurationKey] = (),
    ways: Callable[[Candidate, int], int] = lambda _, __: 0,
) -> list[Candidate]:
    """Remove candidates that another one of the same variant, phase and hardware can always replace.

    A replaces B if B's accelerators are a whole multiple m of A's, m replicas of A carry at least B's rate in
    every class at no more power, A serves over all the round trips that B can, and its caches to hand over
    are no larger. Then every plan with B becomes one with A on the same accelerators of the same hosts. Model
    rows count accelerators and watts additively, so this is exact.

    Parameters
    ----------
    candidates : Sequence[Candidate]
        All candidates of one service.
    hardware : Mapping[str, Hardware]
        Gives the accelerators per host.
    log : RejectionLog
        Receives the number of removed candidates.
    keep : Collection[ConfigurationKey]
        Candidates to keep in any case.
    ways : callable
        Number of round trips to other regions, from the shortest on, over which a candidate can serve a
        class.
    """
    kept: list[Candidate] = []
    groups: dict[tuple[Phase, str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.phase, candidate.hardware, candidate.variant].append(candidate)
    for (_, name, _), group in groups.items():
        per_host = hardware[name].accelerators_per_host
        # A candidate that replaces another precedes it: fewer accelerators first, then higher rates.
        ordered = sorted(
            group, key=lambda c: (c.accelerators, [-rate for rate in c.requests_per_s], c.power_kw or 0.0)
        )
        survivors: list[Candidate] = []
        for candidate in ordered:
            dominated = any(
                replaces(other, candidate, per_host) and _reaches_as_far(other, candidate, ways)
                for other in survivors
            )
            if dominated and candidate.key not in keep:
                log.add(candidate.service, candidate.hardware, DOMINATED)
            else:
                survivors.append(candidate)
        kept.extend(survivors)
    return kept


def _reaches_as_far(a: Candidate, b: Candidate, ways: Callable[[Candidate, int], int]) -> bool:
    """Return whether `a` serves every class over the round trips of `b`, with no larger caches."""
    classes = [k for k, rate in enumerate(b.requests_per_s) if rate > 0]
    if any(ways(a, k) < ways(b, k) for k in classes):
        return False
    if not a.kv_gb and not b.kv_gb:
        return True
    caches = [(a.kv_gb[k] if a.kv_gb else None, b.kv_gb[k] if b.kv_gb else None) for k in classes]
    return all(
        one == other or (one is not None and other is not None and one <= other) for one, other in caches
    )


def replaces(a: Candidate, b: Candidate, accelerators_per_host: int) -> bool:
    """Return whether whole replicas of `a` fit wherever a replica of `b` does."""
    multiple = _replicas_in_place(a.accelerators, b.accelerators, accelerators_per_host)
    if not multiple or (a.power_kw is None) != (b.power_kw is None):
        return False
    # Power is rounded up per accelerator; equal watts per accelerator stay equal after rounding.
    for kw_a, kw_b in ((a.power_kw, b.power_kw), (a.charged_kw, b.charged_kw)):
        if (kw_a or 0.0) / a.accelerators > (kw_b or 0.0) / b.accelerators * (1 + 1e-12):
            return False
    rates = zip(a.requests_per_s, b.requests_per_s, strict=True)
    if not a.pooling and not b.pooling:
        return all(multiple * rate_a >= rate_b for rate_a, rate_b in rates)
    return all(rate_b == 0 or _carries(a, rate_a, b, rate_b, multiple) for rate_a, rate_b in rates)


def _replicas_in_place(a: int, b: int, accelerators_per_host: int) -> int:
    """Return how many replicas of `a` accelerators fill the place of one of `b`; 0 if they do not fill it."""
    multiple, rest = divmod(b, a)
    if rest:
        return 0
    # A replica that spans hosts leaves no gaps for replicas that do not divide a host (three of 5 need three
    # hosts of 8, one of 15 needs two).
    divides = accelerators_per_host % a == 0 or a % accelerators_per_host == 0
    return 0 if b > accelerators_per_host and multiple > 1 and not divides else multiple


def undominated(
    accelerators: Sequence[int], requests_per_s: Sequence[float], accelerators_per_host: int
) -> list[int]:
    """Find configurations of one phase and hardware that no other can always replace.

    The same rule as `prune_dominated`, before candidates are built, for configurations that carry their rates
    in pools of any size and do not serve other regions.

    Parameters
    ----------
    accelerators, requests_per_s : Sequence
        Accelerators and rate of one replica of each configuration.
    accelerators_per_host : int
        Accelerators per host of the hardware.

    Returns
    -------
    list[int]
        Positions of these configurations, ascending.
    """
    order = sorted(range(len(accelerators)), key=lambda at: (accelerators[at], -requests_per_s[at]))
    survivors: list[int] = []
    for at in order:
        size, rate = accelerators[at], requests_per_s[at]
        if not any(
            _replicas_in_place(accelerators[other], size, accelerators_per_host) * requests_per_s[other]
            >= rate
            for other in survivors
        ):
            survivors.append(at)
    return sorted(survivors)


def _carries(a: Candidate, rate_a: float, b: Candidate, rate_b: float, multiple: int) -> bool:
    """Return whether pools with `multiple` times as many replicas of `a` carry no less than those of `b`."""
    whole = CapacityLine(1.0, 0.0)
    return all(
        any(
            multiple * rate_a * line_a.slope >= rate_b * line_b.slope
            and rate_a * line_a.loss <= rate_b * line_b.loss
            and line_a.least <= multiple * line_b.least
            for line_a in a.pooling or (whole,)
        )
        for line_b in b.pooling or (whole,)
    )
