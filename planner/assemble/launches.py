"""Record in a plan the inputs for launching it: checkpoints, heads, and memory for sequences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from fleetplan.fleet.inventory import Accelerator, Precision, Service
from fleetplan.perfmodel.architecture import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.steps import part_dtypes, state_slots
from fleetplan.perfmodel.steps.room import longest_sequence_tokens
from fleetplan.perfmodel.steps.state_slots import StateSlots
from fleetplan.planner.plan import Placement
from fleetplan.planner.plan.inputs import LaunchInput, VariantInput
from fleetplan.planner.problem import Candidate, Problem


def variants_of(service: Service) -> tuple[VariantInput, ...]:
    """Return the models that may serve a service; empty if it states its own rates."""
    return tuple(
        VariantInput(
            name=name,
            model=model,
            weights=precision.weights,
            kv=precision.kv,
            checkpoint=_folder(model) if checkpoint is None else checkpoint,
        )
        for name, model, precision, checkpoint in _models(service)
    )


def _models(service: Service) -> list[tuple[str, str, Precision, str | None]]:
    """Return the name, model, precision and checkpoint of each variant."""
    if service.variants:
        return [
            (each.name, each.model, Precision(each.weights, each.kv), each.checkpoint)
            for each in service.variants
        ]
    return [] if service.model is None else [("", service.model, service.precision, service.checkpoint)]


def _folder(model: str) -> str | None:
    """Return the folder to launch for a model given as a file; empty for a file with shapes only."""
    if not model.endswith(".json"):
        return None
    path = PurePosixPath(model)
    return path.parent.as_posix() if path.name == "config.json" else ""


def launches_of(problem: Problem, placements: Iterable[Placement]) -> tuple[LaunchInput, ...]:
    """Return the launch inputs of each placed configuration with a model."""
    services = {each.name: each for each in problem.fleet.services}
    candidates = {candidate.key: candidate for candidate in problem.candidates}
    found = {row.key: _launch(problem, services[row.service], row, candidates[row.key]) for row in placements}
    return tuple(each for each in found.values() if each is not None)


def _launch(problem: Problem, service: Service, row: Placement, candidate: Candidate) -> LaunchInput | None:
    accelerator, models = problem.hardware[row.hardware].accelerator, _models(service)
    if accelerator is None or not models:
        return None
    configuration = Configuration.parse(row.config)
    model, precision = next(
        (model, precision) for name, model, precision, _ in models if name == configuration.variant
    )
    architecture = load_architecture(model, problem.fleet.path.parent)
    heads, kv_heads = _heads(architecture)
    stored, techniques = architecture.quantisation, service.techniques
    return LaunchInput(
        service=row.service,
        phase=row.phase,
        hardware=row.hardware,
        config=row.config,
        stored_weights=None if stored is None else stored.dtype or stored.method,
        heads=heads,
        kv_heads=kv_heads,
        latent_attention=all(isinstance(each.attention, _LATENT) for each in architecture.groups),
        experts=architecture.routed_experts > 0,
        max_context_tokens=architecture.max_context_tokens,
        sequence_tokens=longest_sequence_tokens(
            architecture,
            part_dtypes(architecture, precision),
            accelerator,
            configuration.layout,
            # A decode step computes one token per sequence.
            (configuration.batch or 1) if row.phase == "decode" else techniques.chunk_tokens,
            0.0 if techniques.speculative is None else techniques.speculative.draft_gib_per_accelerator,
            _slots(service, row.phase, accelerator, architecture),
        ),
        longest_request_tokens=_longest_request(service),
        batches={} if configuration.batch is not None else _batches(service, candidate),
    )


def _batches(service: Service, candidate: Candidate) -> dict[str, int]:
    """Return the batch of a rank and micro-batch by class, if known."""
    known = zip(service.classes, candidate.batch, strict=False)
    return {each.name: batch for each, batch in known if batch is not None}


def _slots(
    service: Service, phase: str, accelerator: Accelerator, architecture: ModelArchitecture
) -> StateSlots | None:
    """Return the recurrent-state slots of a phase; servers for decode only keep no prefixes."""
    keeps = service.keeps_prefixes and phase != "decode"
    return state_slots(service.framework, accelerator.vendor, architecture, prefix_cache=keeps)


_LATENT: Final = LatentAttention | CompressedAttention
_SOFTMAX: Final = GroupedQueryAttention | _LATENT
"""Attention to one latent vector per token, and attention with heads of its own."""


def _heads(architecture: ModelArchitecture) -> tuple[int | None, int | None]:
    """Return the query and key-value heads of softmax attention, if all layers have the same number."""
    attentions = [each.attention for each in architecture.groups]
    queries = {each.heads for each in attentions if isinstance(each, _SOFTMAX)}
    keys = {each.kv_heads for each in attentions if isinstance(each, GroupedQueryAttention)}
    return (queries.pop() if len(queries) == 1 else None), (keys.pop() if len(keys) == 1 else None)


def _longest_request(service: Service) -> int | None:
    """Return the tokens of the longest request, or None if a class has only mean lengths."""
    longest = []
    for each in service.classes:
        spread = None if service.traffic is None else service.traffic.lengths_of(each.name)
        if spread is None:
            return None
        cached = max(0, (each.context_tokens or 0) - (each.input_tokens or 0))
        longest.append(spread.longest_tokens + cached)
    return max(longest)
