"""Indexers before sparse attention: shapes, weights and caches."""

from __future__ import annotations

from dataclasses import dataclass

from fleetplan.perfmodel.operators.formats import BLOCK_INDEX_KEY_BYTES, index_entry_bytes


@dataclass(frozen=True, slots=True)
class SparseIndex:
    """An indexer that scores every earlier token and lets attention see the best of them alone.

    Its queries are projected from the latent queries, its one key a token from the hidden state, and a
    weight for each of its heads too. Every accelerator of a tensor-parallel group holds the whole of it.
    Source: DeepSeek-V3.2 (DeepSeek Sparse Attention), its published inference code and config.json.

    Attributes
    ----------
    heads, head_dim : int
        Index heads, and the width of an index query and key.
    top_k : int
        Earlier tokens that a query attends to. [tokens]
    is_shared : bool
        Whether the layer reuses the selection of an earlier layer and has no indexer (GLM-5.2).
    dense_prompts : bool
        Whether prompts of at most `top_k` tokens, prefix included, attend without an index, to rebuilt keys
        and values; the framework decides.
    """

    heads: int
    head_dim: int
    top_k: int
    is_shared: bool = False
    dense_prompts: bool = False

    def weights(self, hidden_size: int, query_rank: int) -> int:
        """Return the weights of the indexer of one layer; none if it reuses another layer's selection."""
        if self.is_shared:
            return 0
        return query_rank * self.heads * self.head_dim + hidden_size * (self.head_dim + self.heads)

    @property
    def cache_bytes_per_token(self) -> float:
        """Cached index key of one token in one layer, with its scale. [bytes]."""
        if self.is_shared:
            return 0.0
        return index_entry_bytes(self.head_dim)


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """An indexer that scores blocks of earlier tokens and lets attention see the best blocks alone.

    Its queries and its one key a token are projected from the hidden state. Each of its heads chooses for the
    query heads of one key-value head, so that tensor parallelism shares out its heads as it does those; the
    key is on every accelerator. Source: MiniMax-M3 (MiniMax Sparse Attention), config.json, and the
    documentation of `MiniMaxM3SparseAttentionConfig` of TensorRT-LLM.

    Attributes
    ----------
    heads, head_dim : int
        Index heads, and the width of an index query and key.
    block_tokens : int
        Tokens of a block. [tokens]
    blocks : int
        Blocks that a query attends to, with those that it always sees.
    """

    heads: int
    head_dim: int
    block_tokens: int
    blocks: int

    def weights(self, hidden_size: int) -> int:
        """Return the weights of the projections of the indexer of one layer."""
        return hidden_size * (self.heads + 1) * self.head_dim

    @property
    def cache_bytes_per_token(self) -> float:
        """Cached index key of one token in one layer. [bytes]."""
        return self.head_dim * BLOCK_INDEX_KEY_BYTES
