"""Resolve the techniques of a service for the performance model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import RequestClass, Techniques
from fleetplan.fleet.inventory.techniques import (
    LONG_PROMPT_CHUNK_TOKENS,
    LONG_PROMPT_TOKENS,
    MTP_ACCEPTANCE_RATIO,
    MTP_COST_RATIO,
    PIPELINED_CHUNKS,
)
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.fleet import RequestClassSpec, ServiceSpec
from fleetplan.fleet.schema.techniques import KvTransferSpec, TechniquesSpec
from fleetplan.fleet.schema.values import Spec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def resolve_techniques(spec: TechniquesSpec) -> Techniques:
    """Return the techniques of a `techniques` block."""
    found = _resolved(spec, Techniques)
    stated = spec.speculative
    if found.speculative is None or stated is None:
        return found
    accepted = MTP_ACCEPTANCE_RATIO if stated.acceptance_ratio is None else stated.acceptance_ratio
    cost = MTP_COST_RATIO if stated.draft_cost_ratio is None else stated.draft_cost_ratio
    drafts = replace(found.speculative, acceptance_ratio=accepted, draft_cost_ratio=cost)
    return replace(found, speculative=drafts)


def with_long_prompts_cut(
    techniques: Techniques, framework: str, classes: Sequence[RequestClass]
) -> Techniques:
    """Return techniques with default chunks for long prompts, unless the service states chunks.

    Parameters
    ----------
    techniques : Techniques
        Techniques that the service states.
    framework : str
        trtllm, sglang or vllm.
    classes : Sequence[RequestClass]
        Request classes; the longest prompt decides.
    """
    longest = max((each.input_tokens or 0 for each in classes), default=0)
    if (
        techniques.chunk_tokens is not None
        or framework not in PIPELINED_CHUNKS
        or longest < LONG_PROMPT_TOKENS
    ):
        return techniques
    return replace(techniques, chunk_tokens=LONG_PROMPT_CHUNK_TOKENS)


_Made = TypeVar("_Made", bound="DataclassInstance")


def _resolved(spec: Spec, kind: type[_Made]) -> _Made:
    """Convert a block to a dataclass with the same keys, nested blocks included."""
    hints = _hints(kind)
    return kind(**{each.name: _value(getattr(spec, each.name), hints[each.name]) for each in fields(kind)})


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, evaluated once."""
    return get_type_hints(kind)


def _value(value: Any, hint: Any) -> Any:
    if isinstance(value, Spec):
        kinds = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and is_dataclass(each)]
        return _resolved(value, kinds[0])
    if isinstance(value, list):
        return tuple(_value(each, get_args(hint)[0]) for each in value)
    return value


def check_techniques(
    context: Context,
    key_path: KeyPath,
    spec: ServiceSpec,
    classes: Mapping[str, RequestClassSpec | None],
) -> None:
    """Note techniques without effect for the service's workload or engine table."""
    techniques = spec.techniques
    here = (*key_path, "techniques")
    if spec.engines is not None and techniques != TechniquesSpec():
        context.error(here, "applies to models; the rates of an engine table already include techniques")
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
