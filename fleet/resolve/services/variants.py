"""Resolve the variants of a service and their minimum quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import ModelVariant
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.services.precision import resolve_weights
from fleetplan.fleet.schema.fleet import ServiceSpec
from fleetplan.fleet.schema.network import QualityFloorSpec


def each_request_floor(spec: ServiceSpec) -> float | None:
    """Return the minimum quality of every request; None for no minimum."""
    floor = spec.quality_floor
    return floor.each_request if isinstance(floor, QualityFloorSpec) else floor


def average_floor(spec: ServiceSpec) -> float | None:
    """Return the minimum mean quality; None for no minimum."""
    floor = spec.quality_floor
    return floor.average if isinstance(floor, QualityFloorSpec) else None


def resolve_variants(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    resolve_model: Callable[[Context, KeyPath, str], str],
) -> tuple[ModelVariant, ...]:
    """Return the variants of a service; mistakes go to the context.

    Parameters
    ----------
    context, key_path, spec
        The service's block.
    resolve_model : callable
        Returns the model of a reference.
    """
    if spec.variants is None:
        if spec.quality_floor is not None:
            context.error((*key_path, "quality_floor"), "needs variants, whose quality it compares")
        return ()
    if spec.engines is not None:
        context.error((*key_path, "variants"), "are variants of a model; an engine table has none")
        return ()
    found = []
    for i, variant in enumerate(spec.variants):
        here = (*key_path, "variants", i)
        reference = variant.model or spec.model
        if reference is None:
            context.error(here, "needs a model, as the service names none")
            continue
        precision = variant.precision or spec.precision
        model = resolve_model(context, (*here, "model") if variant.model else (*key_path, "model"), reference)
        checkpoint = variant.checkpoint or (None if variant.model else spec.checkpoint)
        found.append(
            ModelVariant(
                variant.name,
                model,
                resolve_weights(context, here, precision.weights, model, checkpoint),
                precision.kv,
                variant.quality,
                variant.input_tokens_ratio,
                checkpoint,
            )
        )
    _check_variants(context, key_path, spec, found)
    return tuple(found)


def _check_variants(
    context: Context, key_path: KeyPath, spec: ServiceSpec, variants: Sequence[ModelVariant]
) -> None:
    names = [variant.name for variant in variants]
    for i, name in enumerate(names):
        if name in names[:i]:
            context.error((*key_path, "variants", i, "name"), f"{name!r} is the name of two variants")
    each, average = each_request_floor(spec), average_floor(spec)
    best = max((variant.quality for variant in variants), default=0.0)
    if variants and each is not None and each > best:
        context.error((*key_path, "quality_floor"), f"no variant reaches {each:g}; the best has {best:g}")
    elif variants and average is not None and average > best:
        message = f"no variant reaches an average of {average:g}; the best has {best:g}"
        context.error((*key_path, "quality_floor"), message)
