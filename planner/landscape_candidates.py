"""Candidates of services that the performance model prices."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet, Hardware, Precision, RequestClass, Service
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.configurations import SearchSpace
from fleetplan.perfmodel.landscape import LatencyTarget, RequestShape
from fleetplan.perfmodel.landscape_cache import cached_landscape
from fleetplan.perfmodel.optables.source import operator_source
from fleetplan.perfmodel.phases import Evaluator
from fleetplan.perfmodel.technique_limits import technique_problem
from fleetplan.planner.calibrations import Calibrator
from fleetplan.planner.candidate_figures import optional_figure, replica_power_kw
from fleetplan.planner.plan import TableSource
from fleetplan.planner.problem import Candidate, Phase, ProvenanceShares
from fleetplan.planner.rejections import BELOW_QUALITY_FLOOR, DOMINATED, RejectionLog


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
        ttft_ms=tuple(optional_figure(rows.get(k), "ttft_ms") for k in classes),
        tpot_ms=tuple(optional_figure(rows.get(k), "tpot_ms") for k in classes),
        power_kw=replica_power_kw(hardware, accelerators),
        provenance=ProvenanceShares(**shares),
    )
