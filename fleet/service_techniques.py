"""Techniques and model variants of a service: from the file to what the performance model takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetplan.fleet.context import Context
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.schema import RequestClassSpec, ServiceSpec
from fleetplan.fleet.schema_techniques import KvTransferSpec, PersistentKvSpec, TechniquesSpec
from fleetplan.fleet.techniques import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    ModelVariant,
    Offload,
    PersistentKv,
    SpeculativeDecoding,
    Techniques,
)


def resolve_techniques(spec: TechniquesSpec) -> Techniques:
    """Return the switches of a `techniques` block."""
    speculative, offload, experts = spec.speculative, spec.offload, spec.experts
    return Techniques(
        chunk_tokens=spec.chunk_tokens,
        samples_per_prompt=spec.samples_per_prompt,
        shared_prefix_tokens=spec.shared_prefix_tokens,
        speculative=None
        if speculative is None
        else SpeculativeDecoding(
            speculative.draft_tokens,
            speculative.acceptance_ratio,
            speculative.draft_cost_ratio,
            speculative.draft_gib_per_accelerator,
        ),
        persistent_kv=None if spec.persistent_kv is None else _persistent(spec.persistent_kv),
        offload=None
        if offload is None
        else Offload(offload.weights_ratio, offload.kv_ratio, offload.gb_per_s),
        experts=ExpertRouting(
            experts.activation,
            experts.log_linear_intercept,
            experts.log_linear_slope,
            experts.busiest_expert_ratio,
            experts.placement,
        ),
        kv_transfer=KvTransfer(spec.kv_transfer.overlap, spec.kv_transfer.gb_per_s),
    )


def _persistent(spec: PersistentKvSpec) -> PersistentKv:
    tiers = tuple(KvTier(tier.tier, tier.gib_per_accelerator, tier.gb_per_s) for tier in spec.tiers)
    return PersistentKv(spec.hit_ratio, spec.sessions_per_accelerator, tiers)


def check_techniques(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    classes: Mapping[str, RequestClassSpec | None],
) -> None:
    """Note an issue for switches that the service's workload or engine table leaves without meaning."""
    techniques = spec.techniques
    here = (*key_path, "techniques")
    if spec.engines is not None and techniques != TechniquesSpec():
        context.error(here, "acts on models; the rates of an engine table hold their techniques already")
        return
    if techniques.kv_transfer != KvTransferSpec() and "disaggregated" not in spec.runtimes:
        context.error((*here, "kv_transfer"), "has no effect: the service is not disaggregated")
    tiers = [] if techniques.persistent_kv is None else [tier.tier for tier in techniques.persistent_kv.tiers]
    if len(set(tiers)) < len(tiers):
        context.error((*here, "persistent_kv", "tiers"), "names a tier twice")
    for name, lengths in classes.items():
        if lengths is None:
            continue
        context_tokens = lengths.input_tokens if lengths.context_tokens is None else lengths.context_tokens
        prefix = context_tokens - lengths.input_tokens
        if techniques.shared_prefix_tokens > prefix:
            message = (
                f"{techniques.shared_prefix_tokens} exceeds the {prefix} cached tokens of class {name!r}"
            )
            context.error(
                (*here, "shared_prefix_tokens"), message, "those are context_tokens less input_tokens"
            )
        if techniques.persistent_kv is not None and prefix == 0:
            message = f"class {name!r} has no cached tokens to keep"
            context.error((*here, "persistent_kv"), message, "give context_tokens above input_tokens")


def resolve_variants(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    resolve_model: Callable[[Context, KeyPath, str], str],
) -> tuple[ModelVariant, ...]:
    """Return the variants of a service; what is wrong goes to the context.

    Parameters
    ----------
    context, key_path, spec
        The service's block.
    resolve_model : callable
        Gives the model that a reference names.
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
        found.append(
            ModelVariant(
                variant.name,
                model,
                precision.weights,
                precision.kv,
                variant.quality,
                variant.input_tokens_ratio,
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
    floor = spec.quality_floor
    admissible = [variant for variant in variants if floor is None or variant.quality >= floor]
    if variants and not admissible:
        best = max(variant.quality for variant in variants)
        context.error((*key_path, "quality_floor"), f"no variant reaches {floor:g}; the best has {best:g}")
    if len(admissible) > 1 and "disaggregated" in spec.runtimes:
        message = f"{len(admissible)} variants compete, and prefill of one cannot feed decode of another"
        place = (*key_path, "runtimes") if "runtimes" in spec.model_fields_set else (*key_path, "variants")
        context.error(place, message, "allow `runtimes: [aggregated]` alone, or one variant")
