"""Norms of what a block puts out, before it is added to the residual stream (Gemma, GLM-4).

The usual norm before a block includes the sum with the residual stream; these norms are separate kernels.
SGLang 0.5.23 fuses two of Gemma 4's with others (kernels/ops/layernorm/gemma4_fused_ops), which is not
modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleetplan.perfmodel.architecture import Ffn, MoeFfn
from fleetplan.perfmodel.operators import IntArray, Operator
from fleetplan.perfmodel.steps.parts import elementwise

OUTPUT_NORM_MODEL_TYPES: Final = frozenset({"gemma2", "gemma3", "gemma3_text", "gemma4_text", "glm4"})
"""Decoders that norm what attention and feed-forward block put out as well. Source: Gemma2DecoderLayer,
Gemma3DecoderLayer, Gemma4TextDecoderLayer and Glm4DecoderLayer of Hugging Face transformers."""

GEMMA4: Final = "gemma4_text"
"""Also norms values, scales what a layer puts out, and joins experts with a dense block: norms of what either
puts out, one before the experts and one before their router, and a sum (Gemma4TextDecoderLayer)."""


def attention_output_norm(
    model_type: str, hidden_size: int, value_width: IntArray, tokens: IntArray, layers: int
) -> Iterator[Operator]:
    """Yield the norms of the outputs of `layers` attention layers, and of values; none for other models.

    Parameters
    ----------
    model_type : str
        `model_type` of the decoder's config.
    hidden_size : int
        Width of the residual stream.
    value_width : IntArray
        Elements of a token's values on one accelerator, shape (n_configs,).
    tokens : IntArray
        Tokens of a rank, shape (n_configs,).
    layers : int
        Layers of this attention.
    """
    if model_type in OUTPUT_NORM_MODEL_TYPES:
        yield elementwise("attention_output_norm", 2 * tokens * hidden_size, layers)
    if model_type == GEMMA4:
        yield elementwise("value_norm", 2 * tokens * value_width, layers)


def ffn_output_norm(
    model_type: str, hidden_size: int, ffn: Ffn, tokens: IntArray, layers: int
) -> Iterator[Operator]:
    """Yield the norms of the outputs of `layers` feed-forward blocks; none for other decoders.

    Parameters
    ----------
    model_type, hidden_size, tokens, layers
        As in `attention_output_norm`.
    ffn : DenseFfn or MoeFfn
        Block.
    """
    if model_type in OUTPUT_NORM_MODEL_TYPES:
        yield elementwise("ffn_output_norm", 2 * tokens * hidden_size, layers)
    if model_type != GEMMA4:
        return
    yield elementwise("layer_scale", 2 * tokens * hidden_size, layers)
    if isinstance(ffn, MoeFfn):
        # Norms of the dense block, before and after the experts, and before the router.
        yield elementwise("expert_norms", 2 * tokens * hidden_size, 4 * layers)
        yield elementwise("expert_sum", 3 * tokens * hidden_size, layers)
