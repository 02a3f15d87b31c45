"""Attention to a window and to compressed entries of everything before it (DeepSeek-V4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from fleetplan.perfmodel.architecture.sparse_index import SparseIndex
from fleetplan.perfmodel.operators import STATE_BYTES, FloatArray, IntArray, latent_entry_bytes

NO_COMPRESSION: Final = 0
"""The `ratio` of layers that see their window alone."""


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """Softmax attention of all heads to one latent vector a token, which is key and value at once.

    A query sees the last `window` tokens and, before them, one entry for every `ratio` tokens. Layers with an
    index see the entries that it chooses, and the tokens of two neighbouring entries overlap; layers without
    one see all entries. Source: DeepSeek-V4, its published inference code and config.json (CSA and HCA).

    Attributes
    ----------
    heads : int
        Query heads.
    query_rank : int
        Width of the latent vector of the queries.
    head_dim, rope_head_dim : int
        Width of a query head and of an entry, and the part of it with rotary positions.
    window : int
        Tokens that a query sees one by one. [tokens]
    ratio : int
        Tokens of an entry; `NO_COMPRESSION` without entries. [tokens]
    output_groups, output_rank : int
        Groups of heads whose outputs are projected down together, and the width of each group's result.
    index : SparseIndex or None
        Indexer that selects the entries of a query; its `top_k` counts entries.
    """

    kind: ClassVar[Literal["compressed"]] = "compressed"

    heads: int
    query_rank: int
    head_dim: int
    rope_head_dim: int
    window: int
    ratio: int
    output_groups: int
    output_rank: int
    index: SparseIndex | None = None

    @property
    def overlap(self) -> int:
        """Number of entries with a token."""
        return 1 if self.index is None else 2

    def whole_weights(self, hidden_size: int) -> int:
        """Return the unsplit weights of one layer: down projections, compressors and indexer."""
        compressed = self.overlap * self.head_dim if self.ratio else 0
        indexer = 0
        if self.index is not None:
            compressed += self.overlap * self.index.head_dim
            indexer = self.index.heads * (self.query_rank * self.index.head_dim + hidden_size)
        # A compressor projects a token once to its summed value, and once to its weight in the sum.
        return hidden_size * (self.query_rank + self.head_dim + 2 * compressed) + indexer

    def split_weights(self, hidden_size: int) -> int:
        """Return weights of one layer that tensor parallelism splits: queries, and outputs in two steps."""
        heads = self.heads * self.head_dim * (self.query_rank + self.output_rank)
        return heads + self.output_groups * self.output_rank * hidden_size

    def weights(self, hidden_size: int) -> int:
        """Return the weights of one layer."""
        return self.whole_weights(hidden_size) + self.split_weights(hidden_size)

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements of one token inside the window, in one layer."""
        return self.head_dim

    @property
    def state_elements_per_sequence(self) -> int:
        """State of the compressors for unfinished entries in one layer: a value and a weight each."""
        if not self.ratio:
            return 0
        width = self.head_dim + (0 if self.index is None else self.index.head_dim)
        return 2 * self.overlap * self.ratio * self.overlap * width

    def cache_bytes(self, tokens: int | IntArray | FloatArray, bytes_per_element: float) -> FloatArray:
        """Return the cache of a sequence in one layer, without the state of the compressors. [bytes].

        Parameters
        ----------
        tokens : int or array
            Length of the sequence. [tokens]
        bytes_per_element : float
            Data type of the cache; rotary parts stay in BF16, and index keys have a separate type.
        """
        entry = latent_entry_bytes(self.head_dim, self.rope_head_dim, bytes_per_element)
        held = np.asarray(np.minimum(tokens, self.window) * entry, dtype=np.float64)
        if self.ratio:
            key = 0.0 if self.index is None else self.index.cache_bytes_per_token
            held = held + tokens // self.ratio * (entry + key)
        return held

    @property
    def state_bytes(self) -> float:
        """State of the compressors for one sequence in one layer. [bytes]."""
        return self.state_elements_per_sequence * STATE_BYTES
