"""The kinds of service that a fleet of the realistic family may have.

Lengths, latency limits and models are drawn from short lists and not from ranges: fleets of different seeds
then share the evaluations of the performance model, which keeps them in its cache.

Sources that are named more than once:

[azure]     Azure LLM inference traces 2023 (Azure/AzurePublicDataset@b469a11, CC-BY 4.0): mean prompt and
            generated tokens of conversation (1,155 and 211) and code (2,048 and 28).
[mooncake]  Mooncake traces of FAST'25 (kvcache-ai/Mooncake@3b5a59413, Apache-2.0): conversation (12,035 and
            343 tokens), synthetic (15,325 and 149).
[lmsys]     LMSYS-Chat-1M, statistics of lengths alone: 563 prompt and 219 generated tokens.
[table 2]   Meta, "Optimizing Deployment Configurations for LLM Inference", Table 2: ranges of lengths, TTFT
            and TPOT by kind of service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class Shape(StrEnum):
    """Who sends the requests, which decides how demand changes over the day."""

    PEOPLE = "people"
    OFFICE = "office"
    MACHINES = "machines"


@dataclass(frozen=True, slots=True)
class Model:
    """A model that a kind of service may run.

    Attributes
    ----------
    name : str
        An id or alias of the model catalogue.
    pace : float
        Requests per second that one H100 sustains within the latency limits of the kind, at the best of its
        configurations, to two digits. It sizes demand; plans never read it. [requests/s]
    weights, kv : str
        Data types of weights and KV cache.
    variants : tuple[tuple[str, float, str, str], ...]
        Name, quality, weights and KV cache of variants that compete instead; empty where there are none.
    """

    name: str
    pace: float
    weights: str = "fp8"
    kv: str = "fp8"
    variants: tuple[tuple[str, float, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of service.

    Attributes
    ----------
    models : tuple[Model, ...]
        What it may run.
    workload : mapping
        Tokens of a mean request. [tokens]
    slo : mapping
        Limits on the means; empty where there are none. [ms]
    about : str
        Where the figures come from; the file that is written says it.
    shape : Shape
        Who sends the requests.
    weight : float
        Accelerators that the median service of the kind takes, over those of an assistant; an assumption.
    priority : int
        1 is served first.
    extra : mapping
        Further keys of the service.
    batch : bool
        Whether nobody waits for an answer, so that the work has a deadline and no latency limit.
    follows : str
        The kind whose requests bring those of this one; empty where it has a demand of its own.
    protected : bool
        Whether it should outlive the loss of a region.
    lengths : str
        The file of `scenarios/traffic` that says how lengths spread, for fleets with percentiles.
    """

    models: tuple[Model, ...]
    workload: Mapping[str, int]
    slo: Mapping[str, float]
    about: str
    shape: Shape = Shape.OFFICE
    weight: float = 1.0
    priority: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)
    batch: bool = False
    follows: str = ""
    protected: bool = False
    lengths: str = ""


_FP8_INT8: Final = (("fp8", 0.99, "fp8", "fp8"), ("int8", 0.985, "int8", "bf16"))
"""Variants of a large model; qualities are assumptions."""

_BF16_FP8: Final = (("bf16", 1.0, "bf16", "bf16"), ("fp8", 0.99, "fp8", "fp8"))
"""Variants of a small model, of which the first runs on parts without FP8."""

_SESSIONS: Final = MappingProxyType(
    {
        "techniques": {
            "persistent_kv": {
                "hit_ratio": 0.85,
                "sessions_per_accelerator": 60,
                "tiers": [
                    {"tier": "hbm", "gib_per_accelerator": 12},
                    {"tier": "dram", "gib_per_accelerator": 120, "gb_per_s": 50},
                ],
            }
        }
    }
)
"""Sessions of an agent with tools, kept in HBM and DRAM; all figures are assumptions."""

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "assistant": Kind(
            models=(
                Model("llama3.3-70b", 3.6, variants=_FP8_INT8),
                Model("qwen3-235b-a22b", 4.2),
                Model("llama4-maverick", 8.7),
                Model("gpt-oss-120b", 22.0, weights="mxfp4"),
            ),
            workload={"input_tokens": 1155, "output_tokens": 211, "context_tokens": 3200},
            slo={"ttft_ms": 450, "tpot_ms": 40},
            about="text agent [table 2]; lengths: [azure] conversation, 2,045 cached tokens assumed",
            shape=Shape.PEOPLE,
            protected=True,
            lengths="azure-conversation.csv",
        ),
        "support-chat": Kind(
            models=(
                Model("qwen3-32b", 11.0),
                Model("mistral-small-24b", 19.0, variants=_BF16_FP8),
                Model("llama4-scout", 14.0),
            ),
            workload={"input_tokens": 563, "output_tokens": 219, "context_tokens": 2000},
            slo={"ttft_ms": 300, "tpot_ms": 40},
            about="text agent [table 2]; lengths: [lmsys], 1,437 cached tokens assumed",
            weight=0.5,
            protected=True,
        ),
        "document-agent": Kind(
            models=(Model("qwen3-vl-32b", 1.1),),
            workload={"input_tokens": 7221, "output_tokens": 343, "context_tokens": 12035},
            slo={"ttft_ms": 800, "tpot_ms": 40},
            about="multi-modal agent [table 2]; lengths: [mooncake] conversation, 40 % cached assumed",
            weight=0.8,
        ),
        "voice": Kind(
            models=(Model("qwen3-14b", 57.0), Model("llama3.1-8b", 88.0), Model("qwen3-30b-a3b", 76.0)),
            workload={"input_tokens": 50, "output_tokens": 75, "context_tokens": 4096},
            slo={"ttft_ms": 200, "tpot_ms": 30},
            about="real-time agent [table 2]; session context and time for speech assumed",
            shape=Shape.PEOPLE,
            weight=0.4,
            extra={"outside_ms": {"network": 60}},
        ),
        "code-completion": Kind(
            models=(Model("qwen2.5-7b", 32.0), Model("qwen3-8b", 27.0), Model("qwen3-30b-a3b", 30.0)),
            workload={"input_tokens": 2048, "output_tokens": 28},
            slo={"ttft_ms": 200, "tpot_ms": 12},
            about="lengths: [azure] code; limits assumed: completions are useless when late",
            weight=0.6,
            extra={"outside_ms": {"network": 40, "load_balancing": 5}},
            lengths="azure-code.csv",
        ),
        "coding-agent": Kind(
            models=(
                Model("qwen3-coder-480b", 0.38),
                Model("glm-4.6", 0.25),
                Model("deepseek-v3.1", 0.33),
                Model("minimax-m2.5", 0.82),
            ),
            workload={"input_tokens": 4000, "output_tokens": 400, "context_tokens": 24000},
            slo={"ttft_ms": 1000, "tpot_ms": 35},
            about="text agent [table 2] with the context of a repository; lengths and limits assumed",
            weight=1.2,
        ),
        "tool-agent": Kind(
            models=(Model("gpt-oss-120b", 2.4, weights="mxfp4"), Model("glm-4.5-air", 0.44)),
            workload={"input_tokens": 3000, "output_tokens": 450, "context_tokens": 32000},
            slo={"ttft_ms": 900, "tpot_ms": 25},
            about="text agent [table 2] whose session context is kept; lengths and sessions assumed",
            weight=0.8,
            extra=_SESSIONS,
        ),
        "reasoning": Kind(
            models=(
                Model("deepseek-r1", 0.08),
                Model("gpt-oss-120b", 1.0, weights="mxfp4"),
                Model("qwen3-235b-a22b", 0.12),
            ),
            workload={"input_tokens": 1400, "output_tokens": 8000},
            slo={"ttft_ms": 2500, "tpot_ms": 35},
            about="long chains of thought; lengths and limits assumed",
            weight=1.5,
            priority=2,
        ),
        "rag": Kind(
            models=(Model("qwen3-32b", 0.69), Model("llama3.3-70b", 0.41), Model("qwen3-next-80b-a3b", 3.2)),
            workload={"input_tokens": 15325, "output_tokens": 149},
            slo={"ttft_ms": 5000, "tpot_ms": 40},
            about="answers from retrieved documents; lengths: [mooncake] synthetic; limits assumed",
            weight=0.7,
            priority=2,
            extra={"techniques": {"chunk_tokens": 8192}},
        ),
        "safety": Kind(
            models=(Model("llama3.1-8b", 56.0, variants=_BF16_FP8), Model("gemma2-9b", 46.0)),
            workload={"input_tokens": 1155, "output_tokens": 4},
            slo={"ttft_ms": 200},
            about="safety [table 2]: prompt and answer of every chat request are checked",
            follows="assistant",
            protected=True,
        ),
        "classifier": Kind(
            models=(Model("llama3.1-8b", 140.0, variants=_BF16_FP8), Model("qwen3-8b", 140.0)),
            workload={"input_tokens": 420, "output_tokens": 2},
            slo={"ttft_ms": 250},
            about="safety [table 2]; lengths assumed",
            shape=Shape.MACHINES,
            weight=0.3,
            priority=2,
        ),
        "query-rewriting": Kind(
            models=(Model("llama3.1-8b", 36.0), Model("qwen3-8b", 32.0)),
            workload={"input_tokens": 1155, "output_tokens": 129},
            slo={"ttft_ms": 200, "tpot_ms": 10},
            about="query generation [table 2]; lengths: [azure] conversation, mean and median",
            shape=Shape.PEOPLE,
            weight=0.4,
            priority=2,
        ),
        "embeddings": Kind(
            models=(Model("qwen3-0.6b", 750.0, weights="bf16", kv="bf16"),),
            workload={"input_tokens": 512, "output_tokens": 1},
            slo={"ttft_ms": 150},
            about="chunks of documents and queries; lengths and limit assumed",
            shape=Shape.MACHINES,
            weight=0.2,
            priority=2,
        ),
        "translation": Kind(
            models=(Model("qwen3-14b", 21.0, variants=_BF16_FP8), Model("gemma3-12b", 13.0)),
            workload={"input_tokens": 500, "output_tokens": 520},
            slo={"ttft_ms": 500, "tpot_ms": 40},
            about="a page of text; lengths and limits assumed",
            weight=0.4,
            priority=2,
        ),
        "augmentation": Kind(
            models=(Model("llama3.1-405b", 0.2), Model("deepseek-v3", 0.79)),
            workload={"input_tokens": 5108, "output_tokens": 149, "context_tokens": 15325},
            slo={"ttft_ms": 3000, "tpot_ms": 300},
            about="data augmentation [table 2]; lengths: [mooncake] synthetic, two thirds cached assumed",
            shape=Shape.MACHINES,
            weight=0.6,
            priority=3,
        ),
        "summaries": Kind(
            models=(Model("qwen2.5-32b", 1.9), Model("mistral-small-24b", 2.9)),
            workload={"input_tokens": 6000, "output_tokens": 300},
            slo={},
            about="offline summaries of documents; lengths assumed",
            shape=Shape.OFFICE,
            weight=0.8,
            priority=3,
            batch=True,
        ),
        "scoring": Kind(
            models=(Model("llama3.1-405b", 0.82), Model("mixtral-8x22b", 3.6, weights="bf16", kv="bf16")),
            workload={"input_tokens": 2048, "output_tokens": 8},
            slo={},
            about="data scoring [table 2]; lengths: [azure] code, few tokens out",
            shape=Shape.MACHINES,
            weight=0.5,
            priority=3,
            batch=True,
        ),
    }
)
