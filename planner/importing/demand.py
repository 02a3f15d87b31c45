"""Derive the demand of a fleet file from monitoring: rates, lengths, burstiness and daily profile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.catalog.models import UnknownModelError, resolve
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.resolve.services.length_files import HISTOGRAM_COLUMNS
from fleetplan.fleet.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.planner.importing.fragments import check_characters, plain_name
from fleetplan.planner.importing.prometheus import Answers, Series
from fleetplan.planner.importing.records import RejectedRowError

LONGEST_STEP_S: Final = 60
"""Maximum step for estimating burstiness from counts; in longer steps the rate itself changes. [s]"""
FEWEST_STEPS: Final = 60
LEAST_SHARE: Final = 1e-6
"""Minimum share of requests of a length cell; rarer cells are left out."""
LEAST_BURSTINESS: Final = 0.1


@dataclass(frozen=True, slots=True)
class DemandOptions:
    """Options for deriving demand from rates.

    Attributes
    ----------
    service_label : str
        Label with the name of the model.
    region_label : str or None
        Label with the name of the region.
    region : str or None
        Region of series without a region label.
    percentile : float
        Percentile of the rates of a slice that becomes its demand. [%]
    slices : int
        Number of equal slices of the day (UTC).
    source : str
        Name of the source of the rates, for a comment.
    """

    service_label: str
    region_label: str | None
    region: str | None
    percentile: float
    slices: int
    source: str


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """Tokens of requests: the mean, and shares of ranges [from, to). [tokens]"""

    mean: float
    bins: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class ObservedService:
    """Monitored figures of a service.

    Attributes
    ----------
    name, label : str
        Name in the fleet file, and label in the metrics.
    by_slice : Mapping[str | None, tuple[float, ...]]
        Rate by region and slice; 0 without readings. [requests/s]
    unread : tuple[int, ...]
        Slices without readings.
    mean_per_s : float
        Mean rate over all regions. [requests/s]
    burstiness : float or None
        Index of dispersion; None if steps are too long or too few.
    prompts, outputs : TokenLengths or None
        Token lengths; None if the metrics lack them.
    hit_ratio : float or None
        Share of prompt tokens found in the prefix cache.
    """

    name: str
    label: str
    by_slice: Mapping[str | None, tuple[float, ...]]
    unread: tuple[int, ...]
    mean_per_s: float
    burstiness: float | None
    prompts: TokenLengths | None
    outputs: TokenLengths | None
    hit_ratio: float | None


def observed_rates(
    answers: Answers, options: DemandOptions
) -> list[tuple[str, str | None, FloatArray, FloatArray]]:
    """Return service, region, times [s] and rates [requests/s] for all services with requests.

    Raises
    ------
    InputError
        A label contains control characters.
    """
    return [
        (plain_name(label), plain_name(region) if region else None, *_summed(series))
        for label, regions in sorted(_by_service(answers, options).items())
        for region, series in regions.items()
    ]


def observed_services(answers: Answers, options: DemandOptions) -> tuple[ObservedService, ...]:
    """Return every service with requests, in the order of their labels.

    Raises
    ------
    InputError
        No series has a service label, or none has requests.
    """
    found = [
        service
        for label, regions in sorted(_by_service(answers, options).items())
        if (service := _service(label, regions, answers, options)) is not None
    ]
    if not found:
        message = f"no series with requests has the label {options.service_label}"
        hint = "labels are those of the system's metrics: --system, --service-label, --days"
        raise InputError([Issue(options.source, 0, 0, "requests", message, hint)])
    mixed = [each.label for each in found if None in each.by_slice and len(each.by_slice) > 1]
    if mixed:
        message = f"{mixed[0]}: some series have no label {options.region_label}"
        raise InputError([Issue(options.source, 0, 0, "requests", message, "give their --region")])
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise InputError([Issue(options.source, 0, 0, "requests", "labels differ only in punctuation")])
    return tuple(found)


def _by_service(answers: Answers, options: DemandOptions) -> dict[str, dict[str | None, list[Series]]]:
    """Return the series of requests by label of the service and region."""
    found: dict[str, dict[str | None, list[Series]]] = {}
    for each in answers["requests"]:
        label = each.labels.get(options.service_label)
        if not label or not each.value.size:
            continue
        region = each.labels.get(options.region_label or "", options.region or "") or None
        _check(label, region, options)
        found.setdefault(label, {}).setdefault(region, []).append(each)
    return found


def _check(label: str, region: str | None, options: DemandOptions) -> None:
    try:
        check_characters([(options.service_label, label), ("region", region or "")])
    except RejectedRowError as error:
        raise InputError([Issue(options.source, 0, 0, "requests", str(error))]) from error


def _service(
    label: str, regions: Mapping[str | None, list[Series]], answers: Answers, options: DemandOptions
) -> ObservedService | None:
    rates = {region: _summed(series) for region, series in regions.items()}
    means = [float(value.mean()) for _, value in rates.values()]
    if sum(means) <= 0:
        return None
    read = {int(part) for time_s, _ in rates.values() for part in _parts(time_s, options)}
    return ObservedService(
        plain_name(label),
        label,
        {plain_name(region) if region else None: _slice_rates(*rates[region], options) for region in rates},
        tuple(part for part in range(options.slices) if part not in read),
        sum(means),
        _burstiness(list(rates.values())),
        _lengths(answers, "prompt_tokens", label, options),
        _lengths(answers, "output_tokens", label, options),
        _hit_ratio(answers, label, options),
    )


def _summed(series: Sequence[Series]) -> tuple[FloatArray, FloatArray]:
    """Return the times and rates of several series together."""
    times = np.unique(np.concatenate([each.time_s for each in series]))
    total = np.zeros(times.size)
    for each in series:
        total[np.searchsorted(times, each.time_s)] += each.value
    return times, total


def _parts(time_s: FloatArray, options: DemandOptions) -> IntArray:
    """Return the slice of the day of each time."""
    hours: FloatArray = time_s / SECONDS_PER_HOUR % HOURS_PER_DAY
    return (hours * options.slices // HOURS_PER_DAY).astype(np.int64)


def _slice_rates(time_s: FloatArray, rate: FloatArray, options: DemandOptions) -> tuple[float, ...]:
    """Return the percentile of the rates in each slice of the day."""
    part = _parts(time_s, options)
    return tuple(
        float(np.percentile(rate[part == k], options.percentile)) if (part == k).any() else 0.0
        for k in range(options.slices)
    )


def _burstiness(rates: Sequence[tuple[FloatArray, FloatArray]]) -> float | None:
    """Return the variance of counts over their mean, from differences of consecutive steps."""
    spread, mean = 0.0, 0.0
    for time_s, rate in rates:
        gaps = np.diff(time_s)
        if gaps.size < FEWEST_STEPS or (step_s := float(np.median(gaps))) > LONGEST_STEP_S:
            return None
        counts = rate * step_s
        spread += float(np.mean(np.diff(counts)[gaps == step_s] ** 2)) / 2
        mean += float(counts.mean())
    return max(LEAST_BURSTINESS, spread / mean) if mean > 0 else None


def _of(answers: Answers, name: str, label: str, options: DemandOptions) -> Iterator[Series]:
    return (each for each in answers.get(name, ()) if each.labels.get(options.service_label) == label)


def _lengths(answers: Answers, name: str, label: str, options: DemandOptions) -> TokenLengths | None:
    """Return the mean and histogram of tokens over the whole range."""
    cumulative: dict[float, float] = {}
    for each in _of(answers, name, label, options):
        try:
            bound = float(each.labels.get("le", "nan"))
        except ValueError:
            bound = math.nan
        if not math.isnan(bound):
            cumulative[bound] = cumulative.get(bound, 0.0) + float(each.value.sum())
    total = cumulative.get(math.inf, 0.0)
    tokens = sum(float(each.value.sum()) for each in _of(answers, f"{name}_sum", label, options))
    if total <= 0 or tokens <= 0:
        return None
    bins, below, start = [], 0.0, 1
    for bound in sorted(cumulative):
        # Bounds are inclusive; the last, open bucket is assumed to end at twice its start.
        end = 2 * start if math.isinf(bound) else math.floor(bound) + 1
        if end <= start:
            continue
        # Extrapolated increases of different buckets may be out of order by a rounding.
        if (inside := cumulative[bound] - below) > 0:
            bins.append((start, end, inside / total))
        below, start = max(below, cumulative[bound]), end
    return TokenLengths(tokens / total, tuple(bins))


def _hit_ratio(answers: Answers, label: str, options: DemandOptions) -> float | None:
    hits, asked = (
        sum(float(each.value.sum()) for each in _of(answers, name, label, options))
        for name in ("cache_hits", "cache_queries")
    )
    return min(1.0, hits / asked) if asked > 0 else None


def lengths_text(service: ObservedService) -> str | None:
    """Return the joint lengths as the text of a CSV file; None without both.

    Monitoring has separate histograms: prompts and answers are assumed independent.
    """
    if service.prompts is None or service.outputs is None:
        return None
    cells = [
        (*first[:2], *second[:2], first[2] * second[2])
        for first in service.prompts.bins
        for second in service.outputs.bins
        if first[2] * second[2] >= LEAST_SHARE
    ]
    total = sum(each[-1] for each in cells)
    rows = (",".join([*map(str, each[:-1]), f"{each[-1] / total:.8g}"]) for each in cells)
    return "\n".join([",".join(HISTOGRAM_COLUMNS), *rows]) + "\n"


def demand_fragment(services: Sequence[ObservedService], options: DemandOptions) -> str:
    """Return the services with their demand as a fragment of a fleet file."""
    document: dict[str, object] = {}
    names = [f"h{round(HOURS_PER_DAY / options.slices * k):02}" for k in range(options.slices)]
    if options.slices > 1:
        hours = int(HOURS_PER_DAY) // options.slices
        document["horizon"] = {"slices": [{"name": name, "hours": hours} for name in names]}
        regions = list(dict.fromkeys(region for each in services for region in each.by_slice))
        document["day_shapes"] = {f"{each.name}-day": _shape(each, names, regions) for each in services}
    document["services"] = [_block(each, options) for each in services]
    lines = [f"# Demand from {options.source}: import it in a fleet file with `imports: [FILE]`."]
    lines.append(
        f"# Demand is the {options.percentile:g}th percentile of the rates of "
        + ("a day." if options.slices == 1 else "each slice (UTC).")
    )
    lines += [line for each in services for line in _says(each, names)]
    return "\n".join(lines) + "\n" + yaml_text(document, allow_unicode=True)


def _shape(
    service: ObservedService, names: Sequence[str], regions: Sequence[str | None]
) -> dict[str, object]:
    """Return rates of slices over the largest; 1 in regions without requests, as a shape names them all."""

    def ratios(region: str | None) -> dict[str, float]:
        rates = service.by_slice.get(region, ())
        if not rates or max(rates) <= 0:
            return dict.fromkeys(names, 1.0)
        return {name: round(rate / max(rates), 4) for name, rate in zip(names, rates, strict=True)}

    if None in service.by_slice:
        return {"by_slice": ratios(None)}
    return {"by_region": {region: ratios(region) for region in regions if region is not None}}


def _block(service: ObservedService, options: DemandOptions) -> dict[str, object]:
    block: dict[str, object] = {"name": service.name}
    try:
        resolve(service.label)
        block["model"] = service.label
    except UnknownModelError:
        pass
    if service.prompts is not None and service.outputs is not None:
        block["workload"] = {
            "input_tokens": max(1, round(service.prompts.mean)),
            "output_tokens": max(1, round(service.outputs.mean)),
            "lengths": f"{service.name}-lengths.csv",
        }
    if service.burstiness is not None:
        block["traffic"] = {"burstiness": round(service.burstiness, 3)}
    peaks = {region: float(f"{max(rates):.4g}") for region, rates in service.by_slice.items()}
    block["demand"] = peaks.get(None, peaks)
    if options.slices > 1:
        block["demand_by_slice"] = f"{service.name}-day"
    return block


def _says(service: ObservedService, slices: Sequence[str]) -> Iterator[str]:
    yield f"# {service.name} ({service.label}): {service.mean_per_s:.4g} requests/s on average."
    if service.unread:
        unread = ", ".join(slices[each] for each in service.unread)
        yield f"#   No readings in {unread}, whose demand is 0: query whole days."
    missing = ["slo", "precision"]
    if service.prompts is None or service.outputs is None:
        missing.append("workload (there are no lengths, or only native histograms without `_bucket`)")
    else:
        yield "#   Prompts and answers are assumed independent; the last bucket ends at twice its start."
    if service.hit_ratio is not None:
        keys = "techniques.shared_prefix_tokens, context_tokens"
        yield f"#   Prefix cache: {service.hit_ratio:.0%} of the prompt tokens were found ({keys})."
    if service.burstiness is None:
        yield f"#   Burstiness is unknown: it needs {FEWEST_STEPS} steps of at most {LONGEST_STEP_S} s."
    yield f"#   Fill in: {', '.join(missing)}."
