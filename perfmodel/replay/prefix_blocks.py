"""Shared prefixes of prompts, from the hashes of their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.serving.requests import NO_SESSION

BLOCK_TOKENS: Final = 512
"""Tokens of a block that has a hash. Source: the description of the Mooncake traces. [tokens]"""

COMMON_SHARE: Final = 0.5
"""A leading block that more requests than this begin with is common to all rather than part of a session."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Shared prefixes of prompts.

    Attributes
    ----------
    common_tokens : int
        Tokens that most requests begin with. [tokens]
    seen_tokens : IntArray
        Leading tokens of each prompt that an earlier one had as well, shape (n_requests,). [tokens]
    session : IntArray
        Session of each request: one that goes on where an earlier one ended belongs to its session.
        `NO_SESSION` for prompts that nothing goes on from; shape (n_requests,).
    """

    common_tokens: int
    seen_tokens: IntArray
    session: IntArray


def prefixes_of(prompts: Sequence[tuple[int, ...]]) -> Prefixes:
    """Find what prompts share.

    Parameters
    ----------
    prompts : Sequence[tuple[int, ...]]
        Hashes of the blocks of each, in the order of arrival. Equal hashes stand for equal prompts up to the
        end of the block.
    """
    common = _common_blocks(prompts)
    owner: dict[int, int] = {}
    seen: list[int] = []
    session: list[int] = []
    for number, blocks in enumerate(prompts):
        known = 0
        while known < len(blocks) and blocks[known] in owner:
            known += 1
        seen.append(known * BLOCK_TOKENS)
        goes_on = known > common
        session.append(session[owner[blocks[known - 1]]] if goes_on else number)
        for block in blocks[common:]:
            owner[block] = number
        for block in blocks[:common]:
            owner.setdefault(block, number)
    numbers = np.array(session, dtype=np.int64)
    _, position, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    alone = counts[position] == 1
    return Prefixes(
        common * BLOCK_TOKENS, np.array(seen, dtype=np.int64), np.where(alone, NO_SESSION, position)
    )


def _common_blocks(prompts: Sequence[tuple[int, ...]]) -> int:
    """Leading blocks that most requests share."""
    common = 0
    while True:
        heads = [blocks[common] for blocks in prompts if len(blocks) > common]
        if not heads:
            return common
        _, counts = np.unique(np.array(heads), return_counts=True)
        if counts.max() <= COMMON_SHARE * len(prompts):
            return common
        common += 1
