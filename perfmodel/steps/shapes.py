"""Configurations of a model, and the shapes of the steps that they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.parallelism import Layouts


@dataclass(frozen=True, slots=True)
class StepShape:
    """Sequences and tokens of a step of each configuration, each array of shape (n_configs,).

    Attributes
    ----------
    layouts : Layouts
        Parallelism.
    prefill_sequences : IntArray
        Prompts of one attention-DP rank in one micro-batch; 0 in a decode step.
    new_tokens, prefix_tokens : IntArray
        Tokens of a prompt to compute, and tokens that its cache holds already. [tokens]
    decode_sequences : IntArray
        Sequences of one rank in one micro-batch that gain a token; 0 in a prefill step.
    context_tokens : IntArray
        Tokens that the sequence attends to. [tokens]
    """

    layouts: Layouts
    prefill_sequences: IntArray
    new_tokens: IntArray
    prefix_tokens: IntArray
    decode_sequences: IntArray
    context_tokens: IntArray

    @property
    def is_full_grid(self) -> bool:
        """Whether it is a cross product whose axes broadcast; see `steps.grid_latency`."""
        return self.prefill_sequences.ndim > 1 or self.layouts.pp.ndim > 1

    @property
    def rank_tokens(self) -> IntArray:
        """Tokens of one attention-DP rank, shape (n_configs,). [tokens]."""
        return self.prefill_sequences * self.new_tokens + self.decode_sequences

    @property
    def local_tokens(self) -> IntArray:
        """Tokens that the projections of attention on one accelerator compute, shape (n_configs,). [tokens].

        Context parallelism shares out the tokens of prompts; a generated token is on all of its ranks.
        """
        if self._is_whole:
            return self.rank_tokens
        return self.prefill_sequences * self.local_new_tokens + self.decode_sequences

    @property
    def share_tokens(self) -> IntArray:
        """Tokens of a rank that one of its context-parallel accelerators brings to the feed-forward part."""
        return self.rank_tokens if self._is_whole else -(-self.rank_tokens // self.layouts.cp)

    @property
    def local_new_tokens(self) -> IntArray:
        """Tokens of one prompt that one accelerator computes, shape (n_configs,). [tokens]."""
        return self.new_tokens if self._is_whole else -(-self.new_tokens // self.layouts.cp)

    @property
    def local_prefix_tokens(self) -> IntArray:
        """Prefix over which its queries see as many keys as in the whole prompt. [tokens].

        Prompts are dealt out so that all accelerators see equally many pairs of queries and keys.
        """
        if self._is_whole:
            return self.prefix_tokens
        return self.prefix_tokens + (self.new_tokens - self.local_new_tokens) // 2

    @property
    def local_context_tokens(self) -> IntArray:
        """Cached tokens of a sequence that one accelerator attends to in decode. [tokens]."""
        return self.context_tokens if self._is_whole else -(-self.context_tokens // self.layouts.cp)

    @property
    def _is_whole(self) -> bool:
        # Without context parallelism the arrays keep the few axes that they have in a cross product.
        return bool((self.layouts.cp == 1).all())

    @property
    def stage_tokens(self) -> IntArray:
        """Tokens of all ranks of a stage, shape (n_configs,). [tokens]."""
        return self.rank_tokens * self.layouts.dp

    @property
    def ffn_tokens(self) -> IntArray:
        """Tokens that a dense block computes on one accelerator, shape (n_configs,). [tokens].

        The `ep` groups of `ffn_tp` accelerators each hold the whole dense block and share the tokens.
        """
        return -(-self.stage_tokens // self.layouts.ep)

    @classmethod
    def concatenated(cls, shapes: Sequence[StepShape]) -> StepShape:
        """Return the steps of all `shapes`, one after the other."""
        return cls(
            Layouts.concatenated([shape.layouts for shape in shapes]),
            np.concatenate([shape.prefill_sequences for shape in shapes]),
            np.concatenate([shape.new_tokens for shape in shapes]),
            np.concatenate([shape.prefix_tokens for shape in shapes]),
            np.concatenate([shape.decode_sequences for shape in shapes]),
            np.concatenate([shape.context_tokens for shape in shapes]),
        )

    @classmethod
    def side_by_side(cls, shapes: Sequence[StepShape]) -> StepShape:
        """Return the cross products of all `shapes`, which have the same layouts, along the second axis."""
        fields = zip(*(shape.sequences_and_tokens for shape in shapes), strict=True)
        return cls(shapes[0].layouts, *(np.concatenate(parts, axis=1) for parts in fields))

    @property
    def sequences_and_tokens(self) -> tuple[IntArray, ...]:
        """All attributes but the layouts, in their order."""
        return (
            self.prefill_sequences,
            self.new_tokens,
            self.prefix_tokens,
            self.decode_sequences,
            self.context_tokens,
        )

    @property
    def crossed(self) -> tuple[int, ...]:
        """Lengths of the axes of a cross product."""
        return np.broadcast_shapes(
            self.layouts.pp.shape, *(values.shape for values in self.sequences_and_tokens)
        )

    def of_layouts(self, rows: IntArray) -> StepShape:
        """Return the cross product of the layouts at `rows` along its first axis."""
        return StepShape(self.layouts.take(rows), *self.sequences_and_tokens)

    def flattened(self) -> StepShape:
        """Return a cross product as steps one after the other, the last axis fastest."""
        shape = self.crossed
        flat = (np.broadcast_to(values, shape).ravel() for values in self.sequences_and_tokens)
        return StepShape(self.layouts.flattened(shape), *flat)

    def take(self, rows: IntArray) -> StepShape:
        """Return the steps at `rows`, in that order."""
        return StepShape(
            self.layouts.take(rows),
            self.prefill_sequences[rows],
            self.new_tokens[rows],
            self.prefix_tokens[rows],
            self.decode_sequences[rows],
            self.context_tokens[rows],
        )


@dataclass(frozen=True, slots=True)
class ConfigurationBatch:
    """Configurations to evaluate, each array of shape (n_configs,).

    Attributes
    ----------
    layouts : Layouts
        Parallelism.
    batch : IntArray
        Sequences of one attention-DP rank in one pipeline micro-batch.
    input_tokens, prefix_tokens : IntArray
        New tokens of a prompt, and tokens that its cache already holds. [tokens]
    context_tokens : IntArray
        Mean tokens that decode attends to. [tokens]
    output_tokens : IntArray
        Tokens that a request generates. [tokens]
    """

    layouts: Layouts
    batch: IntArray
    input_tokens: IntArray
    prefix_tokens: IntArray
    context_tokens: IntArray
    output_tokens: IntArray

    @property
    def sequences(self) -> IntArray:
        """Sequences of one micro-batch over all attention-DP ranks, shape (n_configs,)."""
        return self.batch * self.layouts.dp

    def take(self, rows: IntArray) -> ConfigurationBatch:
        """Return the configurations at `rows`, in that order."""
        return ConfigurationBatch(
            self.layouts.take(rows),
            self.batch[rows],
            self.input_tokens[rows],
            self.prefix_tokens[rows],
            self.context_tokens[rows],
            self.output_tokens[rows],
        )

    @property
    def held_tokens(self) -> IntArray:
        """Tokens whose cache a sequence holds when it ends, shape (n_configs,). [tokens].

        Decode attends to `context_tokens` on average, half its output below the end.
        """
        return self.context_tokens + -(-self.output_tokens // 2)


def prefill_shape(configurations: ConfigurationBatch) -> StepShape:
    """Return the step of prompts alone."""
    none = np.zeros_like(configurations.batch)
    return StepShape(
        configurations.layouts,
        configurations.batch,
        configurations.input_tokens,
        configurations.prefix_tokens,
        none,
        none,
    )


def decode_shape(configurations: ConfigurationBatch) -> StepShape:
    """Return the step of generated tokens alone."""
    return mixed_shape(configurations, np.zeros_like(configurations.batch))


def mixed_shape(
    configurations: ConfigurationBatch, prompts: IntArray, generating: IntArray | None = None
) -> StepShape:
    """Return the fused iteration of `prompts` whole prompts and the generated tokens beside them.

    Parameters
    ----------
    configurations : ConfigurationBatch
        Parallelism, batch sizes and lengths.
    prompts : IntArray
        Tokens of a rank, shape (n_configs,).
    generating : IntArray or None
        Sequences of a rank that gain a token; None is the whole batch.
    """
    return StepShape(
        configurations.layouts,
        prompts,
        configurations.input_tokens,
        configurations.prefix_tokens,
        configurations.batch if generating is None else generating,
        configurations.context_tokens,
    )


def steady_shape(configurations: ConfigurationBatch, prompts: IntArray) -> StepShape:
    """Return the iteration in which `prompts` of the `batch` sequences of a rank compute their prompt."""
    return mixed_shape(configurations, prompts, np.maximum(0, configurations.batch - prompts))
