"""Number formats of weights, activations, KV caches and states, and the bytes that they take."""

from __future__ import annotations

from typing import Final, Literal

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

STATE_BYTES: Final = 4.0
"""Recurrent states are kept in FP32. [bytes an element]

Source: `mamba_ssm_dtype` of Qwen3.5 and `mamba_ssm_cache_dtype` of Nemotron 3, config.json of both."""

ActivationScales = Literal["static", "dynamic"]
"""Whether the scales of activations in FP8 are known beforehand, or found while the model runs."""
