"""Pruning of candidates that another one can always replace, and of no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from fleetplan.fleet.inventory import Hardware
from fleetplan.planner.problem import Candidate, ConfigurationKey, Phase
from fleetplan.planner.rejections import DOMINATED, RejectionLog


def prune_dominated(
    candidates: Sequence[Candidate],
    hardware: Mapping[str, Hardware],
    log: RejectionLog,
    keep: Collection[ConfigurationKey] = (),
) -> list[Candidate]:
    """Leave out candidates that another one of the same service, phase and hardware can always replace.

    A replaces B where B's accelerators are a whole multiple m of A's and m replicas of A carry at least
    B's rate in every class at no more power: every plan with B turns into one with A on the same
    accelerators of the same hosts. Rows of the model count accelerators and watts additively, so this is
    exact.

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
    """
    kept: list[Candidate] = []
    groups: dict[tuple[Phase, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.phase, candidate.hardware].append(candidate)
    for (_, name), group in groups.items():
        per_host = hardware[name].accelerators_per_host
        # A candidate that replaces another stands before it: fewer accelerators first, then higher rates.
        ordered = sorted(
            group, key=lambda c: (c.accelerators, [-rate for rate in c.requests_per_s], c.power_kw or 0.0)
        )
        survivors: list[Candidate] = []
        for candidate in ordered:
            dominated = any(replaces(other, candidate, per_host) for other in survivors)
            if dominated and candidate.key not in keep:
                log.add(candidate.service, candidate.hardware, DOMINATED)
            else:
                survivors.append(candidate)
        kept.extend(survivors)
    return kept


def replaces(a: Candidate, b: Candidate, accelerators_per_host: int) -> bool:
    """Whether whole replicas of `a` can stand wherever one of `b` does."""
    multiple, rest = divmod(b.accelerators, a.accelerators)
    if rest or multiple == 0 or (a.power_kw is None) != (b.power_kw is None):
        return False
    # A replica that spans hosts leaves no gaps for parts that do not divide a host (three of 5 need three
    # hosts of 8, one of 15 needs two).
    spans_hosts = b.accelerators > accelerators_per_host
    divides = accelerators_per_host % a.accelerators == 0 or a.accelerators % accelerators_per_host == 0
    if spans_hosts and multiple > 1 and not divides:
        return False
    # Power is rounded up by accelerator; equal watts an accelerator stay equal after rounding.
    watts_a, watts_b = ((c.power_kw or 0.0) / c.accelerators for c in (a, b))
    if watts_a > watts_b * (1 + 1e-12):
        return False
    return all(
        multiple * rate_a >= rate_b for rate_a, rate_b in zip(a.requests_per_s, b.requests_per_s, strict=True)
    )
