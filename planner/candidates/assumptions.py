"""Warnings about the assumptions behind a service's candidates: parts of its model, and cached prefixes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Precision, Service
from fleetplan.fleet.inventory.techniques import MTP_ACCEPTANCE_RATIO
from fleetplan.fleet.units import BYTES_PER_GIB
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT
from fleetplan.perfmodel.predict import far_family_text, own_error_text
from fleetplan.perfmodel.steps import part_dtypes, state_slots

_PRICED_APART: Final = frozenset({"draft layers"})
"""Parts of a checkpoint that a technique prices where it is enabled."""


def assumptions(fleet: Fleet, service: Service) -> tuple[str, ...]:
    """Return the assumptions behind the candidates of a service with a model.

    Parameters
    ----------
    fleet : Fleet
        Fleet whose folder model paths are relative to.
    service : Service
        Service; without a model there are no assumptions.
    """
    if service.model is None:
        return ()
    served = _served(service)
    found: dict[str, None] = dict.fromkeys(_drafted(service))
    for position, (model, precision) in enumerate(served):
        architecture = load_architecture(model, fleet.path.parent)
        found |= dict.fromkeys((*_uncompared(service, architecture), *_left_out(service, architecture)))
        found |= dict.fromkeys(_too_long(service, architecture))
        found |= dict.fromkeys(_slots(fleet, service, architecture))
        if position == 0:
            found |= dict.fromkeys(_cached(service, architecture, precision))
    return tuple(found)


def feed_forward_weights(fleet: Fleet, service: Service) -> tuple[str, ...]:
    """Return the data types of a service's feed-forward weights; a single empty name if it has no model.

    Parameters
    ----------
    fleet, service
        As in `assumptions`.
    """
    parts = [
        part_dtypes(load_architecture(model, fleet.path.parent), precision)
        for model, precision in _served(service)
    ]
    return tuple(dict.fromkeys(each.dense_ffn for each in parts)) or ("",)


def _served(service: Service) -> list[tuple[str, Precision]]:
    """Return the models and precisions of a service."""
    if service.variants:
        return [(each.model, Precision(each.weights, each.kv)) for each in service.variants]
    return [] if service.model is None else [(service.model, service.precision)]


def _uncompared(service: Service, architecture: ModelArchitecture) -> Iterator[str]:
    """Warn that published errors concern other models."""
    known = own_error_text(architecture.model_type)
    if known:
        yield (
            f"{service.name}: errors by hardware concern other models than {architecture.name}; TPOT error "
            f"against its own published benchmarks (median / 90th percentile): {known}; measure yours "
            "(`plan calibrate`) before you buy"
        )
    far = far_family_text(architecture.model_type)
    if far:
        yield (
            f"{service.name}: the error against figures of users and vendors on models like "
            f"{architecture.name} (median / 90th percentile) is {far}; measure yours (`plan calibrate`) "
            "before you buy"
        )


def _left_out(service: Service, architecture: ModelArchitecture) -> Iterator[str]:
    known = set() if architecture.vision is None else {"vision tower"}
    towers = [part for part in architecture.left_out if part not in _PRICED_APART | known]
    if towers:
        yield (
            f"{service.name}: weights and work of the {' and '.join(towers)} of {architecture.name} are left "
            "out; prompts count as text tokens"
        )
    if known and not service.techniques.image_token_ratio:
        yield (
            f"{service.name}: memory includes the vision tower of {architecture.name}, but prompts count as "
            "text tokens; for images set `techniques.image_token_ratio`"
        )


def _too_long(service: Service, architecture: ModelArchitecture) -> Iterator[str]:
    """Warn of requests longer than the model's context."""
    most = architecture.max_context_tokens
    longest = max(
        max(each.input_tokens or 0, each.context_tokens or 0) + (each.output_tokens or 0)
        for each in service.classes
    )
    if most is not None and longest > most:
        yield (
            f"{service.name}: requests of {counted(longest, 'token')} (mean) exceed the {most:,} that the "
            f"config of {architecture.name} allows (max_position_embeddings); servers reject them unless "
            "positions are scaled"
        )


def _slots(fleet: Fleet, service: Service, architecture: ModelArchitecture) -> Iterator[str]:
    """Warn where recurrent states, not the cache, limit concurrent requests."""
    vendors = dict.fromkeys(
        each.accelerator.vendor
        for name, each in fleet.hardware.items()
        if each.accelerator is not None
        and (service.allowed_hardware is None or name in service.allowed_hardware)
    )
    kept = (
        state_slots(service.framework, vendor, architecture, prefix_cache=service.keeps_prefixes)
        for vendor in vendors
    )
    for slots in dict.fromkeys(each for each in kept if each is not None):
        yield (
            f"{service.name}: with prefix caching, {service.framework} keeps {slots.slots} recurrent states "
            f"of {architecture.name} per request, in {slots.memory_ratio:g} of the cache's memory; they "
            "limit concurrent requests (`--mamba-full-memory-ratio`)"
        )


def _drafted(service: Service) -> Iterator[str]:
    """Warn if the acceptance ratio of drafts is the default."""
    drafts = service.techniques.speculative
    if drafts is not None and drafts.method == "mtp" and drafts.acceptance_ratio == MTP_ACCEPTANCE_RATIO:
        yield (
            f"{service.name}: {MTP_ACCEPTANCE_RATIO:.0%} of the draft tokens of the model's own module are "
            "assumed to be accepted, as published for DeepSeek-V3; measure it on your traffic"
        )


def _cached(service: Service, architecture: ModelArchitecture, precision: Precision) -> Iterator[str]:
    """Warn about cached prefixes: their hit ratio, and the memory of a session."""
    size = BYTES_PER_ELEMENT[part_dtypes(architecture, precision).kv]
    for each in service.classes:
        cached = (each.context_tokens or 0) - (each.input_tokens or 0)
        if cached <= 0:
            continue
        shared = min(cached, service.techniques.shared_prefix_tokens)
        own = cached - shared
        if own <= 0:
            continue
        gib = architecture.kv_bytes_per_sequence(own, size) / BYTES_PER_GIB
        name = service.name if len(service.classes) == 1 else f"{service.name}, {each.name}"
        share = f"{own:,} of {each.context_tokens:,} prompt tokens"
        start = f"{name}: {share} come from a cache ({gib:.2f} GiB per session)"
        kept = service.techniques.persistent_kv
        if kept is None:
            yield (
                f"{start}; assumed: hit ratio 100 %, and no memory between requests "
                "(`techniques.persistent_kv` sets both)"
            )
        else:
            yield (
                f"{start}: hit ratio {kept.hit_ratio:.0%}, with {kept.sessions_per_accelerator:g} sessions "
                "kept per accelerator"
            )
