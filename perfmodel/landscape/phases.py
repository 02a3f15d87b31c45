"""The phases of serving, what requests look like, and how a phase is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleetplan.perfmodel.evaluator import Evaluator, PhaseResult
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse

PREFILL: Final = "prefill"
DECODE: Final = "decode"
AGGREGATED: Final = "aggregated"


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Mean lengths of a request.

    Attributes
    ----------
    input_tokens : int
        New prompt tokens. [tokens]
    output_tokens : int
        Generated tokens. [tokens]
    context_tokens : int or None
        Tokens that decode attends to in the mean; what exceeds `input_tokens` is a prefix whose cache
        prefill finds ready. None: no prefix, and decode attends to the prompt and half its output.

    Raises
    ------
    ValueError
        Fewer than one new or generated token.
    """

    input_tokens: int
    output_tokens: int
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.input_tokens < 1 or self.output_tokens < 1:
            raise ValueError(f"a request has at least one new and one generated token: {self}")

    @property
    def prefix_tokens(self) -> int:
        """Prompt tokens whose cache prefill finds ready. [tokens]."""
        return 0 if self.context_tokens is None else max(0, self.context_tokens - self.input_tokens)

    @property
    def decode_context_tokens(self) -> int:
        """Tokens that decode attends to in the mean. [tokens]."""
        if self.context_tokens is None:
            return self.input_tokens + self.output_tokens // 2
        return max(self.context_tokens, self.input_tokens)


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Limits on mean latencies, network time already taken off; None is no limit. [ms]."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None


def memory_of_phase(evaluator: Evaluator, phase: str, configurations: ConfigurationBatch) -> MemoryUse:
    """Return the memory that configurations need in one phase, without evaluating them."""
    if phase == PREFILL:
        return evaluator.prefill_memory(configurations)
    if phase == DECODE:
        return evaluator.decode_memory(configurations)
    return evaluator.aggregated_memory(configurations)


def evaluate_phase(evaluator: Evaluator, phase: str, configurations: ConfigurationBatch) -> PhaseResult:
    """Return what configurations reach in one phase: prefill, decode or aggregated."""
    if phase == PREFILL:
        return evaluator.prefill(configurations)
    if phase == DECODE:
        return evaluator.decode(configurations)
    return evaluator.aggregated(configurations)
