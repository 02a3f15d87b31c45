"""Iterations of continuous batching at fractional batches, as formulas need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving import PROMPT_GRAIN_TOKENS, StepCosts


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean lengths of requests. [tokens].

    Attributes
    ----------
    input_tokens, prefix_tokens, output_tokens : float
        New prompt tokens, cached ones before them, and generated tokens.
    """

    input_tokens: float
    prefix_tokens: float
    output_tokens: float

    @property
    def context_tokens(self) -> float:
        """Tokens that a generated one attends to in the mean. [tokens]."""
        return self.prefix_tokens + self.input_tokens + self.output_tokens / 2


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Times of iterations from step costs, for requests of given mean lengths.

    Attributes
    ----------
    costs : StepCosts
        Of the engine.
    lengths : Lengths
        Of the requests.
    iteration_tokens : int
        Most tokens of an iteration. [tokens]
    """

    costs: StepCosts
    lengths: Lengths
    iteration_tokens: int

    def decode_ms(self, sequences: FloatArray) -> FloatArray:
        """Time of an iteration without prompts. [ms]."""
        return self.mixed_ms(np.zeros_like(sequences), sequences)

    def mixed_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Time of iterations that compute `prompt_tokens`, in as many as the token budget needs. [ms]."""
        room = self.prompt_room(sequences)
        whole = np.floor(prompt_tokens / room)
        rest = prompt_tokens - whole * room
        times = np.where(rest > 0, self._one_ms(rest, sequences), 0.0)
        found: FloatArray = times + whole * self._one_ms(room, sequences)
        return np.where(prompt_tokens > 0, found, self._one_ms(prompt_tokens, sequences))

    def prompt_room(self, sequences: FloatArray) -> FloatArray:
        """Prompt tokens that fit beside the generated ones. [tokens]."""
        found: FloatArray = np.maximum(1.0, self.iteration_tokens - sequences)
        return found

    def _one_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        costs, context = self.costs, self.lengths.context_tokens
        tokens = _at(costs.token_ms, prompt_tokens + sequences)
        slope = _at(costs.decode_ms_per_context_token, sequences)
        decode = _at(costs.decode_ms, sequences) + slope * sequences * context
        found: FloatArray = tokens + decode + prompt_tokens * self._attention_ms_per_token
        return found

    @property
    def _attention_ms_per_token(self) -> float:
        start = self.lengths.prefix_tokens / PROMPT_GRAIN_TOKENS
        end = start + self.lengths.input_tokens / PROMPT_GRAIN_TOKENS
        table = self.costs.prompt_ms
        before, after = _at(table, np.array([start, end]))
        return float(after - before) / self.lengths.input_tokens


def _at(table: tuple[float, ...], position: FloatArray) -> FloatArray:
    """Values of a table at fractional positions, its last one beyond its end."""
    values = np.asarray(table)
    low = np.clip(np.floor(position).astype(np.int64), 0, values.size - 2)
    part = np.clip(position - low, 0.0, 1.0)
    found: FloatArray = values[low] + part * (values[low + 1] - values[low])
    return found
