"""Number formats of weights, activations, KV caches and states, and the bytes that they take."""

from __future__ import annotations

from typing import Final, Literal, TypeVar

from fleetplan.perfmodel.operators.arrays import FloatArray

_Width = TypeVar("_Width", float, FloatArray)

BYTES_PER_ELEMENT: Final[dict[str, float]] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "int8": 1.0,
    # 4-bit formats carry a scale: one FP8 a 16 elements (NVFP4), one E8M0 a 32 (MXFP4, OCP MX 1.0),
    # one FP16 a 128 (INT4 group quantisation).
    "fp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
    "int4": 0.5 + 2 / 128,
}
"""Bytes an element of a tensor takes, with the scales of its format."""

ACTIVATION_BYTES: Final = 2.0
"""Activations travel in BF16 between operators. [bytes an element]"""

LATENT_SCALE_BLOCK: Final = 64
LATENT_SCALE_ALIGNMENT: Final = 8
"""Elements of a latent vector that share a scale of one byte [elements], and what the scales of a vector are
filled up to [bytes]. Source: `fp8_ds_mla` of vLLM for DeepSeek-V4 (pull request 56893): 448 elements in FP8,
64 in BF16, 7 scales and a byte, 584 bytes a vector of 512."""

INDEX_KEY_BYTES: Final = 1.0
INDEX_SCALE_BYTES: Final = 4.0
INDEX_SCALE_BLOCK: Final = 128
"""Index keys are cached in FP8 [bytes an element] with one FP32 scale [bytes] a block [elements], whatever
the KV cache has. Source: the indexer caches of vLLM 0.24 and SGLang 0.5.14: 132 bytes for a key of 128."""

BLOCK_INDEX_KEY_BYTES: Final = 2.0
"""Index keys of blocks are cached in BF16. [bytes an element] Source: TensorRT-LLM,
`MiniMaxM3SparseAttentionConfig.indexer_kv_dtype`, documented default; rows of aiconfigurator-core 0.12.0
under vLLM 0.24 read as many bytes for a long context."""

INDEXED_RATIO: Final = 4
"""Tokens of an entry in layers of compressed attention with an index; entries of others have none.

Source: the published inference code of DeepSeek-V4, which ties index and overlap to this ratio."""

STATE_BYTES: Final = 4.0
"""Recurrent states are kept in FP32. [bytes an element]

Source: `mamba_ssm_dtype` of Qwen3.5 and `mamba_ssm_cache_dtype` of Nemotron 3, config.json of both."""

ActivationScales = Literal["static", "dynamic"]
"""Whether the scales of activations in FP8 are known beforehand, or found while the model runs."""


def latent_entry_bytes(head_dim: int, rope_head_dim: int, bytes_per_element: float) -> float:
    """Return the bytes of one cached latent vector that is key and value at once.

    Parameters
    ----------
    head_dim, rope_head_dim : int
        Its width, and the part with rotary positions, which stays in BF16.
    bytes_per_element : float
        Data type of the other weights; below BF16 it has scales.
    """
    rest = head_dim - rope_head_dim
    if bytes_per_element >= ACTIVATION_BYTES:
        return head_dim * bytes_per_element
    blocks = -(-rest // LATENT_SCALE_BLOCK)
    scales = -(-blocks // LATENT_SCALE_ALIGNMENT) * LATENT_SCALE_ALIGNMENT
    return rest * bytes_per_element + rope_head_dim * ACTIVATION_BYTES + scales


def index_entry_bytes(head_dim: _Width) -> _Width:
    """Return the bytes of one cached index key of this width, with its scales."""
    return head_dim * INDEX_KEY_BYTES + -(-head_dim // INDEX_SCALE_BLOCK) * INDEX_SCALE_BYTES
