"""Iteration times of continuous batching at fractional batch sizes, for closed formulas."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray, attended_pairs
from fleetplan.perfmodel.optables.attention import length_of_pairs
from fleetplan.perfmodel.optables.unique import unique_rows
from fleetplan.perfmodel.serving import Admission, StepGrids
from fleetplan.perfmodel.serving.admission import EVERY_ITERATION
from fleetplan.perfmodel.serving.grid_interpolation import interpolated
from fleetplan.perfmodel.serving.lengths import Lengths, Numbers, one_number, some_numbers

_ROUNDING: Final = 1e-9
"""Largest prompt share of an iteration that is rounding error."""

_NEWTON_STEPS: Final = 6
"""From the side on which Newton's method closes in without passing the root, to the last digit."""

_MOST_NUMBERS: Final = 128
"""Numbers of prompts over which a mean is taken: all that are likely up to a mean of a hundred."""


def _first_layout() -> IntArray:
    return np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Iteration times from step grids, for requests of given mean lengths.

    Attributes
    ----------
    grids : StepGrids
        Iteration times of the engines.
    lengths : Lengths
        Lengths of the requests.
    iteration_tokens : Numbers
        Token budget of an iteration. [tokens]
    admission : Admission
        Admission of prompts.
    layouts : IntArray
        Layout of each load by its position in the grids, shape (n,); the first by default.
    """

    grids: StepGrids
    lengths: Lengths
    iteration_tokens: Numbers
    admission: Admission = EVERY_ITERATION
    layouts: IntArray = field(default_factory=_first_layout)
    _attention_ms_per_token: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lengths = self.lengths
        prefix = np.asarray(lengths.prefix_tokens, dtype=np.float64)
        warm = self._after_ms(prefix)
        lost = np.maximum(0.0, prefix - lengths.shared_tokens) if np.any(lengths.lost_ratio) else 0.0
        cold = self._after_ms(prefix - lost, lost) if np.any(lost) else warm
        mean = warm + lengths.lost_ratio * (cold - warm)
        object.__setattr__(self, "_attention_ms_per_token", mean / lengths.computed_tokens)

    def _after_ms(self, prefix_tokens: FloatArray, lost_tokens: Numbers = 0.0) -> FloatArray:
        """Return the attention time of a prompt and of lost tokens before it, after a prefix. [ms]"""
        prompt_tokens = self.lengths.input_tokens + lost_tokens
        cases = np.broadcast_arrays(self.layouts, prefix_tokens, prompt_tokens)
        # Loads differ in their batch more than in layout and lengths; equal numbers have equal bits.
        bits = [np.ascontiguousarray(each, dtype=np.float64).view(np.int64).ravel() for each in cases]
        distinct = unique_rows({str(position): each for position, each in enumerate(bits)})
        layouts, prefixes, prompts = (each.view(np.float64) for each in distinct.dims.values())
        found: FloatArray = after_prefix_ms(self.grids, layouts.astype(np.int64), prefixes, prompts)
        return found[distinct.codes]

    @property
    def most_sequences(self) -> float:
        """Largest number of sequences of an iteration."""
        return float(self.grids.sequences[-1])

    def of(self, position: int) -> IterationTimes:
        """Return the times for one of n loads."""
        layout = int(self.layouts[position if self.layouts.size > 1 else 0])
        return self._narrowed(
            grids=self.grids.of(layout),
            lengths=self.lengths.of(position),
            iteration_tokens=one_number(self.iteration_tokens, position),
            layouts=_first_layout(),
            _attention_ms_per_token=one_number(self._attention_ms_per_token, position),
        )

    def take(self, rows: IntArray) -> IterationTimes:
        """Return the times for some of n loads."""
        return self._narrowed(
            lengths=self.lengths.take(rows),
            iteration_tokens=some_numbers(self.iteration_tokens, rows),
            layouts=self.layouts[rows] if self.layouts.size > 1 else self.layouts,
            _attention_ms_per_token=some_numbers(self._attention_ms_per_token, rows),
        )

    def _narrowed(self, **fields: Any) -> IterationTimes:
        """Return a copy for some of the loads that reuses the attention times."""
        found = copy(self)
        for name, value in fields.items():
            object.__setattr__(found, name, value)
        return found

    def decode_ms(self, sequences: FloatArray) -> FloatArray:
        """Return the time of an iteration without prompts, of at least one sequence. [ms]"""
        running = np.maximum(sequences, 1.0)
        return self._tokens_ms(running) + self._generation_ms(running)

    def mean_ms(
        self,
        carrying: FloatArray,
        prompt_tokens: FloatArray,
        sequences: FloatArray,
        peers: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Return the mean time between two tokens of every sequence. [ms]

        Parameters
        ----------
        carrying : FloatArray
            Share of these intervals with prompts, shape (n,).
        prompt_tokens : FloatArray
            Prompt tokens in these intervals, shape (n,). [tokens]
        sequences : FloatArray
            Generating sequences, shape (n,).
        peers : tuple[FloatArray, FloatArray] or None
            `carrying` and `prompt_tokens` of the other ranks if they differ, shape (n,) each.
        """
        decode = self.decode_ms(sequences)
        others = self._others
        alone: FloatArray = carrying * self.cycle_ms(prompt_tokens, sequences) + (1 - carrying) * decode
        if not others.any():
            return alone
        own = carrying, prompt_tokens
        in_step = self._in_step_ms(own, own if peers is None else peers, sequences, others, decode)
        return np.where(others > 0, in_step, alone)

    @property
    def _others(self) -> FloatArray:
        """Attention-DP ranks that admit prompts independently of this one, shape (n,) or (1,)."""
        found: FloatArray = self.grids.ranks[self.layouts] - 1.0
        return found if self.admission.prompts_apart and not self.admission.prompts_aligned else 0.0 * found

    def _in_step_ms(
        self,
        own: tuple[FloatArray, FloatArray],
        peers: tuple[FloatArray, FloatArray],
        sequences: FloatArray,
        others: FloatArray,
        decode_ms: FloatArray,
    ) -> FloatArray:
        """Return `mean_ms` of ranks that run prompts apart and synchronise at the experts of each layer. [ms]

        The slowest rank sets the time of an iteration. A rank has prompts in a share s of its iterations.
        While it generates, at least one of its n peers has prompts with probability 1 - (1 - s)^n. With
        speculative decoding, peers wait while a rank computes prompts; otherwise they generate.
        """
        none = np.zeros_like(sequences)
        ranks = 1.0 + others
        (carrying, prompt_tokens), (peer_share, peer_tokens) = own, peers
        # With a mean below one running sequence, some prompts are followed by no generation.
        steps = 1 - carrying + carrying * np.minimum(1.0, sequences)
        if self.lengths.tokens_per_step > 1:
            any_rank = 1 - (1 - carrying) * (1 - peer_share) ** others
            apart = self.mixed_ms(peer_tokens, none, peer_share / np.maximum(any_rank, _ROUNDING))
            drafted: FloatArray = steps * decode_ms + any_rank * apart
            return drafted
        iterations = np.maximum(1.0, peer_tokens / self.cycle_room(sequences))
        of_steps = 1 - peer_share + peer_share * np.minimum(1.0, sequences)
        peer_share = peer_share * iterations / np.maximum(of_steps + peer_share * iterations, _ROUNDING)
        any_peer = 1 - (1 - peer_share) ** others
        prompts_ms = self.mixed_ms(prompt_tokens, none, (1 + others * peer_share) / ranks)
        share_with_prompts = (
            np.where(any_peer > 0, others * peer_share / np.maximum(any_peer, _ROUNDING), 0.0) / ranks
        )
        slowed_ms = np.maximum(decode_ms, self.mixed_ms(peer_tokens / iterations, none, share_with_prompts))
        generating = (1 - any_peer) * decode_ms + any_peer * slowed_ms
        found: FloatArray = carrying * prompts_ms + steps * generating
        return found

    def mixed_ms(self, prompt_tokens: FloatArray, sequences: FloatArray, share: Numbers = 1.0) -> FloatArray:
        """Return the time of the iterations that the token budget needs for `prompt_tokens`. [ms]

        `share` is the share of attention-DP ranks with that many prompt tokens at once.
        """
        room = self.prompt_room(sequences)
        # Prompts that fill an iteration to the last token, but for rounding, need no other one.
        whole = np.floor(prompt_tokens / room + _ROUNDING)
        rest = np.maximum(0.0, prompt_tokens - whole * room)
        each = self._generation_ms(sequences) if sequences.any() else 0.0
        floor = self.grids.prompt_floor_ms[self.layouts]
        attention = self._attention_ms_per_token
        last = np.maximum(
            floor, self._tokens_ms(rest + sequences, rest * share + sequences) + each + rest * attention
        )
        found = np.where(rest > _ROUNDING * room, last, 0.0)
        if whole.any():
            full = self._tokens_ms(room + sequences, room * share + sequences) + each + room * attention
            found = found + whole * np.maximum(floor, full)
        return np.where(prompt_tokens > 0, found, self.decode_ms(sequences))

    def cycle_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Return the time between two tokens of every sequence while prompts are computed. [ms]"""
        if not self.admission.prompts_apart:
            return self.mixed_ms(prompt_tokens, sequences)
        found = self._drawn_prompts_ms(prompt_tokens) + self.decode_ms(sequences)
        # With a mean below one running sequence, some prompts are followed by no generation.
        generating = np.minimum(1.0, sequences)
        if (generating < 1).any():
            found = generating * found + (1 - generating) * self._streamed_prompts_ms(prompt_tokens)
        return found

    def _drawn_prompts_ms(self, prompt_tokens: FloatArray) -> FloatArray:
        """Return the mean time of the iterations of all prompts that arrived since the last ones. [ms]

        Requests of different lengths end one by one, so the number of prompts is Poisson-distributed, given
        at least one. The mean over this distribution is smooth in the load. The time at the mean number is
        not: one token above the budget needs another iteration, which may change the rate by a third.
        """
        none, prompt = np.zeros_like(prompt_tokens), self.lengths.computed_tokens
        found = self.mixed_ms(prompt_tokens, none)
        mean = np.maximum(1.0, prompt_tokens / prompt)
        first, last = _likely_numbers(mean)
        # Numbers of prompts that fit into one iteration differ only by their mean.
        several = (mean > 1 + _ROUNDING) & (last * prompt > self.prompt_room(none))
        sizes = np.exp2(np.ceil(np.log2(last - first + 1)))
        for size in np.unique(sizes[several]).tolist():
            rows = np.flatnonzero(several & (sizes == size))
            numbers = first[rows, None] + np.arange(size)
            shares = _shares_of_numbers(mean[rows], numbers)
            tokens = numbers * (prompt_tokens[rows] / (shares * numbers).sum(axis=1))[:, None]
            each = self.take(np.repeat(rows, int(size))).mixed_ms(tokens.ravel(), np.zeros(tokens.size))
            found[rows] = (shares * each.reshape(tokens.shape)).sum(axis=1)
        return found

    def _streamed_prompts_ms(self, prompt_tokens: FloatArray) -> FloatArray:
        """Return the time of prompts without decoding, if the next prompts fill the last iteration. [ms]"""
        none = np.zeros_like(prompt_tokens)
        room = self.prompt_room(none)
        alone = self.mixed_ms(np.minimum(prompt_tokens, np.maximum(room, self.lengths.computed_tokens)), none)
        filled = prompt_tokens / room * self.mixed_ms(room, none)
        return np.where(prompt_tokens > room, np.maximum(alone, filled), alone)

    def prompts_ms(self, prompt_tokens: FloatArray, sequences: FloatArray) -> FloatArray:
        """Return the time from the start of the first iteration of prompts to their first tokens. [ms]"""
        return self.mixed_ms(prompt_tokens, self._beside(sequences))

    def cycle_room(self, sequences: FloatArray) -> FloatArray:
        """Return the prompt tokens between two tokens of `sequences` generating sequences. [tokens]"""
        return self.prompt_room(self._beside(sequences))

    def prompt_room(self, sequences: FloatArray) -> FloatArray:
        """Return the prompt tokens that fit into an iteration beside its generated tokens. [tokens]"""
        found: FloatArray = np.maximum(1.0, self.iteration_tokens - sequences)
        return found

    def _beside(self, sequences: FloatArray) -> FloatArray:
        return np.zeros_like(sequences) if self.admission.prompts_apart else sequences

    def _tokens_ms(self, tokens: FloatArray, of_all: FloatArray | None = None) -> FloatArray:
        """Return the time of an iteration with `tokens` on this rank and a mean of `of_all` per rank. [ms]"""
        grids = self.grids
        found = interpolated(tokens, grids.tokens, self.layouts, grids.token_ms)[0]
        if of_all is None or not grids.shared_ms.any():
            return found
        (own,) = interpolated(tokens, grids.tokens, self.layouts, grids.shared_ms)
        (shared,) = interpolated(of_all, grids.tokens, self.layouts, grids.shared_ms)
        return found - own + shared

    def _generation_ms(self, sequences: FloatArray) -> FloatArray:
        """Return the extra time of generated tokens, mainly attention. [ms]"""
        grids = self.grids
        tables = grids.slope_ms, grids.decode_ms, grids.least_ms, grids.bend_ms
        slope, alone, least, bend = interpolated(sequences, grids.sequences, self.layouts, *tables)
        context, (near, full, far) = self.lengths.context_tokens, grids.contexts
        above = bend * np.minimum((context - near) / (full - near), (far - context) / (far - full))
        found: FloatArray = np.maximum(alone + slope * sequences * context + above, least)
        return found


def _truncated_mean(mean: FloatArray) -> FloatArray:
    """Return the Poisson parameter whose mean given at least one event is `mean`, by Newton's method."""
    found = np.minimum(mean, 2 * (mean - 1))
    for _ in range(_NEWTON_STEPS):
        none = np.exp(-found)
        found = found - (found - mean * (1 - none)) / np.maximum(1 - mean * none, _ROUNDING)
    return np.maximum(found, _ROUNDING)


def _likely_numbers(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first and last number of prompts with relevant probability for a mean, shape (n,) each."""
    reach = np.minimum(_MOST_NUMBERS / 2 - 1, 5.0 * np.sqrt(mean) + 5.0)
    return np.maximum(1.0, np.floor(mean - reach)), np.ceil(mean + reach)


def _shares_of_numbers(mean: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return the probabilities of consecutive numbers of prompts, shape (n, n_numbers)."""
    logs = np.cumsum(np.log(_truncated_mean(mean))[:, None] - np.log(numbers), axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return found


def after_prefix_ms(
    grids: StepGrids, layouts: IntArray, prefix_tokens: FloatArray, prompt_tokens: FloatArray
) -> FloatArray:
    """Return the attention time of prompts after cached prefixes, shape (n,). [ms]

    Attention to all earlier tokens takes the time of a whole prompt with as many pairs of queries and keys,
    as in a step. Limited attention takes what it grows by, which does not decrease with the prefix: measured
    times of short prompts may, and the largest growth of all shorter prefixes then applies. A prompt of few
    tokens takes at least the time to read the keys and values before it. Latent attention also rebuilds
    these.

    Parameters
    ----------
    grids : StepGrids
        Times of the layouts.
    layouts : IntArray
        Layout of each case by its position in the grids, shape (n,).
    prefix_tokens, prompt_tokens : FloatArray
        Tokens of each case, shape (n,). [tokens]
    """
    prefix, prompt = prefix_tokens[:, None], prompt_tokens[:, None]
    bends = np.broadcast_to(grids.lengths, (prefix.size, grids.lengths.size))
    shorter = np.hstack([prefix, np.minimum(prefix, bends), np.clip(bends - prompt, 0.0, prefix)])
    rows = np.broadcast_to(layouts[:, None], shorter.shape)
    limited = grids.prompt_ms - grids.unlimited_ms

    def limited_ms(tokens: FloatArray) -> FloatArray:
        return interpolated(tokens, grids.lengths, rows, limited)[0]

    # A prompt after a cached prefix launches its kernels as well.
    saved = np.maximum(0.0, limited_ms(shorter) - limited[layouts, 1][:, None])
    no_window = np.zeros(prefix_tokens.shape, dtype=np.int64)
    whole = length_of_pairs(attended_pairs(prompt_tokens, prefix_tokens, no_window), no_window)
    (unlimited_ms,) = interpolated(whole, grids.lengths, layouts, grids.unlimited_ms)
    least = grids.prompt_ms[layouts, 0] + grids.read_ms[layouts] * prefix_tokens
    found: FloatArray = np.maximum((limited_ms(shorter + prompt) - saved).max(axis=1) + unlimited_ms, least)
    return found + grids.rebuilt_ms[layouts] * prefix_tokens
