"""Techniques of a service: from the file to what the performance model takes."""

from __future__ import annotations

from collections.abc import Mapping

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    Offload,
    PersistentKv,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.fleet import RequestClassSpec, ServiceSpec
from fleetplan.fleet.schema.techniques import KvTransferSpec, PersistentKvSpec, TechniquesSpec


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
            speculative.method,
            speculative.draft_model,
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
            experts.balance,
            experts.redundant_experts,
        ),
        kv_transfer=KvTransfer(spec.kv_transfer.overlap, spec.kv_transfer.gb_per_s),
        sampling=spec.sampling,
        expert_overlap=spec.expert_overlap,
        image_token_ratio=spec.image_token_ratio,
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
