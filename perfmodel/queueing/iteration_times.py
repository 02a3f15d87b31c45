"""Iterations of continuous batching at fractional batches, as formulas need them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.serving import Admission, StepGrids
from fleetplan.perfmodel.serving.admission import EVERY_ITERATION

Numbers: TypeAlias = float | FloatArray
"""One number, or one for each of n loads."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean lengths of requests. [tokens].

    Attributes
    ----------
    input_tokens, prefix_tokens, output_tokens : Numbers
        New prompt tokens, cached ones before them, and generated tokens.
    tokens_per_step : float
        Tokens that a sequence gains in a decode iteration; more than one where it speculates.
    """

    input_tokens: Numbers
    prefix_tokens: Numbers
    output_tokens: Numbers
    tokens_per_step: float = 1.0

    @property
    def context_tokens(self) -> Numbers:
        """Tokens that a generated one attends to in the mean. [tokens]."""
        return self.prefix_tokens + self.input_tokens + self.output_tokens / 2

    @property
    def decode_iterations(self) -> Numbers:
        """Iterations in which a request generates; its first token comes with its prompt. [iterations]."""
        return (self.output_tokens - 1.0) / self.tokens_per_step


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Times of iterations from step grids, for requests of given mean lengths.

    Attributes
    ----------
    grids : StepGrids
        Of the engine.
    lengths : Lengths
        Of the requests.
    iteration_tokens : int
        Most tokens of an iteration. [tokens]
    admission : Admission
        How prompts are let in.
    """

    grids: StepGrids
    lengths: Lengths
    iteration_tokens: int
    admission: Admission = EVERY_ITERATION
    _attention_ms_per_token: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        grids, lengths = self.grids, self.lengths
        ends = [np.asarray(lengths.prefix_tokens), lengths.prefix_tokens + np.asarray(lengths.input_tokens)]
        before, after = (np.interp(end, grids.lengths, grids.prompt_ms) for end in ends)
        object.__setattr__(self, "_attention_ms_per_token", (after - before) / lengths.input_tokens)

    @property
    def most_sequences(self) -> float:
        """Most sequences of an iteration."""
        return float(self.grids.sequences[-1])

    def of(self, position: int) -> IterationTimes:
        """Return the times for one of n loads."""
        lengths = self.lengths
        own = Lengths(
            _one(lengths.input_tokens, position),
            _one(lengths.prefix_tokens, position),
            _one(lengths.output_tokens, position),
            lengths.tokens_per_step,
        )
        return replace(self, lengths=own)

    def decode_ms(self, sequences: FloatArray) -> FloatArray:
        """Time of an iteration without prompts. [ms]."""
        return self._one_ms(np.zeros_like(sequences), sequences)

    def mixed_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Time of iterations that compute `prompt_tokens`, in as many as the token budget needs. [ms]."""
        room = self.prompt_room(sequences)
        whole = np.floor(prompt_tokens / room)
        rest = prompt_tokens - whole * room
        times = np.where(rest > 0, self._one_ms(rest, sequences), 0.0)
        found: FloatArray = times + whole * self._one_ms(room, sequences)
        return np.where(prompt_tokens > 0, found, self._one_ms(prompt_tokens, sequences))

    def cycle_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Time in which every sequence gains a token while prompts are computed. [ms]."""
        if self.admission.prompts_apart:
            return self.mixed_ms(prompt_tokens, np.zeros_like(sequences)) + self.decode_ms(sequences)
        return self.mixed_ms(prompt_tokens, sequences)

    def prompts_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Time from the start of the first iteration of prompts to their first tokens. [ms]."""
        return self.mixed_ms(prompt_tokens, self._beside(sequences))

    def cycle_room(self, sequences: FloatArray) -> FloatArray:
        """Prompt tokens that fit into an iteration while `sequences` generate. [tokens]."""
        return self.prompt_room(self._beside(sequences))

    def prompt_room(self, sequences: FloatArray) -> FloatArray:
        """Prompt tokens that fit beside the generated ones of the same iteration. [tokens]."""
        found: FloatArray = np.maximum(1.0, self.iteration_tokens - sequences)
        return found

    def _beside(self, sequences: FloatArray) -> FloatArray:
        return np.zeros_like(sequences) if self.admission.prompts_apart else sequences

    def _one_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        grids = self.grids
        tokens = np.interp(prompt_tokens + sequences, grids.tokens, grids.token_ms)
        slope = np.interp(sequences, grids.sequences, grids.slope_ms)
        decode = np.interp(sequences, grids.sequences, grids.decode_ms)
        decode = decode + slope * sequences * self.lengths.context_tokens
        found: FloatArray = tokens + decode + prompt_tokens * self._attention_ms_per_token
        return found


def _one(value: Numbers, position: int) -> float:
    numbers = np.atleast_1d(value)
    return float(numbers[position if numbers.size > 1 else 0])
