"""States in a plan what launching its models needs: checkpoints, heads, and the memory left for a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from fleetplan.fleet.inventory import Precision, Service
from fleetplan.perfmodel.architecture import (
    GroupedQueryAttention,
    LatentAttention,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.steps import part_dtypes
from fleetplan.perfmodel.steps.room import longest_sequence_tokens
from fleetplan.planner.plan import Placement
from fleetplan.planner.plan.inputs import RoomInput, VariantInput
from fleetplan.planner.problem import Problem


def variants_of(problem: Problem, service: Service) -> tuple[VariantInput, ...]:
    """Return the models that may serve a service, with what their configs say; none for its own rates."""
    if service.variants:
        return tuple(
            _variant(problem, each.name, each.model, Precision(each.weights, each.kv), each.checkpoint)
            for each in service.variants
        )
    if service.model is None:
        return ()
    return (_variant(problem, "", service.model, service.precision, service.checkpoint),)


def _variant(
    problem: Problem, name: str, model: str, precision: Precision, checkpoint: str | None
) -> VariantInput:
    architecture = load_architecture(model, problem.fleet.path.parent)
    heads, kv_heads = _heads(architecture)
    stored = architecture.quantisation
    return VariantInput(
        name=name,
        model=model,
        weights=precision.weights,
        kv=precision.kv,
        checkpoint=checkpoint if checkpoint is not None else _folder(model),
        stored_weights=None if stored is None else stored.dtype or stored.method,
        heads=heads,
        kv_heads=kv_heads,
        latent_attention=all(isinstance(each.attention, LatentAttention) for each in architecture.groups),
        experts=architecture.routed_experts > 0,
        max_context_tokens=architecture.max_context_tokens,
    )


def _folder(model: str) -> str | None:
    """What is launched for a model that is a file: its folder, or nothing where it is shapes alone."""
    if not model.endswith(".json"):
        return None
    path = PurePosixPath(model)
    return path.parent.as_posix() if path.name == "config.json" else ""


def _heads(architecture: ModelArchitecture) -> tuple[int | None, int | None]:
    """Query heads and key-value heads of the layers with softmax attention, where all have the same."""
    attentions = [each.attention for each in architecture.groups]
    queries = {each.heads for each in attentions if isinstance(each, (GroupedQueryAttention, LatentAttention))}
    keys = {each.kv_heads for each in attentions if isinstance(each, GroupedQueryAttention)}
    return (queries.pop() if len(queries) == 1 else None), (keys.pop() if len(keys) == 1 else None)


def rooms_of(problem: Problem, placements: Iterable[Placement]) -> tuple[RoomInput, ...]:
    """Return the longest sequence that each placed configuration of a model has memory for."""
    rooms: dict[tuple[str, str, str], RoomInput] = {}
    services = {each.name: each for each in problem.fleet.services}
    for row in placements:
        key = (row.service, row.hardware, row.config)
        if key not in rooms:
            tokens = _room(problem, services[row.service], row)
            if tokens is not None:
                rooms[key] = RoomInput(
                    service=row.service, hardware=row.hardware, config=row.config, sequence_tokens=tokens
                )
    return tuple(rooms.values())


def _room(problem: Problem, service: Service, row: Placement) -> int | None:
    accelerator = problem.hardware[row.hardware].accelerator
    if accelerator is None or (service.model is None and not service.variants):
        return None
    configuration = Configuration.parse(row.config)
    variant = next((each for each in service.variants if each.name == configuration.variant), None)
    model = service.model if variant is None else variant.model
    if model is None:
        return None
    precision = service.precision if variant is None else Precision(variant.weights, variant.kv)
    architecture = load_architecture(model, problem.fleet.path.parent)
    techniques = service.techniques
    prompt = max((each.input_tokens or 1) for each in service.classes)
    return longest_sequence_tokens(
        architecture,
        part_dtypes(architecture, precision),
        accelerator,
        configuration.layout,
        prompt if techniques.chunk_tokens is None else techniques.chunk_tokens,
        0.0 if techniques.speculative is None else techniques.speculative.draft_gib_per_accelerator,
    )
