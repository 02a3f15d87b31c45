"""Resolve the traffic of a service: limits under load, burstiness, and files of lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import LatencyLimit, LengthHistogram, Traffic
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.services.length_files import read_lengths
from fleetplan.fleet.schema.fleet import ServiceSpec, WorkloadSpec
from fleetplan.fleet.schema.traffic import SloSpec
from fleetplan.fleet.tables import SINGLE_CLASS

PERCENTILES: Final = (50, 90, 95, 99)
"""Percentiles with keys in `slo`."""


def class_lengths(context: Context, key_path: KeyPath, spec: ServiceSpec) -> dict[str, LengthHistogram]:
    """Return the distribution of lengths by class, for classes that name a file."""
    workload = spec.workload
    if workload is None:
        return {}
    here = (*key_path, "workload")
    files: dict[str, tuple[KeyPath, str]] = {}
    if workload.lengths is not None:
        if workload.classes is not None:
            context.error((*here, "lengths"), "set it either here or in the classes, not in both")
            return {}
        files[SINGLE_CLASS] = ((*here, "lengths"), workload.lengths)
    for name, each in (workload.classes or {}).items():
        if each.lengths is not None:
            files[name] = ((*here, "classes", name, "lengths"), each.lengths)
    found = {name: read_lengths(context, path, reference) for name, (path, reference) in files.items()}
    return {name: lengths for name, lengths in found.items() if lengths is not None}


def with_means(workload: WorkloadSpec, lengths: Mapping[str, LengthHistogram]) -> WorkloadSpec:
    """Return a workload with missing means taken from its file of lengths."""
    if workload.lengths is None or workload.classes is not None:
        return workload
    own = lengths.get(SINGLE_CLASS)
    # If the file has mistakes (reported), any mean allows checking the rest of the service.
    means = {
        "input_tokens": workload.input_tokens or max(1, round(own.mean_input_tokens if own else 1)),
        "output_tokens": workload.output_tokens or max(1, round(own.mean_output_tokens if own else 1)),
    }
    return workload.model_copy(update=means)


def resolve_traffic(
    context: Context, key_path: KeyPath, spec: ServiceSpec, lengths: Mapping[str, LengthHistogram]
) -> Traffic | None:
    """Return the traffic of a service; None if only means are known, and limits then exclude queueing.

    Parameters
    ----------
    context : Context
        Receives issues.
    key_path : KeyPath
        The service.
    spec : ServiceSpec
        Its block.
    lengths : Mapping[str, LengthHistogram]
        Distribution of lengths by class.
    """
    slo = spec.slo
    percentiles = {name: tuple(_percentiles(slo, name)) for name in ("ttft", "tpot")}
    limits_requests = any(percentiles.values()) or slo.goodput_ratio is not None
    if spec.engines is not None and (limits_requests or spec.traffic is not None):
        place = (*key_path, "slo" if limits_requests else "traffic")
        context.error(place, "needs a model: an engine table has no single requests")
        return None
    if slo.goodput_ratio is not None and slo.ttft_ms is None and slo.tpot_ms is None:
        message = "needs ttft_ms or tpot_ms: it is the share of requests that must meet them"
        context.error((*key_path, "slo", "goodput_ratio"), message)
        return None
    if not limits_requests and spec.traffic is None and not lengths:
        return None
    if limits_requests and spec.traffic is None:
        text = "limits single requests without traffic.burstiness: the plan assumes Poisson arrivals"
        context.warn((*key_path, "slo"), text)
    plain = _plain_limits(spec)
    return Traffic(
        burstiness=1.0 if spec.traffic is None else spec.traffic.burstiness,
        ttft=(*percentiles["ttft"], *plain["ttft"]),
        tpot=(*percentiles["tpot"], *plain["tpot"]),
        lengths=tuple(lengths.items()),
        derives_headroom="headroom" not in spec.model_fields_set,
    )


def _plain_limits(spec: ServiceSpec) -> dict[str, tuple[LatencyLimit, ...]]:
    """Return `ttft_ms` and `tpot_ms` as limits under load: for a share of requests, for means, or none."""
    limits = {"ttft": spec.slo.ttft_ms, "tpot": spec.slo.tpot_ms}
    if spec.slo.goodput_ratio is None and spec.traffic is None:
        return dict.fromkeys(limits, ())
    share = spec.slo.goodput_ratio
    return {name: () if limit is None else (LatencyLimit(share, limit),) for name, limit in limits.items()}


def _percentiles(slo: SloSpec, name: str) -> Iterator[LatencyLimit]:
    for percentile in PERCENTILES:
        limit = getattr(slo, f"{name}_p{percentile}_ms")
        if limit is not None:
            yield LatencyLimit(percentile / 100, limit)


def smallest_limit_ms(slo: SloSpec, name: str) -> float | None:
    """Return the smallest limit on `ttft` or `tpot`, which every configuration must meet without load."""
    limits = [limit.limit_ms for limit in _percentiles(slo, name)]
    mean = slo.ttft_ms if name == "ttft" else slo.tpot_ms
    return min([*limits, *([] if mean is None else [mean])], default=None)
