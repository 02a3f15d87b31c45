"""Services: model or engine table, request classes and demand, spread over regions and periods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet import models
from fleetplan.fleet.context import Context
from fleetplan.fleet.demand import Leaf, demand_leaves, spread_demand
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.engines import SINGLE_CLASS, read_engines
from fleetplan.fleet.inventory import Precision, RequestClass, Service
from fleetplan.fleet.schema import RequestClassSpec, ServiceSpec, WorkloadSpec
from fleetplan.fleet.service_techniques import check_techniques, resolve_techniques, resolve_variants

if TYPE_CHECKING:
    import pandas as pd

# How far the shares of a service's classes may be from 1 in all: three of them at 0.333 pass.
SHARE_TOLERANCE: Final = 2e-3


def resolve_services(context: Context, specs: Sequence[tuple[int, ServiceSpec]]) -> tuple[Service, ...]:
    """Return the services that are valid; what is wrong with the others goes to the context."""
    services = (_service(context, ("services", i), spec) for i, spec in specs)
    return tuple(service for service in services if service is not None)


def _service(context: Context, key_path: KeyPath, spec: ServiceSpec) -> Service | None:
    before = len(context.issues)
    model = None if spec.model is None else _model(context, (*key_path, "model"), spec.model)
    engines = None
    if (spec.model is None) == (spec.engines is None):
        context.error(key_path, "needs exactly one of model, engines")
    elif spec.engines is not None:
        engines = read_engines(context, (*key_path, "engines"), spec.engines)
    for i, name in enumerate(spec.hardware or ()):
        context.check_name((*key_path, "hardware", i), "hardware", name, context.hardware_names)
    for i, name in enumerate(spec.regions or ()):
        context.check_name((*key_path, "regions", i), "region", name, context.region_names)
    _check_latencies(context, key_path, spec)
    variants = resolve_variants(context, key_path, spec, _model)
    classes = _class_specs(context, key_path, spec, engines)
    check_techniques(context, key_path, spec, classes or {})
    # With a broken engine table the class names are unknown, and the demand cannot be read.
    unreadable = spec.engines is not None and engines is None
    demand = None if classes is None or unreadable else _demand(context, key_path, spec, classes)
    if demand is not None and spec.regions is not None:
        _check_regions(context, (*key_path, "regions"), spec.regions, demand)
    if demand is None or len(context.issues) > before:
        return None
    return Service(
        name=spec.name,
        model=model,
        engines=engines,
        precision=Precision(spec.precision.weights, spec.precision.kv),
        classes=_classes(classes or {}, demand),
        ttft_ms=spec.slo.ttft_ms,
        tpot_ms=spec.slo.tpot_ms,
        demand_requests_per_s=demand,
        headroom=spec.headroom,
        priority=spec.priority,
        runtimes=tuple(dict.fromkeys(spec.runtimes)),
        framework=spec.framework,
        allowed_hardware=None if spec.hardware is None else tuple(spec.hardware),
        network_latency_ms=spec.network_latency_ms,
        techniques=resolve_techniques(spec.techniques),
        variants=variants,
        quality_floor=spec.quality_floor,
        allowed_regions=None if spec.regions is None else tuple(dict.fromkeys(spec.regions)),
    )


def _model(context: Context, key_path: KeyPath, reference: str) -> str:
    """Return a catalogue id, or the path of a config file relative to the fleet file."""
    if not reference.endswith(".json"):
        try:
            return models.resolve(reference)
        except models.UnknownModelError as error:
            message = f"there is no model {reference!r} in the catalogue"
            context.error(key_path, message, error.hint)
            return reference
    path = Path(context.document.place(key_path).file).parent / reference
    if not path.is_file():
        context.error(key_path, f"there is no file {path}", "the path is relative to this file")
    return Path(os.path.relpath(path, context.document.path.parent)).as_posix()


def _check_regions(
    context: Context,
    key_path: KeyPath,
    allowed: Sequence[str],
    demand: Mapping[tuple[str, str, str], float],
) -> None:
    """Note regions with demand in which the service may not run: demand is served where it arises."""
    asked = dict.fromkeys(region for (region, _, _), rate in demand.items() if rate > 0)
    missing = [region for region in asked if region not in allowed]
    if missing:
        message = f"there is demand in {', '.join(missing)}, and demand is served in its own region"
        context.error(key_path, message, "add the region, or take its demand out")


def _check_latencies(context: Context, key_path: KeyPath, spec: ServiceSpec) -> None:
    limit_ms = spec.slo.ttft_ms
    if limit_ms is not None and spec.network_latency_ms >= limit_ms:
        message = f"{spec.network_latency_ms:g} ms leave nothing of the TTFT limit of {limit_ms:g} ms"
        context.error((*key_path, "network_latency_ms"), message)


def _class_specs(
    context: Context, key_path: KeyPath, spec: ServiceSpec, engines: pd.DataFrame | None
) -> dict[str, RequestClassSpec | None] | None:
    """Return the request classes by name, with their lengths where the file states them."""
    stated = None if spec.workload is None else _stated(context, (*key_path, "workload"), spec.workload)
    if spec.workload is not None and stated is None:
        return None
    if spec.model is not None and stated is None:
        hint = "such as {input_tokens: 2048, output_tokens: 150}"
        context.error((*key_path, "workload"), "is missing", hint)
        return None
    if engines is None:
        return dict(stated) if stated is not None else {SINGLE_CLASS: None}
    names = list(dict.fromkeys(str(name) for name in engines["class"]))
    if stated is None:
        return dict.fromkeys(names)
    if set(stated) != set(names) and names != [SINGLE_CLASS]:
        message = f"the classes ({', '.join(stated)}) are not those of the engine table ({', '.join(names)})"
        context.error((*key_path, "workload"), message, "they are matched by name")
        return None
    return dict(stated)


def _stated(context: Context, key_path: KeyPath, spec: WorkloadSpec) -> dict[str, RequestClassSpec] | None:
    if spec.classes is not None:
        if (spec.input_tokens, spec.output_tokens, spec.context_tokens) != (None, None, None):
            context.error(key_path, "lengths stand either here or in the classes, not in both")
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
    context.error((*key_path, "context_tokens"), message, "the context holds the new tokens as well")


def _demand(
    context: Context, key_path: KeyPath, spec: ServiceSpec, classes: Mapping[str, RequestClassSpec | None]
) -> dict[tuple[str, str, str], float]:
    here = (*key_path, "demand")
    names = tuple(classes)
    # `all` is the name of the only class, not one that the file gives.
    named = () if names == (SINGLE_CLASS,) else names
    leaves = demand_leaves(context, here, spec.demand, named)
    shares = _shares(context, key_path, classes, leaves)
    return spread_demand(context, here, leaves, names, shares)


def _shares(
    context: Context,
    key_path: KeyPath,
    classes: Mapping[str, RequestClassSpec | None],
    leaves: Sequence[Leaf],
) -> dict[str, float] | None:
    """Return how demand without a class is split; None where every demand names its class or nothing can."""
    given = {
        name: spec.share for name, spec in classes.items() if spec is not None and spec.share is not None
    }
    if not given:
        return None
    here = (*key_path, "workload", "classes")
    if any(leaf.request_class is not None for leaf in leaves):
        context.error(here, "shares are given, and the demand by class as well", "keep one of the two")
        return None
    missing = [name for name in classes if name not in given]
    if missing:
        context.error(here, f"has no share for {', '.join(missing)}", "every class needs one, or none has")
        return None
    total = sum(given.values())
    if abs(total - 1) > SHARE_TOLERANCE:
        context.error(here, f"the shares add up to {total:g}, not 1")
        return None
    return {name: share / total for name, share in given.items()}


def _classes(
    specs: Mapping[str, RequestClassSpec | None], demand: Mapping[tuple[str, str, str], float]
) -> tuple[RequestClass, ...]:
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
