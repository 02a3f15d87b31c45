"""Mean lengths of requests: one number each, or one for each of n loads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray

Numbers: TypeAlias = float | FloatArray
"""A number, or one for each of n loads."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean lengths of requests. [tokens]

    Attributes
    ----------
    input_tokens, prefix_tokens, output_tokens : Numbers
        New prompt tokens, cached ones before them, and generated tokens.
    tokens_per_step : float
        Tokens per sequence and decode iteration; above one with speculation.
    samples : int
        Generations per prompt.
    lost_ratio : Numbers
        Share of the requests that recompute their prefix, because the cache of their session is lost.
    shared_tokens : int
        Part of the prefix that is always cached. [tokens]
    """

    input_tokens: Numbers
    prefix_tokens: Numbers
    output_tokens: Numbers
    tokens_per_step: float = 1.0
    samples: int = 1
    lost_ratio: Numbers = 0.0
    shared_tokens: int = 0

    @property
    def computed_tokens(self) -> Numbers:
        """Mean computed prompt tokens. [tokens]"""
        lost: Numbers = np.maximum(0.0, self.prefix_tokens - np.asarray(float(self.shared_tokens)))
        return self.input_tokens + self.lost_ratio * lost

    @property
    def context_tokens(self) -> Numbers:
        """Mean tokens that a generated token attends to. [tokens]"""
        return self.prefix_tokens + self.input_tokens + self.output_tokens / 2

    @property
    def decode_iterations(self) -> Numbers:
        """Decode iterations of a request; its first token comes with its prompt. [iterations]"""
        return (self.output_tokens - 1.0) / self.tokens_per_step

    def of(self, position: int) -> Lengths:
        """Return the lengths of one of n loads."""
        return replace(
            self,
            input_tokens=one_number(self.input_tokens, position),
            prefix_tokens=one_number(self.prefix_tokens, position),
            output_tokens=one_number(self.output_tokens, position),
            lost_ratio=one_number(self.lost_ratio, position),
        )

    def take(self, rows: IntArray) -> Lengths:
        """Return the lengths of some of n loads."""
        return replace(
            self,
            input_tokens=some_numbers(self.input_tokens, rows),
            prefix_tokens=some_numbers(self.prefix_tokens, rows),
            output_tokens=some_numbers(self.output_tokens, rows),
            lost_ratio=some_numbers(self.lost_ratio, rows),
        )


def some_numbers(value: Numbers, rows: IntArray) -> Numbers:
    """Return the numbers of some of n loads; a single number applies to all."""
    numbers = np.asarray(value)
    return numbers[rows] if numbers.size > 1 else value


def one_number(value: Numbers, position: int) -> float:
    """Return the number of one of n loads."""
    numbers = np.atleast_1d(value)
    return float(numbers[position if numbers.size > 1 else 0])
