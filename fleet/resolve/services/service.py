"""Resolve services: model or engine table, request classes and demand, over regions and periods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.catalog import models
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.input_files import is_file
from fleetplan.fleet.inventory import (
    DemandRates,
    LayoutSearch,
    Offline,
    OutsideLatency,
    Precision,
    RequestClass,
    Service,
)
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.services.demand import service_demand
from fleetplan.fleet.resolve.services.engine_tables import read_engines
from fleetplan.fleet.resolve.services.following import in_order_of_following, resolved_follows
from fleetplan.fleet.resolve.services.precision import resolve_weights
from fleetplan.fleet.resolve.services.techniques import (
    check_techniques,
    resolve_techniques,
    with_long_prompts_cut,
)
from fleetplan.fleet.resolve.services.traffic import (
    class_lengths,
    resolve_traffic,
    smallest_limit_ms,
    with_means,
)
from fleetplan.fleet.resolve.services.variants import average_floor, each_request_floor, resolve_variants
from fleetplan.fleet.schema.fleet import RequestClassSpec, ServiceSpec, WorkloadSpec
from fleetplan.fleet.tables import SINGLE_CLASS

if TYPE_CHECKING:
    import pandas as pd

LARGE_HEADROOM: Final = 1.0
"""Headroom above which a value was probably meant as a percentage."""


def resolve_services(context: Context, specs: Sequence[tuple[int, ServiceSpec]]) -> tuple[Service, ...]:
    """Return the valid services; mistakes of the others go to the context."""

    def resolve(key_path: KeyPath, spec: ServiceSpec, leaders: tuple[Service, ...]) -> Service | None:
        return _service(context, key_path, spec, leaders)

    return tuple(in_order_of_following(context, specs, resolve))


def _engines(context: Context, key_path: KeyPath, spec: ServiceSpec) -> pd.DataFrame | None:
    """Return the engine table of a service with measured rates; None for a model, or with mistakes."""
    if (spec.model is None) == (spec.engines is None):
        context.error(key_path, "needs exactly one of model, engines")
    elif spec.engines is not None:
        if spec.checkpoint is not None:
            context.error((*key_path, "checkpoint"), "has no effect: an engine table has no launch command")
        if spec.framework_version is not None:
            message = "has no effect: rates come from the engine table, not from operator tables"
            context.error((*key_path, "framework_version"), message)
        return read_engines(context, (*key_path, "engines"), spec.engines)
    return None


def _service(
    context: Context, key_path: KeyPath, spec: ServiceSpec, leaders: tuple[Service, ...]
) -> Service | None:
    before = len(context.issues)
    model = None if spec.model is None else _model(context, (*key_path, "model"), spec.model)
    engines = _engines(context, key_path, spec)
    for i, name in enumerate(spec.hardware or ()):
        context.check_hardware((*key_path, "hardware", i), name)
    for i, name in enumerate(spec.regions or ()):
        context.check_name((*key_path, "regions", i), "region", name, context.region_names)
    _check_latencies(context, key_path, spec)
    _check_headroom(context, key_path, spec)
    variants = resolve_variants(context, key_path, spec, _model)
    # Variants have separate data types.
    served = None if variants else model
    weights = resolve_weights(context, key_path, spec.precision.weights, served, spec.checkpoint)
    lengths = class_lengths(context, key_path, spec)
    if spec.workload is not None:
        spec = spec.model_copy(update={"workload": with_means(spec.workload, lengths)})
    traffic = resolve_traffic(context, key_path, spec, lengths)
    classes = _class_specs(context, key_path, spec, engines)
    check_techniques(context, key_path, spec, classes or {})
    # If the engine table is broken, the class names are unknown, and the demand cannot be read.
    unreadable = spec.engines is not None and engines is None
    demand = (
        None if classes is None or unreadable else service_demand(context, key_path, spec, classes, leaders)
    )
    if demand is None or len(context.issues) > before:
        return None
    asked = _classes(classes or {}, demand.peak)
    return Service(
        name=spec.name,
        model=model,
        engines=engines,
        precision=Precision(weights, spec.precision.kv),
        classes=asked,
        ttft_ms=smallest_limit_ms(spec.slo, "ttft"),
        tpot_ms=smallest_limit_ms(spec.slo, "tpot"),
        demand=demand,
        headroom=spec.headroom,
        priority=spec.priority,
        runtimes=tuple(dict.fromkeys(spec.runtimes)),
        framework=spec.framework,
        framework_version=spec.framework_version or "",
        allowed_hardware=None if spec.hardware is None else tuple(dict.fromkeys(spec.hardware)),
        outside_ms=_outside(spec),
        techniques=with_long_prompts_cut(resolve_techniques(spec.techniques), spec.framework, asked),
        variants=variants,
        quality_floor=each_request_floor(spec),
        average_quality_floor=average_floor(spec),
        allowed_regions=None if spec.regions is None else tuple(dict.fromkeys(spec.regions)),
        follows=resolved_follows(spec),
        offline=None if spec.offline is None else Offline(spec.offline.deadline_hours),
        served_weight=spec.served_weight or 1 / spec.priority,
        traffic=traffic,
        checkpoint=spec.checkpoint,
        rate_ratio=_rate_ratio(context, key_path, spec),
        search=_layout_search(spec),
    )


def _layout_search(spec: ServiceSpec) -> LayoutSearch:
    return LayoutSearch(
        spec.search.layouts == "any",
        spec.search.max_accelerators,
        tuple(sorted(set(spec.search.pipeline_stages or ()))),
        tuple(sorted(set(spec.search.context_ranks or ()))),
    )


def _rate_ratio(context: Context, key_path: KeyPath, spec: ServiceSpec) -> dict[str, float]:
    """Return measured rates divided by predicted ones, by hardware."""
    if spec.rate_ratio is None:
        return {}
    if not isinstance(spec.rate_ratio, Mapping):
        return dict.fromkeys(context.hardware_names, spec.rate_ratio)
    found: dict[str, float] = {}
    for name, ratio in spec.rate_ratio.items():
        part = context.hardware_name(name)
        if not context.check_hardware((*key_path, "rate_ratio", name), part):
            continue
        if part in found:
            context.error((*key_path, "rate_ratio", name), f"{name} is {part}, which has a ratio already")
        found[part] = ratio
    return found


def _model(context: Context, key_path: KeyPath, reference: str) -> str:
    """Return the id of a checkpoint, or the path of a config file relative to the fleet file."""
    if not reference.endswith(".json"):
        try:
            return models.checkpoint(reference)
        except models.UnknownModelError as error:
            message = f"there is no model {reference!r} in the catalogue"
            context.error(key_path, message, error.hint)
            return reference
    path = Path(context.document.place(key_path).file).parent / reference
    if not is_file(path):
        there = os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a name that is too long
        message = f"{path} is not an ordinary file" if there else f"there is no file {path}"
        context.error(key_path, message, "the path is relative to this file")
    return Path(os.path.relpath(path, context.document.path.parent)).as_posix()


def _outside(spec: ServiceSpec) -> OutsideLatency:
    """Return the times outside inference; `network_latency_ms` is a short form of the network's."""
    return OutsideLatency(
        network_ms=spec.outside_ms.network or spec.network_latency_ms,
        load_balancing_ms=spec.outside_ms.load_balancing,
        media_download_ms=spec.outside_ms.media_download,
        safety_ms=spec.outside_ms.safety,
        front_end_ms=spec.outside_ms.front_end,
    )


def _check_headroom(context: Context, key_path: KeyPath, spec: ServiceSpec) -> None:
    """Warn of a headroom that was probably meant as a percentage."""
    if spec.headroom > LARGE_HEADROOM:
        message = f"plans {1 + spec.headroom:g} times the demand; for {spec.headroom:g} % more, write "
        context.warn((*key_path, "headroom"), f"{message}{spec.headroom / 100:g}")


def _check_latencies(context: Context, key_path: KeyPath, spec: ServiceSpec) -> None:
    here = (*key_path, "network_latency_ms" if spec.network_latency_ms else "outside_ms")
    if spec.network_latency_ms and spec.outside_ms.network:
        context.error(here, "outside_ms already includes the network", "keep one of the two")
    limit_ms, outside_ms = smallest_limit_ms(spec.slo, "ttft"), _outside(spec).total_ms
    if limit_ms is not None and outside_ms >= limit_ms:
        context.error(here, f"{outside_ms:g} ms leave nothing of the TTFT limit of {limit_ms:g} ms")


def _class_specs(
    context: Context, key_path: KeyPath, spec: ServiceSpec, engines: pd.DataFrame | None
) -> dict[str, RequestClassSpec | None] | None:
    """Return the request classes by name, with their lengths if the file states them."""
    stated = None if spec.workload is None else _stated(context, (*key_path, "workload"), spec.workload)
    if spec.workload is not None and stated is None:
        return None
    if spec.model is not None and stated is None:
        hint = "such as {input_tokens: 2048, output_tokens: 150}"
        context.error((*key_path, "workload"), "is missing", hint)
        return None
    if engines is None:
        return dict(stated) if stated is not None else {SINGLE_CLASS: None}
    names = context.classes_in(engines)
    if stated is None:
        return dict.fromkeys(names)
    own = set(names) - {SINGLE_CLASS}
    if own - set(stated) or (SINGLE_CLASS not in names and own != set(stated)):
        message = f"the classes ({', '.join(stated)}) are not those of the engine table ({', '.join(names)})"
        context.error((*key_path, "workload"), message, "they are matched by name")
        return None
    return dict(stated)


def _stated(context: Context, key_path: KeyPath, spec: WorkloadSpec) -> dict[str, RequestClassSpec] | None:
    if spec.classes is not None:
        if (spec.input_tokens, spec.output_tokens, spec.context_tokens) != (None, None, None):
            context.error(key_path, "give lengths either here or in the classes, not in both")
            return None
        return spec.classes if _lengths_agree(context, (*key_path, "classes"), spec.classes) else None
    if spec.input_tokens is None or spec.output_tokens is None:
        context.error(key_path, "needs input_tokens and output_tokens, or classes")
        return None
    only = RequestClassSpec(
        input_tokens=spec.input_tokens,
        output_tokens=spec.output_tokens,
        context_tokens=spec.context_tokens,
    )
    if only.context_tokens is not None and only.context_tokens < only.input_tokens:
        _refuse_context(context, key_path, only)
        return None
    return {SINGLE_CLASS: only}


def _lengths_agree(context: Context, key_path: KeyPath, classes: Mapping[str, RequestClassSpec]) -> bool:
    good = True
    for name, request_class in classes.items():
        context_tokens = request_class.context_tokens
        if context_tokens is not None and context_tokens < request_class.input_tokens:
            _refuse_context(context, (*key_path, name), request_class)
            good = False
    return good


def _refuse_context(context: Context, key_path: KeyPath, request_class: RequestClassSpec) -> None:
    message = f"{request_class.context_tokens} is less than the {request_class.input_tokens} input_tokens"
    context.error((*key_path, "context_tokens"), message, "the context includes the new tokens")


def _classes(specs: Mapping[str, RequestClassSpec | None], demand: DemandRates) -> tuple[RequestClass, ...]:
    by_class = dict.fromkeys(specs, 0.0)
    for (_, _, name), requests_per_s in demand.items():
        by_class[name] += requests_per_s
    total = sum(by_class.values())
    return tuple(
        RequestClass(
            name=name,
            share=by_class[name] / total if total > 0 else 1 / len(specs),
            input_tokens=None if spec is None else spec.input_tokens,
            output_tokens=None if spec is None else spec.output_tokens,
            context_tokens=None if spec is None else spec.context_tokens,
        )
        for name, spec in specs.items()
    )
