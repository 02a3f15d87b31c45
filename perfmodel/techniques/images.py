"""Prompts with images: the encoder computes their patches before the decoder sees their tokens.

The encoder works in BF16 on the ranks of tensor parallelism, as frameworks run it by default, and with the
tokens of a step: a chunk of a prompt pays for its own images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Techniques
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, Operator, OperatorKind
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.steps.parts import constant, gemm
from fleetplan.perfmodel.techniques.record import PROMPTING_MODES, Technique, TechniqueStep, number


def image_problem(architecture: ModelArchitecture, techniques: Techniques) -> str:
    """Return why a model cannot process images, or why their cost is unknown; an empty string if it can."""
    if not techniques.image_token_ratio or architecture.vision is not None:
        return ""
    if "vision tower" in architecture.left_out:
        return f"image_token_ratio: the shapes of the vision tower of {architecture.name} are not known"
    return f"image_token_ratio: {architecture.name} accepts no images"


def image_operators(
    architecture: ModelArchitecture, shape: StepShape, techniques: Techniques
) -> Iterator[Operator]:
    """Yield the operators that the images of prompts add to a step; none without images.

    Parameters
    ----------
    architecture : ModelArchitecture
        Has a `vision` encoder if there are images.
    shape : StepShape
        Prompts of n configurations.
    techniques : Techniques
        Share of the new prompt tokens that are images.
    """
    encoder = architecture.vision
    if encoder is None or not techniques.image_token_ratio:
        return
    prompt_tokens = shape.prefill_sequences * shape.new_tokens
    tokens = np.ceil(prompt_tokens * techniques.image_token_ratio).astype(np.int64)
    patches = tokens * encoder.patches_per_token
    tp = shape.layouts.tp
    hidden, layers = encoder.hidden_size, encoder.layers
    heads = -(-encoder.heads // tp)
    head_dim = hidden // encoder.heads
    # A step without prompts encodes no images.
    runs = (patches > 0).astype(np.float64)
    each_layer, once, twice = layers * runs, runs, 2.0 * layers * runs
    width, wide = constant(hidden, patches), -(-encoder.intermediate_size // tp)
    yield gemm("image_qkv", "bf16", patches, 3 * heads * head_dim, width, layers, each_layer)
    yield gemm("image_output", "bf16", patches, width, heads * head_dim, layers, each_layer)
    yield gemm("image_ffn_up", "bf16", patches, wide, width, layers, each_layer)
    yield gemm("image_ffn_down", "bf16", patches, width, wide, layers, each_layer)
    for position, (start, end) in enumerate(encoder.projection):
        wide_end = -(-constant(end, tp) // tp)
        yield gemm(f"image_projection_{position}", "bf16", tokens, wide_end, constant(start, tokens), 1, once)
    each = np.minimum(patches, encoder.patches_per_image)
    images = -(-patches // np.maximum(each, 1))
    dims = {
        "batch": images,
        "new_tokens": each,
        "prefix_tokens": np.zeros_like(each),
        "heads": heads,
        "kv_heads": heads,
        "head_dim": constant(head_dim, heads),
        "window": constant(0, heads),
    }
    # Every patch sees every other: twice the pairs of causal attention.
    yield Operator("image_attention", OperatorKind.PREFILL_ATTENTION, "bf16", dims, twice)
    # After attention and after the feed-forward block.
    message = patches * hidden * int(ACTIVATION_BYTES)
    ranks = {"message_bytes": message, "ranks": tp, "stride": constant(1, tp)}
    yield Operator("image_all_reduce", OperatorKind.ALL_REDUCE, "bf16", ranks, twice)


def _operators(operators: Iterable[Operator], step: TechniqueStep) -> Iterator[Operator]:
    yield from operators
    yield from image_operators(step.architecture, step.asked, step.techniques)


IMAGES: Final = Technique(
    {"image_token_ratio": number(0, 1, PROMPTING_MODES)},
    problem=lambda architecture, _, techniques: image_problem(architecture, techniques),
    operators=_operators,
)
"""The record of the technique."""
