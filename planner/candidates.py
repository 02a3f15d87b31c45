"""Candidates: the configurations that meet the SLO and fit memory, pruned only where that is exact.

Every configuration that is left out keeps its reason: memory, TTFT, TPOT, data type, policy, or the
candidate that dominates it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet, Hardware, Precision, RequestClass, Service
from fleetplan.perfmodel.architecture import UnsupportedArchitecture, load_architecture
from fleetplan.perfmodel.configurations import SearchSpace
from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape_cache import cached_landscape
from fleetplan.perfmodel.optables.source import operator_source
from fleetplan.perfmodel.phases import Evaluator
from fleetplan.perfmodel.technique_limits import technique_problem
from fleetplan.planner.calibrations import Calibrator
from fleetplan.planner.plan import CalibrationUse, Rejections, TableSource
from fleetplan.planner.problem import Candidate, ConfigurationKey, Phase, ProvenanceShares

DOMINATED = "dominated"
NOT_ALLOWED = "hardware not allowed"
BELOW_QUALITY_FLOOR = "variant below the quality floor"
NO_SUPPLY = "no pool or offer"


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates with what was left out.

    Attributes
    ----------
    candidates : tuple[Candidate, ...]
        In the order of services, phases, hardware.
    rejections : tuple[Rejections, ...]
        Counts of excluded configurations by service and reason.
    table_sources : tuple[TableSource, ...]
        Operator tables behind the rates.
    warnings : tuple[str, ...]
        What was assumed.
    calibrations : tuple[CalibrationUse, ...]
        Calibrations behind the rates.
    """

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejections, ...]
    table_sources: tuple[TableSource, ...]
    warnings: tuple[str, ...]
    calibrations: tuple[CalibrationUse, ...] = ()


class RejectionLog:
    """Counts of excluded configurations by service, hardware and reason."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))

    def add(self, service: str, hardware: str, reason: str, count: int = 1) -> None:
        """Count configurations that are excluded for one reason."""
        if count:
            self._counts[service][hardware][reason] += count

    def rows(self) -> tuple[Rejections, ...]:
        """All counts, as the plan states them."""
        rows = []
        for service, by_hardware in self._counts.items():
            total: Counter[str] = sum(by_hardware.values(), Counter())
            rows.append(
                Rejections(
                    service=service,
                    counts=dict(sorted(total.items())),
                    by_hardware={name: dict(counts) for name, counts in sorted(by_hardware.items())},
                )
            )
        return tuple(rows)


def supplied_hardware(fleet: Fleet) -> list[str]:
    """Hardware that some pool or offer brings, in the order of the fleet file."""
    names = [pool.hardware for pool in fleet.pools] + [offer.hardware for offer in fleet.offers]
    return list(dict.fromkeys(names))


def engine_candidates(fleet: Fleet, service: Service, log: RejectionLog) -> list[Candidate]:
    """Candidates of a service that brings its own rates.

    Parameters
    ----------
    fleet : Fleet
        Whose hardware gives the power where the table does not.
    service : Service
        With `engines`.
    log : RejectionLog
        Receives what is left out.

    Returns
    -------
    list[Candidate]
        One for each (phase, hardware, config), its rows of request classes joined. A row without a class
        stands for every class.
    """
    if service.engines is None:
        raise ValueError(f"service {service.name!r} has no engine table")
    names = [request_class.name for request_class in service.classes]
    supplied = set(supplied_hardware(fleet))
    found = []
    keys = ["phase", "hardware", "config", "accelerators_per_replica"]
    for group, rows in service.engines.groupby(keys, sort=False, dropna=False):
        phase, hardware, config = str(group[0]), str(group[1]), str(group[2])
        accelerators = int(str(group[3]))
        if not _may_run(service, Phase(phase), hardware, supplied, log):
            continue
        rates, ttft, tpot, power = [], [], [], 0.0
        for name in names:
            row = _row_of_class(rows, name)
            rate = 0.0 if row is None else float(row["requests_per_s"])
            late = None if row is None else _too_late(service, Phase(phase), row)
            if late:
                log.add(service.name, hardware, late)
                rate = 0.0
            rates.append(rate)
            ttft.append(_optional(row, "ttft_ms"))
            tpot.append(_optional(row, "tpot_ms"))
            power = max(power, _optional(row, "power_kw") or 0.0)
        if not any(rates):
            continue
        found.append(
            Candidate(
                service=service.name,
                phase=Phase(phase),
                hardware=hardware,
                config=config,
                accelerators=accelerators,
                requests_per_s=tuple(rates),
                ttft_ms=tuple(ttft),
                tpot_ms=tuple(tpot),
                power_kw=power or replica_power_kw(fleet.hardware[hardware], accelerators),
                provenance=ProvenanceShares(given=1.0),
            )
        )
    return found


def _may_run(
    service: Service, phase: Phase, hardware: str, supplied: set[str], log: RejectionLog, count: int = 1
) -> bool:
    """Whether the fleet and the service allow a phase on a hardware."""
    if hardware not in supplied:
        log.add(service.name, hardware, NO_SUPPLY, count)
        return False
    if service.allowed_hardware is not None and hardware not in service.allowed_hardware:
        log.add(service.name, hardware, NOT_ALLOWED, count)
        return False
    runtime = "aggregated" if phase is Phase.AGGREGATED else "disaggregated"
    if runtime not in service.runtimes:
        log.add(service.name, hardware, f"runtime {runtime} not allowed", count)
        return False
    return True


def _row_of_class(rows: pd.DataFrame, name: str) -> pd.Series | None:
    """The row of a class, or the one without a class."""
    if "class" not in rows:
        return rows.iloc[0]
    named = rows[rows["class"] == name]
    if len(named):
        return named.iloc[0]
    general = rows[rows["class"].isna() | (rows["class"] == "")]
    return general.iloc[0] if len(general) else None


def _optional(row: pd.Series | None, column: str) -> float | None:
    if row is None or column not in row.index or pd.isna(row[column]):
        return None
    return float(row[column])


def _too_late(service: Service, phase: Phase, row: pd.Series) -> str | None:
    """Which target an engine row states that it misses."""
    ttft = None if phase is Phase.DECODE else _optional(row, "ttft_ms")
    tpot = None if phase is Phase.PREFILL else _optional(row, "tpot_ms")
    if _exceeds(ttft, service.ttft_ms, service.network_latency_ms):
        return "ttft"
    return "tpot" if _exceeds(tpot, service.tpot_ms, 0.0) else None


def _exceeds(latency_ms: float | None, limit_ms: float | None, outside_ms: float) -> bool:
    """Whether a known latency, with the time outside inference, is above a limit that is set."""
    return latency_ms is not None and limit_ms is not None and latency_ms + outside_ms > limit_ms


def replica_power_kw(hardware: Hardware, accelerators: int) -> float | None:
    """IT power of a replica at full load, or None where the hardware states none. [kW]"""
    if hardware.power_w_per_accelerator is None:
        return None
    return hardware.power_w_per_accelerator * accelerators / 1000.0


def landscape_candidates(
    fleet: Fleet, service: Service, hardware: Hardware, log: RejectionLog, calibrator: Calibrator
) -> tuple[list[Candidate], tuple[TableSource, ...]]:
    """Candidates of a service on one hardware from the performance model.

    Parameters
    ----------
    fleet : Fleet
        Whose folder a model path is relative to.
    service : Service
        With `model`.
    hardware : Hardware
        With figures.
    log : RejectionLog
        Receives what is left out.
    calibrator : Calibrator
        Applies the fleet's calibration.

    Returns
    -------
    tuple[list[Candidate], tuple[TableSource, ...]]
        One for each (phase, layout), at the batch size that serves most within the SLO, class by class;
        and the operator tables that were read.
    """
    if service.model is None or hardware.accelerator is None:
        raise ValueError(f"no figures to evaluate {service.name!r} on {hardware.name!r}")
    evaluator = calibrator.apply(service_evaluator(fleet, service, hardware), service.framework)
    source = operator_source(hardware.accelerator, service.framework)
    best: dict[tuple[str, str], dict[int, pd.Series]] = defaultdict(dict)
    for k, request_class in enumerate(service.classes):
        usable = _usable_rows(service, hardware, request_class, evaluator, log)
        order = usable.sort_values(
            ["requests_per_s", "batch"], ascending=[False, True], kind="stable"
        ).drop_duplicates(["phase", "parallelism"])
        log.add(service.name, hardware.name, DOMINATED, len(usable) - len(order))
        for _, row in order.iterrows():
            best[row["phase"], row["parallelism"]][k] = row
    candidates = [
        _candidate_of_rows(service, hardware, Phase(phase), layout, rows)
        for (phase, layout), rows in best.items()
    ]
    tables = tuple(
        TableSource(
            package=read.package,
            package_version=read.package_version,
            system=read.system,
            framework=read.framework,
            framework_version=read.framework_version,
            path=read.path,
            sha256=read.sha256,
        )
        for read in source.table_sources()
    )
    return candidates, tables


def service_evaluator(fleet: Fleet, service: Service, hardware: Hardware) -> Evaluator:
    """What evaluates a service on one hardware.

    Raises
    ------
    InputError
        The model cannot use one of the service's techniques.
    UnsupportedArchitecture
        The model is a decoder that is not understood.
    """
    if service.model is None or hardware.accelerator is None:
        raise ValueError(f"no figures to evaluate {service.name!r} on {hardware.name!r}")
    architecture = load_architecture(service.model, fleet.path.parent)
    problem = technique_problem(architecture, service.techniques)
    if problem:
        raise InputError([Issue(str(fleet.path), 1, 1, f"services.{service.name}.techniques", problem)])
    source = operator_source(hardware.accelerator, service.framework)
    return Evaluator(
        architecture, hardware.accelerator, source, service.precision, techniques=service.techniques
    )


def service_variants(service: Service, hardware: str, log: RejectionLog) -> list[tuple[str, Service]]:
    """The service as each of its admissible variants would serve it, with what its configurations start with.

    Parameters
    ----------
    service : Service
        Without variants it is the only one, and its configurations need no name of a variant.
    hardware : str
        For the log.
    log : RejectionLog
        Receives the variants below the quality floor.
    """
    if not service.variants:
        return [("", service)]
    found = []
    for variant in service.variants:
        if service.quality_floor is not None and variant.quality < service.quality_floor:
            log.add(service.name, hardware, BELOW_QUALITY_FLOOR)
            continue
        classes = tuple(_compressed(each, variant.input_tokens_ratio) for each in service.classes)
        precision = Precision(variant.weights, variant.kv)
        served = replace(service, model=variant.model, precision=precision, classes=classes)
        found.append((f"{variant.name}/", served))
    return found


def _compressed(request_class: RequestClass, input_tokens_ratio: float) -> RequestClass:
    """A class with its new prompt tokens compressed; what is cached stays as it is."""
    if request_class.input_tokens is None:
        return request_class
    input_tokens = max(1, round(request_class.input_tokens * input_tokens_ratio))
    context_tokens = request_class.context_tokens
    if context_tokens is not None:
        context_tokens -= request_class.input_tokens - input_tokens
    return replace(request_class, input_tokens=input_tokens, context_tokens=context_tokens)


def _usable_rows(
    service: Service,
    hardware: Hardware,
    request_class: RequestClass,
    evaluator: Evaluator,
    log: RejectionLog,
) -> pd.DataFrame:
    """Rows of the landscape of one class that meet the SLO and fit."""
    if request_class.input_tokens is None or request_class.output_tokens is None:
        raise ValueError(f"class {request_class.name!r} of {service.name!r} has no lengths")
    request = RequestShape(
        request_class.input_tokens, request_class.output_tokens, request_class.context_tokens
    )
    ttft_ms = None if service.ttft_ms is None else service.ttft_ms - service.network_latency_ms
    landscape = cached_landscape(
        evaluator,
        request,
        LatencyTarget(ttft_ms, service.tpot_ms),
        SearchSpace(runtimes=service.runtimes),
    )
    for reason, count in landscape.excluded_counts.items():
        log.add(service.name, hardware.name, reason, count)
    return landscape.usable


def _candidate_of_rows(
    service: Service, hardware: Hardware, phase: Phase, layout: str, rows: dict[int, pd.Series]
) -> Candidate:
    """One layout with its best batch size for every class that it can serve."""
    any_row = next(iter(rows.values()))
    accelerators = int(any_row["accelerators_per_replica"])
    classes = range(len(service.classes))
    shares = {
        name: sum(float(row[f"share_{name}"]) for row in rows.values()) / len(rows)
        for name in ("measured", "interpolated", "extrapolated", "roofline")
    }
    return Candidate(
        service=service.name,
        phase=phase,
        hardware=hardware.name,
        # A layout that serves several classes runs a batch size for each, so its name has none.
        config=str(any_row["config"]) if len(service.classes) == 1 else layout,
        accelerators=accelerators,
        requests_per_s=tuple(float(rows[k]["requests_per_s"]) if k in rows else 0.0 for k in classes),
        ttft_ms=tuple(_optional(rows.get(k), "ttft_ms") for k in classes),
        tpot_ms=tuple(_optional(rows.get(k), "tpot_ms") for k in classes),
        power_kw=replica_power_kw(hardware, accelerators),
        provenance=ProvenanceShares(**shares),
    )


def build_candidates(
    fleet: Fleet, announce: Callable[[str], None], keep: Collection[ConfigurationKey] = ()
) -> CandidateSet:
    """Candidates of every service on every hardware that the fleet has or can get.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    announce : callable
        Told which service is being evaluated.
    keep : Collection[ConfigurationKey]
        Configurations that stay even where others dominate them: those that run already.

    Raises
    ------
    InputError
        If a model has layers that the performance model does not know.
    """
    log = RejectionLog()
    found: list[Candidate] = []
    tables: dict[TableSource, None] = {}
    warnings: dict[str, None] = {}
    supplied = supplied_hardware(fleet)
    calibrator = Calibrator(fleet)
    for index, service in enumerate(fleet.services):
        announce(f"evaluating {service.name} ({index + 1} of {len(fleet.services)})")
        if service.engines is not None:
            own = engine_candidates(fleet, service, log)
        else:
            own = []
            for name in supplied:
                hardware = fleet.hardware[name]
                if service.allowed_hardware is not None and name not in service.allowed_hardware:
                    log.add(service.name, name, NOT_ALLOWED)
                    continue
                if hardware.accelerator is None:
                    log.add(service.name, name, "no figures and no engine table")
                    continue
                for prefix, variant in service_variants(service, name, log):
                    try:
                        candidates, sources = landscape_candidates(fleet, variant, hardware, log, calibrator)
                    except UnsupportedArchitecture as error:
                        place = f"services.{service.name}.model"
                        raise InputError([Issue(str(fleet.path), 1, 1, place, str(error))]) from error
                    own += [replace(each, config=prefix + each.config) for each in candidates]
                    tables.update(dict.fromkeys(sources))
        found += prune_dominated(own, fleet.hardware, log, keep)
    for name in dict.fromkeys(candidate.hardware for candidate in found):
        warnings |= dict.fromkeys(_maturity_warnings(fleet.hardware[name]))
    energy_counts = any(region.energy_usd_per_kwh is not None for region in fleet.regions)
    for candidate in found:
        if candidate.power_kw is None and energy_counts:
            warnings[f"{candidate.hardware}: no power figure, so its energy is not priced"] = None
    warnings |= dict.fromkeys(calibrator.warnings())
    return CandidateSet(tuple(found), log.rows(), tuple(tables), tuple(warnings), calibrator.used())


def _maturity_warnings(hardware: Hardware) -> list[str]:
    """What stands behind the factor on the roofline times of a part that has one."""
    part = hardware.accelerator
    if part is None or part.measured_system is not None or part.efficiency.maturity_factor == 1:
        return []
    factor, source = part.efficiency.maturity_factor, part.efficiency.maturity_source
    return [f"{hardware.name}: roofline times carry a maturity factor of {factor:g}: {source}"]


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
