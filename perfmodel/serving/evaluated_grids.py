"""Iteration times on grids of tokens, sequences and prompt lengths, interpolated linearly.

The look-ups of all grid points are queued together; the sums follow when all times are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving.grid_interpolation import interpolated
from fleetplan.perfmodel.serving.step_costs import PROMPT_GRAIN_TOKENS
from fleetplan.perfmodel.steps import StepShape, StepTimes
from fleetplan.perfmodel.steps.host_launches import HOST_NAME
from fleetplan.perfmodel.steps.parts import UNLIMITED_PROMPTS
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.techniques.speculative import step_cost_ratio

_GRID_POINTS: Final = 48
"""Token counts and batches that are evaluated; step times are taken as straight between two of them."""

_SHORT_CONTEXT_STEP: Final = 4
"""One of this many batches is evaluated without context as well."""

_SHARED_OPERATORS: Final = ("routed_experts",)
"""Name prefixes of operators that process the tokens of all attention-DP ranks. A rank that sends its tokens
to experts takes as long as its number of tokens requires."""

_SHARED_WITHOUT_EP: Final = ("shared_experts", "ffn_")
"""Further prefixes if all ranks share one feed-forward block, which is split over them as a whole."""

_REBUILDING: Final = "key_value_projection"
"""The operator of latent attention whose time grows with the prefix of a prompt as with its own tokens."""

_PROMPT_OPERATORS: Final = "prefill_"
"""Name prefixes of operators whose time depends on a token's position in its prompt."""


@dataclass(frozen=True, slots=True)
class Range:
    """Ranges of step costs for a simulation.

    Attributes
    ----------
    sequences : int
        Largest number of sequences of an iteration.
    prompt_tokens : int
        Largest number of prompt tokens of an iteration. [tokens]
    context_tokens : int
        Largest context of a sequence. [tokens]
    """

    sequences: int
    prompt_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class StepGrids:
    """Evaluated times of `StepCosts`, interpolated linearly.

    Attributes
    ----------
    tokens, sequences, lengths : FloatArray
        Grid points: tokens of an iteration, sequences, and prompt tokens; shape (n_points,) each.
    token_ms : FloatArray
        Time of an iteration by its tokens, shape (n_layouts, n_points). [ms]
    shared_ms : FloatArray
        Part of `token_ms` that attention-DP ranks compute together for the tokens of all ranks; zero with one
        rank; shape (n_layouts, n_points). [ms]
    decode_ms, slope_ms : FloatArray
        Extra time of sequences without context, and per token of their context, shape (n_layouts, n_points).
        [ms]
    contexts : tuple[float, float, float]
        Contexts between which `decode_ms` and `slope_ms` are linear, first and last; and the context at which
        attention stops growing, because windows are full or an index has selected its maximum. [tokens]
    bend_ms : FloatArray
        Excess over that line at the second of `contexts`; zero without a bend between the others; shape
        (n_layouts, n_points). [ms]
    least_ms : FloatArray
        Minimum extra time of sequences, for kernels with short contexts, shape (n_layouts, n_points). [ms]
    prompt_ms : FloatArray
        Extra time of a prompt by its length: attention, its state, the logits of its last token. At zero
        tokens, that of any prompt; shape (n_layouts, n_points). [ms]
    unlimited_ms : FloatArray
        Part of `prompt_ms` that attends to all earlier tokens, shape (n_layouts, n_points). [ms]
    prompt_floor_ms : FloatArray
        Least time of an iteration with prompts: that of its launches, shape (n_layouts,). [ms]
    ranks : FloatArray
        Attention-DP ranks whose iterations start and end together, shape (n_layouts,).
    rebuilt_ms : FloatArray
        Extra time per token before the computed ones, because latent attention rebuilds its keys and values;
        zero for other attention; shape (n_layouts,). [ms]
    read_ms : FloatArray
        Minimum time per token before the computed ones, to read its keys and values; shape (n_layouts,). [ms]
    """

    tokens: FloatArray
    token_ms: FloatArray
    shared_ms: FloatArray
    sequences: FloatArray
    decode_ms: FloatArray
    slope_ms: FloatArray
    contexts: tuple[float, float, float]
    bend_ms: FloatArray
    least_ms: FloatArray
    lengths: FloatArray
    prompt_ms: FloatArray
    unlimited_ms: FloatArray
    prompt_floor_ms: FloatArray
    ranks: FloatArray
    rebuilt_ms: FloatArray
    read_ms: FloatArray

    def of(self, layout: int) -> StepGrids:
        """Return the times of one layout, by its position."""
        one = slice(layout, layout + 1)
        return replace(self, **{name: getattr(self, name)[one] for name in OF_LAYOUTS})


OF_LAYOUTS: Final = (
    "token_ms",
    "shared_ms",
    "decode_ms",
    "slope_ms",
    "bend_ms",
    "least_ms",
    "prompt_ms",
    "unlimited_ms",
    "prompt_floor_ms",
    "ranks",
    "rebuilt_ms",
    "read_ms",
)
"""Fields of `StepGrids` with a row for each layout; the others are the points."""


def asked_grids(
    evaluator: Evaluator, layouts: Sequence[Parallelism], wanted: Range, lookups: SharedLookups
) -> Callable[[], StepGrids]:
    """Queue the look-ups of some layouts, and return a function that returns their grids.

    Parameters
    ----------
    evaluator, layouts, wanted
        As in `fleetplan.perfmodel.serving.step_grids`.
    lookups : SharedLookups
        Queue of operators.
    """
    points = _Points.of(evaluator, wanted)
    first = Layouts.of(list(layouts)).reshaped((-1, 1, 1))
    steps = evaluator.asked_steps(
        [
            _prompts(first, points.tokens),
            _prompts(first, points.lengths),
            _single_tokens(first, points),
            _generation(first, points.sequences, points.near),
            _generation(first, points.sequences, points.far),
            _generation(first, points.short, 1),
            *([_generation(first, points.sequences, points.bend)] if points.bends else []),
        ],
        lookups,
    )
    ratio = step_cost_ratio(evaluator.techniques.speculative)
    return lambda: _grids_of(layouts, points, ratio, steps())


@dataclass(frozen=True, slots=True)
class _Points:
    """Points of evaluated iterations: tokens, sequences and lengths [n], and two contexts. [tokens].

    `short` are the sequences that are also evaluated without context. Times are linear from `near` to `bend`
    and from `bend` to `far`. The bend is the context at which attention stops growing, or else the middle.
    """

    tokens: IntArray
    sequences: IntArray
    short: IntArray
    lengths: IntArray
    near: int
    bend: int
    far: int
    bends: bool

    @classmethod
    def of(cls, evaluator: Evaluator, wanted: Range) -> _Points:
        # A shared prefix is read once, whatever else requests attend to.
        sequences = _grid(wanted.sequences)
        near = max(1, wanted.context_tokens // 16, evaluator.techniques.shared_prefix_tokens + 1)
        far = max(2 * near, wanted.context_tokens // 2)
        bends = [each for each in evaluator.architecture.attended_limits if near < each < far]
        return cls(
            _grid(wanted.prompt_tokens + wanted.sequences),
            sequences,
            np.unique(np.r_[sequences[::_SHORT_CONTEXT_STEP], sequences[-1]]),
            _grid(wanted.context_tokens, PROMPT_GRAIN_TOKENS),
            near,
            bends[-1] if bends else (near + far) // 2,
            far,
            bool(bends),
        )


def _grids_of(
    layouts: Sequence[Parallelism], points: _Points, ratio: float, steps: Sequence[StepTimes]
) -> StepGrids:
    """Return the grids of tokens, of long and short prompts, and of sequences at both contexts."""
    by_tokens, by_length, singles, near_context, far_context, short, *bend = steps
    tokens, sequences = points.tokens, points.sequences

    def by_layout(times_ms: FloatArray) -> FloatArray:
        found: FloatArray = ratio * times_ms.reshape(len(layouts), -1)
        return found

    waits = _host_waits(by_tokens)
    token_ms = by_layout(by_tokens.latency_ms - waits - _part(by_tokens, _PROMPT_OPERATORS))
    # A prompt of one token waits for its launches wherever any prompt does.
    prompt_floor_ms = by_layout(np.where(waits > 0, by_tokens.latency_ms, 0.0))[:, 0]
    near_ms = by_layout(near_context.latency_ms)
    slope = (by_layout(far_context.latency_ms) - near_ms) / (sequences * (points.far - points.near))
    slope = np.maximum(slope, 0.0)
    rows = np.repeat(np.arange(len(layouts)), sequences.size)
    (shared,) = interpolated(np.tile(sequences, len(layouts)), tokens, rows, token_ms)
    token_part_ms = shared.reshape(slope.shape)
    without_context = near_ms - slope * sequences * points.near - token_part_ms
    on_line_ms = near_ms + slope * sequences * (points.bend - points.near)
    above_ms = np.maximum(0.0, by_layout(bend[0].latency_ms) - on_line_ms) if bend else 0.0 * on_line_ms
    known = np.searchsorted(sequences, points.short)
    shortest_ms = by_layout(short.latency_ms) - token_part_ms[:, known]
    least_ms = np.stack([np.interp(sequences, points.short, row) for row in shortest_ms])
    # For many prompts of one token each, subtract the time of those tokens in one prompt.
    single_ms = by_layout(_part(singles, _PROMPT_OPERATORS))
    count, many_prompts_ms = sequences[-1], by_layout(singles.latency_ms - _host_waits(singles))[:, :1]
    each_prompt_ms = np.maximum(0.0, many_prompts_ms - token_part_ms[:, -1:]) / count
    logits_ms = np.maximum(0.0, each_prompt_ms - single_ms[:, :1] / count)
    attention_ms = by_layout(_part(by_length, _PROMPT_OPERATORS)) + logits_ms
    unlimited_ms = by_layout(_part(by_length, UNLIMITED_PROMPTS))
    shortest = points.lengths[0]
    base_prompt_ms = np.maximum(0.0, (shortest * each_prompt_ms - attention_ms[:, :1]) / (shortest - 1))
    none = np.zeros((len(layouts), 1))
    ranks = np.array([float(layout.dp) for layout in layouts])
    # No sequence, no attention; the slope of none is that of one.
    return StepGrids(
        tokens=tokens.astype(np.float64),
        token_ms=token_ms,
        shared_ms=np.where(ranks[:, None] > 1, by_layout(_shared_part(by_tokens, layouts, tokens.size)), 0.0),
        sequences=np.r_[0.0, sequences],
        decode_ms=np.hstack([none, without_context]),
        slope_ms=np.hstack([slope[:, :1], slope]),
        contexts=(float(points.near), float(points.bend), float(points.far)),
        bend_ms=np.hstack([none, above_ms]),
        least_ms=np.hstack([none, least_ms]),
        lengths=np.r_[0.0, points.lengths],
        prompt_ms=np.maximum.accumulate(np.hstack([base_prompt_ms, attention_ms]), axis=1),
        unlimited_ms=np.maximum.accumulate(np.hstack([none, unlimited_ms]), axis=1),
        prompt_floor_ms=prompt_floor_ms,
        ranks=ranks,
        # Few tokens take the time of a launch, which each prompt has once.
        rebuilt_ms=by_layout(_part(by_length, _REBUILDING))[:, -1] / points.lengths[-1],
        read_ms=np.maximum(0.0, single_ms[:, 2] - single_ms[:, 1]) / points.far,
    )


def _grid(largest: int, smallest: int = 1) -> IntArray:
    """Return integers from `smallest` to `largest` in nearly equal ratios, shape (n,)."""
    points = np.geomspace(smallest, max(largest, smallest + 1), _GRID_POINTS)
    found: IntArray = np.unique(np.ceil(points).astype(np.int64))
    return found


def _prompts(layouts: Layouts, tokens: IntArray) -> StepShape:
    """Return the steps of one prompt, for each layout and length."""
    new_tokens = tokens.reshape(1, -1, 1)
    none = np.zeros_like(new_tokens)
    return StepShape(layouts, np.ones_like(none), new_tokens, none, none, none)


def _single_tokens(layouts: Layouts, points: _Points) -> StepShape:
    """Return the steps of as many one-token prompts as sequences, and of one after two long prefixes."""
    prompts = np.array([points.sequences[-1], 1, 1]).reshape(1, -1, 1)
    prefixes = np.array([0, points.far, 2 * points.far]).reshape(1, -1, 1)
    none = np.zeros_like(prompts)
    return StepShape(layouts, prompts, np.ones_like(prompts), prefixes, none, none)


def _generation(layouts: Layouts, sequences: IntArray, context_tokens: int) -> StepShape:
    """Return the steps of generating sequences, for each layout and number of sequences."""
    running = sequences.reshape(1, -1, 1)
    none, context = np.zeros_like(running), np.full_like(running, context_tokens)
    return StepShape(layouts, none, none, none, running, context)


def _host_waits(times: StepTimes) -> FloatArray:
    """Return the time for which a step waits for its launches, shape (n,). [ms]"""
    found: FloatArray = times.breakdown_ms[[name == HOST_NAME for name in times.names]].sum(axis=0)
    return found


def _part(times: StepTimes, names: str) -> FloatArray:
    """Return the time of the operators with a name prefix, shape (n,). [ms]"""
    rows = [row for row, name in enumerate(times.names) if name.startswith(names)]
    part: FloatArray = times.breakdown_ms[rows].sum(axis=0)
    return part


def _shared_part(times: StepTimes, layouts: Sequence[Parallelism], points: int) -> FloatArray:
    """Return the time of the operators on the tokens of all attention-DP ranks, shape (n,). [ms]"""
    with_ep = np.repeat([layout.ep > 1 for layout in layouts], points)
    found: FloatArray = np.zeros(times.latency_ms.shape)
    for name, row in zip(times.names, times.breakdown_ms, strict=True):
        if name.startswith(_SHARED_OPERATORS):
            found = found + row
        elif name.startswith(_SHARED_WITHOUT_EP):
            found = found + np.where(with_ep, 0.0, row)
    return found
