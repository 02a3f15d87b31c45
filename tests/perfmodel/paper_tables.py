"""Figures of Tables 6, 7 and 8 of Meta, Optimizing Deployment Configurations for LLM Inference.

Requests per second are those of 256 accelerators. Table 6 does not print the parallelism of its continuous
batching rows; what stands here is the one that its own rates imply.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ACCELERATORS: Final = 256
INPUT_TOKENS: Final = 2048
CONTEXT_TOKENS: Final = 8192
OUTPUT_TOKENS: Final = {"online": 150, "offline": 1024}


class Disaggregated(NamedTuple):
    """One row of Table 6 or 7 with prefill and decode apart."""

    table: str
    model: str
    hardware: str
    prefill: str
    decode: str
    batch: int
    ttft_ms: float
    tpot_ms: float
    prefill_requests_per_s: float
    decode_requests_per_s: float
    requests_per_s: float


class ContinuousBatching(NamedTuple):
    """One row of Table 6 or 7 with both phases in one replica."""

    table: str
    model: str
    hardware: str
    setup: str
    batch: int
    ttft_ms: float
    tpot_ms: float
    requests_per_s: float


class Heterogeneous(NamedTuple):
    """One row of Table 8."""

    prefill_hardware: str
    decode_hardware: str
    prefill_requests_per_s: float
    decode_requests_per_s: float
    decode_to_prefill_ratio: float
    requests_per_s: float


DISAGGREGATED: Final = (
    Disaggregated("online", "llama3-70b", "GPU-A", "PP4-TP2", "TP8", 112, 205, 29, 625, 826, 356),
    Disaggregated("online", "llama3-70b", "GPU-B", "PP4-TP2", "TP8", 128, 205, 28, 625, 974, 381),
    Disaggregated("online", "llama3-70b", "GPU-C", "PP4-TP2", "TP8", 128, 233, 29, 549, 927, 345),
    Disaggregated("online", "llama3-70b", "NextGen", "PP8", "TP8", 224, 214, 29, 1198, 1660, 696),
    Disaggregated("online", "llama3-405b", "GPU-A", "TP8", "TP8", 16, 365, 44, 88, 77, 41),
    Disaggregated("online", "llama3-405b", "GPU-B", "TP8", "TP8", 56, 365, 43, 88, 276, 67),
    Disaggregated("online", "llama3-405b", "GPU-C", "TP8", "TP8", 56, 375, 43, 85, 277, 65),
    Disaggregated("online", "llama3-405b", "NextGen", "PP2-TP4", "TP8", 128, 349, 43, 183, 638, 142),
    Disaggregated("offline", "llama3-70b", "GPU-A", "PP8", "PP32", 896, 353, 1254, 724, 179, 143),
    Disaggregated("offline", "llama3-70b", "GPU-B", "PP8", "PP8", 256, 353, 323, 724, 198, 155),
    Disaggregated("offline", "llama3-70b", "GPU-C", "PP8", "PP64", 2560, 407, 2300, 629, 278, 193),
    Disaggregated("offline", "llama3-70b", "NextGen", "PP8", "PP8", 256, 214, 211, 1198, 303, 242),
    Disaggregated("offline", "llama3-405b", "GPU-A", "PP8", "PP64", 1280, 1918, 3675, 134, 87, 53),
    Disaggregated("offline", "llama3-405b", "GPU-B", "PP8", "PP16", 256, 1918, 643, 134, 100, 57),
    Disaggregated("offline", "llama3-405b", "GPU-C", "PP8", "PP128", 4096, 2008, 8420, 127, 122, 62),
    Disaggregated("offline", "llama3-405b", "NextGen", "PP8", "PP8", 256, 1134, 418, 226, 153, 91),
)

CONTINUOUS_BATCHING: Final = (
    ContinuousBatching("online", "llama3-70b", "GPU-A", "TP8", 28, 95, 30, 198),
    ContinuousBatching("online", "llama3-70b", "GPU-B", "TP4", 16, 134, 27, 246),
    ContinuousBatching("online", "llama3-70b", "GPU-C", "TP4", 16, 143, 27, 248),
    ContinuousBatching("online", "llama3-70b", "NextGen", "TP4", 32, 86, 29, 469),
    ContinuousBatching("online", "llama3-405b", "GPU-A", "TP8", 4, 367, 42, 19),
    ContinuousBatching("online", "llama3-405b", "GPU-B", "TP8", 8, 369, 43, 37),
    ContinuousBatching("online", "llama3-405b", "GPU-C", "TP8", 8, 380, 41, 39),
    ContinuousBatching("online", "llama3-405b", "NextGen", "TP8", 16, 226, 42, 78),
    ContinuousBatching("offline", "llama3-70b", "GPU-A", "PP16", 512, 1071, 894, 143),
    ContinuousBatching("offline", "llama3-70b", "GPU-B", "PP8", 256, 711, 420, 152),
    ContinuousBatching("offline", "llama3-70b", "GPU-C", "PP16", 1024, 1301, 1300, 197),
    ContinuousBatching("offline", "llama3-70b", "NextGen", "PP8", 256, 436, 267, 239),
    ContinuousBatching("offline", "llama3-405b", "GPU-A", "PP32", 640, 3777, 3050, 52),
    ContinuousBatching("offline", "llama3-405b", "GPU-B", "PP16", 256, 2660, 1145, 56),
    ContinuousBatching("offline", "llama3-405b", "GPU-C", "PP32", 1024, 4060, 4058, 63),
    ContinuousBatching("offline", "llama3-405b", "NextGen", "PP8", 256, 1588, 709, 90),
)

HETEROGENEOUS: Final = (
    Heterogeneous("GPU-A", "GPU-A", 88, 77, 0.88, 41),
    Heterogeneous("GPU-B", "GPU-B", 88, 276, 3.14, 67),
    Heterogeneous("GPU-C", "GPU-C", 85, 277, 3.26, 65),
    Heterogeneous("GPU-A", "GPU-B", 88, 276, 3.14, 67),
    Heterogeneous("GPU-A", "GPU-C", 88, 277, 3.16, 67),
)
