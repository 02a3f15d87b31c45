"""Pruning of candidates that another one can always replace, and of no others."""

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
    """Leave out candidates that another one of the same variant, phase and hardware can always replace.

    A replaces B where B's accelerators are a whole multiple m of A's and m replicas of A carry at least
    B's rate in every class at no more power, over all the ways that B can serve in time, handing over no
    larger caches: every plan with B turns into one with A on the same accelerators of the same hosts. Rows
    of the model count accelerators and watts additively, so this is exact.

    Parameters
    ----------
    candidates : Sequence[Candidate]
        All of one service.
    hardware : Mapping[str, Hardware]
        Gives the accelerators of a host.
    log : RejectionLog
        Receives the count of those left out.
    keep : Collection[ConfigurationKey]
        Never left out.
    ways : callable
        How many of the ways to other regions, from the shortest on, a candidate can serve a class over.
    """
    kept: list[Candidate] = []
    groups: dict[tuple[Phase, str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.phase, candidate.hardware, candidate.variant].append(candidate)
    for (_, name, _), group in groups.items():
        per_host = hardware[name].accelerators_per_host
        # A candidate that replaces another stands before it: fewer accelerators first, then higher rates.
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
    """Whether `a` serves every class over the ways that `b` does, and hands over no larger caches."""
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
    """Whether whole replicas of `a` can stand wherever one of `b` does."""
    multiple = _replicas_in_place(a.accelerators, b.accelerators, accelerators_per_host)
    if not multiple or (a.power_kw is None) != (b.power_kw is None):
        return False
    # Power is rounded up by accelerator; equal watts an accelerator stay equal after rounding.
    for kw_a, kw_b in ((a.power_kw, b.power_kw), (a.charged_kw, b.charged_kw)):
        if (kw_a or 0.0) / a.accelerators > (kw_b or 0.0) / b.accelerators * (1 + 1e-12):
            return False
    rates = zip(a.requests_per_s, b.requests_per_s, strict=True)
    if not a.pooling and not b.pooling:
        return all(multiple * rate_a >= rate_b for rate_a, rate_b in rates)
    return all(rate_b == 0 or _carries(a, rate_a, b, rate_b, multiple) for rate_a, rate_b in rates)


def _replicas_in_place(a: int, b: int, accelerators_per_host: int) -> int:
    """How many whole replicas of `a` accelerators can stand wherever one of `b` does; 0 if not all of it."""
    multiple, rest = divmod(b, a)
    if rest:
        return 0
    # A replica that spans hosts leaves no gaps for parts that do not divide a host (three of 5 need three
    # hosts of 8, one of 15 needs two).
    divides = accelerators_per_host % a == 0 or a % accelerators_per_host == 0
    return 0 if b > accelerators_per_host and multiple > 1 and not divides else multiple


def undominated(
    accelerators: Sequence[int], requests_per_s: Sequence[float], accelerators_per_host: int
) -> list[int]:
    """Find configurations of one phase on one hardware that no other one can always replace.

    What `prune_dominated` says of candidates that carry their rates in pools of any size, and whose way to
    other regions does not count, before these are made of them.

    Parameters
    ----------
    accelerators, requests_per_s : Sequence
        Of a replica of each.
    accelerators_per_host : int
        Of the hardware.

    Returns
    -------
    list[int]
        Their positions, in rising order.
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
    """Whether pools of `multiple` times as many replicas of `a` carry what pools of `b` do, of any size."""
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
