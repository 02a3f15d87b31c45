"""The case studies of the paper, evaluated as any other configuration: by `Evaluator`, on catalogue parts.

"The paper" is Meta, Optimizing Deployment Configurations for LLM Inference. Its rates are those of 256
accelerators; so are the rates here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from tests.perfmodel.paper_tables import (
    ACCELERATORS,
    CONTEXT_TOKENS,
    CONTINUOUS_BATCHING,
    DISAGGREGATED,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    ContinuousBatching,
    Disaggregated,
)

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator, ExpertRouting, Precision, Techniques
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.evaluator import Evaluator, disaggregated_requests_per_s, on_accelerators
from fleetplan.perfmodel.landscape import layout_problem
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.parallelism import Layouts, Parallelism, parse_parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch

FITTED_HARDWARE: Final = ("GPU-A", "GPU-B", "GPU-C")
HARDWARE: Final = (*FITTED_HARDWARE, "NextGen")
MODELS: Final = ("llama3-70b", "llama3-405b")

PRECISION: Final = Precision(weights="fp8-ffn", kv="bf16")
"""Table 5 has FFN weights in FP8; a cache in BF16 explains the batches at which Table 6 stops."""

EVEN_EXPERTS: Final = Techniques(experts=ExpertRouting(balance="perfect"))
"""The paper spreads tokens evenly over experts (section 4.5)."""

ONLINE: Final = "online"

Catalogue = Mapping[str, Accelerator]


@cache
def architecture(model: str) -> ModelArchitecture:
    """Shapes of a model of the catalogue."""
    return load_architecture(model, Path())


def evaluator(model: ModelArchitecture, part: Accelerator) -> Evaluator:
    """Return what evaluates `model` on `part` as the paper does.

    One micro-batch's cache is counted as resident: with those of all pipeline stages, the setups of Table 7
    would need 0.7 to 17 TB an accelerator. An all-reduce between hosts is a flat ring: in levels it would
    grow by half from TP8 to TP16, where the paper says that it triples.
    """
    source = OperatorSource(part, "vllm", None, network_all_reduce="ring")
    return Evaluator(model, part, source, PRECISION, "microbatch", EVEN_EXPERTS)


def refusal(model: ModelArchitecture, part: Accelerator, labels: Sequence[str]) -> str:
    """Say which of the layouts `plan predict` refuses, and why; '' where it takes all of them."""
    found = {label: layout_problem(model, parse_parallelism(label), part) for label in dict.fromkeys(labels)}
    return "; ".join(f"{label}: {problem}" for label, problem in found.items() if problem)


def configurations(
    layouts: Sequence[Parallelism], batch: Sequence[int], output_tokens: Sequence[int]
) -> ConfigurationBatch:
    """Return requests of the paper: 2K new tokens in a context of 8K, of which 6K are cached."""
    like = np.ones(len(layouts), dtype=np.int64)
    return ConfigurationBatch(
        layouts=Layouts.of(list(layouts)),
        batch=np.array(batch, dtype=np.int64),
        input_tokens=INPUT_TOKENS * like,
        prefix_tokens=(CONTEXT_TOKENS - INPUT_TOKENS) * like,
        context_tokens=CONTEXT_TOKENS * like,
        output_tokens=np.array(output_tokens, dtype=np.int64),
    )


def on_cluster(requests_per_s: FloatArray, asked: ConfigurationBatch) -> FloatArray:
    """Rate of 256 accelerators, from that of a replica. [1/s]."""
    return on_accelerators(requests_per_s, asked.layouts.accelerators, ACCELERATORS)


@dataclass(frozen=True, slots=True)
class DisaggregatedRates:
    """Our rates for one disaggregated row. [1/s]."""

    row: Disaggregated
    prefill_requests_per_s: float
    decode_requests_per_s: float

    @property
    def requests_per_s(self) -> float:
        """Rate with the accelerators shared out between the phases. [1/s]."""
        prefill, decode = np.array([self.prefill_requests_per_s]), np.array([self.decode_requests_per_s])
        return float(disaggregated_requests_per_s(prefill, decode)[0])


@dataclass(frozen=True, slots=True)
class ContinuousRate:
    """Our rate for one continuous batching row. [1/s]."""

    row: ContinuousBatching
    requests_per_s: float


def disaggregated_rates(parts: Catalogue, hardware: Sequence[str]) -> list[DisaggregatedRates]:
    """Evaluate the disaggregated rows of some hardware, in the order of the tables."""
    found: dict[Disaggregated, DisaggregatedRates] = {}
    for name in hardware:
        for model in MODELS:
            rows = [row for row in DISAGGREGATED if row.hardware == name and row.model == model]
            outputs = [OUTPUT_TOKENS[row.table] for row in rows]
            model_on_part = evaluator(architecture(model), parts[name])
            prompts = configurations(
                [parse_parallelism(row.prefill) for row in rows], [1] * len(rows), outputs
            )
            tokens = configurations(
                [parse_parallelism(row.decode) for row in rows], [row.batch for row in rows], outputs
            )
            prefill = on_cluster(model_on_part.prefill(prompts).requests_per_s, prompts)
            decode = on_cluster(model_on_part.decode(tokens).requests_per_s, tokens)
            for row, *rates in zip(rows, prefill.tolist(), decode.tolist(), strict=True):
                found[row] = DisaggregatedRates(row, *rates)
    return [found[row] for row in DISAGGREGATED if row in found]


def continuous_rates(parts: Catalogue, hardware: Sequence[str]) -> list[ContinuousRate]:
    """Evaluate the continuous batching rows of some hardware, in the order of the tables."""
    found: dict[ContinuousBatching, ContinuousRate] = {}
    for name in hardware:
        for model in MODELS:
            rows = [row for row in CONTINUOUS_BATCHING if row.hardware == name and row.model == model]
            asked = configurations(
                [parse_parallelism(row.setup) for row in rows],
                [row.batch for row in rows],
                [OUTPUT_TOKENS[row.table] for row in rows],
            )
            result = evaluator(architecture(model), parts[name]).aggregated(asked)
            for row, rate in zip(rows, on_cluster(result.requests_per_s, asked).tolist(), strict=True):
                found[row] = ContinuousRate(row, rate)
    return [found[row] for row in CONTINUOUS_BATCHING if row in found]


def decode_rates(model: str, part: Accelerator, labels: Sequence[str], batch: int) -> FloatArray:
    """Online decode rates of some layouts at `batch` sequences an attention-DP rank. [1/s]."""
    asked = configurations(
        [parse_parallelism(label) for label in labels],
        [batch] * len(labels),
        [OUTPUT_TOKENS[ONLINE]] * len(labels),
    )
    return on_cluster(evaluator(architecture(model), part).decode(asked).requests_per_s, asked)


def prefill_rates(model: str, part: Accelerator, labels: Sequence[str]) -> FloatArray:
    """Prefill rates of some layouts, one prompt at a time. [1/s]."""
    outputs = [OUTPUT_TOKENS[ONLINE]] * len(labels)
    asked = configurations([parse_parallelism(label) for label in labels], [1] * len(labels), outputs)
    return on_cluster(evaluator(architecture(model), part).prefill(asked).requests_per_s, asked)


def catalogue() -> Catalogue:
    """Return the packaged accelerators, with the constants that stand in the catalogue."""
    return accelerators()
