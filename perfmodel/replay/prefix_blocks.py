"""Prompts that begin like earlier ones, from the hashes of their blocks, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.serving.requests import NO_SESSION

BLOCK_TOKENS: Final = 512
"""Tokens of a block that has a hash. Source: the description of the Mooncake traces. [tokens]"""

COMMON_SHARE: Final = 0.5
"""A leading block that more requests than this begin with is common to all rather than part of a session."""

REMEMBERED_BLOCKS: Final = 1 << 19
"""Latest blocks that are remembered at least: 268 million tokens, in some 100 MB."""


class PromptSession:
    """Requests of which each goes on where an earlier one ended.

    Attributes
    ----------
    number : int
        Counted from 0 in the order of the first requests.
    requests : int
        So far.
    """

    __slots__ = ("number", "requests")

    def __init__(self, number: int) -> None:
        self.number = number
        self.requests = 0


class PromptMemory:
    """Blocks of the latest prompts, and the session of the last prompt that each was part of.

    Blocks that no prompt has had for a while are forgotten, as a cache of that size would: all that were
    taken among the latest `REMEMBERED_BLOCKS` are known, and never more than twice as many and a prompt.

    Parameters
    ----------
    common_blocks : int
        Leading blocks that most prompts share; `common_blocks_of` counts them.
    """

    def __init__(self, common_blocks: int) -> None:
        self._common_blocks = common_blocks
        self._sessions = 0
        self._latest: dict[int, PromptSession] = {}
        self._before: dict[int, PromptSession] = {}

    def __len__(self) -> int:
        """Return how many entries are kept."""
        return len(self._latest) + len(self._before)

    def add(self, blocks: Sequence[int]) -> tuple[int, PromptSession]:
        """Take the next prompt.

        Parameters
        ----------
        blocks : Sequence[int]
            Hashes of its blocks. Equal hashes mean equal prompts up to the end of the block.

        Returns
        -------
        tuple[int, PromptSession]
            Leading blocks that earlier prompts had as well, and the session of the request.
        """
        latest, before = self._latest, self._before
        known: list[PromptSession] = []
        for block in blocks:
            found = latest.get(block) or before.get(block)
            if found is None:
                break
            known.append(found)
        if len(known) > self._common_blocks:
            session = known[-1]
        else:
            session = PromptSession(self._sessions)
            self._sessions += 1
        session.requests += 1
        common = blocks[: self._common_blocks]
        latest.update(zip(common, known, strict=False))
        for block in common:
            latest.setdefault(block, session)
        latest.update(dict.fromkeys(blocks[self._common_blocks :], session))
        if len(latest) >= REMEMBERED_BLOCKS:
            self._latest, self._before = {}, latest
        return len(known), session


def prompt_sessions(prompts: Sequence[Sequence[int]]) -> IntArray:
    """Return the session of each prompt, shape (n_prompts,); `NO_SESSION` for single prompts.

    Parameters
    ----------
    prompts : Sequence[Sequence[int]]
        Hashes of the blocks of each, in the order of arrival.
    """
    memory = PromptMemory(common_blocks_of(prompts))
    sessions = [memory.add(blocks)[1] for blocks in prompts]
    return np.array([each.number if each.requests > 1 else NO_SESSION for each in sessions], dtype=np.int64)


def common_blocks_of(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many leading blocks most prompts share.

    Parameters
    ----------
    prompts : Sequence[Sequence[int]]
        Hashes of the blocks of each.
    """
    common = 0
    while True:
        heads = Counter(blocks[common] for blocks in prompts if len(blocks) > common)
        if not heads or max(heads.values()) <= COMMON_SHARE * len(prompts):
            return common
        common += 1
