"""Variants of a service: model, precision and prompt compression, above the quality floor."""

from __future__ import annotations

from dataclasses import replace

from fleetplan.fleet.inventory import Precision, RequestClass, Service
from fleetplan.planner.candidates.rejections import BELOW_QUALITY_FLOOR, RejectionLog


def service_variants(service: Service, hardware: str, log: RejectionLog) -> list[tuple[str, Service]]:
    """Return the service in each of its allowed variants, with the variant's name.

    Parameters
    ----------
    service : Service
        Service; without variants it is returned alone, with an empty name.
    hardware : str
        Hardware name for the log.
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
        found.append((variant.name, served))
    return found


def _compressed(request_class: RequestClass, input_tokens_ratio: float) -> RequestClass:
    """Return a class with compressed new prompt tokens; cached tokens stay."""
    if request_class.input_tokens is None:
        return request_class
    input_tokens = max(1, round(request_class.input_tokens * input_tokens_ratio))
    context_tokens = request_class.context_tokens
    if context_tokens is not None:
        context_tokens -= request_class.input_tokens - input_tokens
    return replace(request_class, input_tokens=input_tokens, context_tokens=context_tokens)
