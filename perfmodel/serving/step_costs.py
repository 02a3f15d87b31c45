"""Look-up tables with the time of any iteration of one engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

PROMPT_GRAIN_TOKENS: Final = 16
"""Tokens between two entries of `prompt_ms`. Source: the block size of vLLM's cache, documented default
16."""


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Times of the iterations of one engine: one attention-DP rank and pipeline micro-batch.

    Attributes
    ----------
    token_ms : tuple[float, ...]
        Time by tokens of the iteration, from 0. [ms]
    decode_ms : tuple[float, ...]
        Extra time of generated tokens without context, by sequences, from 0. [ms]
    decode_ms_per_context_token : tuple[float, ...]
        Extra time per token of context, by sequences, from 0. [ms]
    prompt_ms : tuple[float, ...]
        Extra time of a prompt of `PROMPT_GRAIN_TOKENS` times the index; the first entry applies to every
        prompt. [ms]
    prompt_floor_ms : float
        Least time of an iteration with prompts, that of its launches. [ms]
    rebuilt_ms_per_token : float
        Extra time per token before the computed ones of a prompt, because latent attention rebuilds its keys
        and values. [ms]
    read_ms_per_token : float
        Minimum time per such token, to read its keys and values. [ms]
    unlimited_ms : tuple[float, ...]
        Part of `prompt_ms` that attends to all earlier tokens; empty without such attention. [ms]
    """

    token_ms: tuple[float, ...]
    decode_ms: tuple[float, ...]
    decode_ms_per_context_token: tuple[float, ...]
    prompt_ms: tuple[float, ...]
    prompt_floor_ms: float = 0.0
    rebuilt_ms_per_token: float = 0.0
    read_ms_per_token: float = 0.0
    unlimited_ms: tuple[float, ...] = ()

    @property
    def most_sequences(self) -> int:
        """Largest number of sequences of an iteration."""
        return len(self.decode_ms) - 1

    @property
    def most_tokens(self) -> int:
        """Token budget of an iteration. [tokens]"""
        return len(self.token_ms) - 1

    def iteration_ms(self, prompt_tokens: int, prefix_tokens: int, sequences: int, context: float) -> float:
        """Return the time of one iteration with at most one prompt, as the engine adds it up. [ms]

        Parameters
        ----------
        prompt_tokens, prefix_tokens : int
            Tokens of the prompt to compute, and those before them. [tokens]
        sequences : int
            Sequences that gain a token.
        context : float
            Tokens that they attend to in total. [tokens]
        """
        attention = self.after_prefix_ms(prompt_tokens, prefix_tokens) if prompt_tokens else 0.0
        decode = self.decode_ms[sequences] + self.decode_ms_per_context_token[sequences] * context
        found = self.token_ms[prompt_tokens + sequences] + attention + decode
        return max(found, self.prompt_floor_ms) if prompt_tokens else found

    def after_prefix_ms(self, prompt_tokens: int, prefix_tokens: int) -> float:
        """Return the attention time of a prompt after a cached prefix. [ms]

        Attention to all earlier tokens takes the time of a whole prompt with as many pairs of queries and
        keys. Of other operators the prefix saves everything except launches, whose time is the second entry;
        reads, and rebuilt keys and values, come on top.
        """
        none = self.limited_ms(PROMPT_GRAIN_TOKENS)
        spared = max(0.0, self.limited_ms(prefix_tokens) - none) if prefix_tokens else 0.0
        computed = self.limited_ms(prefix_tokens + prompt_tokens) - spared
        computed += interpolated_ms(self.unlimited_ms, whole_prompt(prompt_tokens, prefix_tokens))
        least = self.prompt_ms[0] + self.read_ms_per_token * prefix_tokens
        return max(computed, least) + self.rebuilt_ms_per_token * prefix_tokens

    def limited_ms(self, position: int) -> float:
        """Return the time of a prompt up to a token, but for attention to all earlier tokens. [ms]"""
        return interpolated_ms(self.prompt_ms, position) - interpolated_ms(self.unlimited_ms, position)


def interpolated_ms(table: Sequence[float], position: float) -> float:
    """Return the time of a prompt up to a token from a table by blocks, linearly; 0 if it is empty. [ms]"""
    if not table:
        return 0.0
    block = int(position) // PROMPT_GRAIN_TOKENS
    rest = position / PROMPT_GRAIN_TOKENS - block
    return table[block] + rest * (table[block + 1] - table[block]) if rest else table[block]


def whole_prompt(prompt_tokens: int, prefix_tokens: int) -> float:
    """Return the length of a prompt with as many pairs of queries and keys as one after a prefix. [tokens]"""
    pairs = prompt_tokens * prefix_tokens + prompt_tokens * (prompt_tokens + 1) / 2
    return (sqrt(1.0 + 8.0 * pairs) - 1.0) / 2.0
