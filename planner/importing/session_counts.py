"""Sessions of a trace and what its prompts share, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from fleetplan.perfmodel.replay.prefix_blocks import BLOCK_TOKENS, PromptMemory, common_blocks_of
from fleetplan.perfmodel.replay.trace_rows import TraceRow

MOST_SESSIONS: Final = 1 << 18
"""Named sessions that are kept, in some 30 MB; of more, a random share is followed."""

FIRST_BLOCKS: Final = 1 << 19
"""Blocks and prompts at the start of a trace that tell what most prompts begin with, in at most 100 MB."""

_HASH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """Sessions of at least two requests.

    Attributes
    ----------
    sessions : int
        How many.
    requests_per_session : float
        Mean; 0 without any.
    """

    sessions: int
    requests_per_session: float


class NamedSessions:
    """Sessions that a trace names, whatever the order of their requests.

    Up to `MOST_SESSIONS` they are counted. Of more, those are followed whose hash lies in a share of all
    hashes, which is halved whenever there are too many: some half of `MOST_SESSIONS` at least. An estimate
    from n sessions that are followed has a standard error of 1 / sqrt(n) at most.
    """

    def __init__(self) -> None:
        self._requests: dict[int, int] = {}
        self._below = 1 << 8 * _HASH_BYTES

    def __len__(self) -> int:
        """Return how many sessions are followed."""
        return len(self._requests)

    def add(self, names: Iterable[str]) -> None:
        """Take the sessions of some requests.

        Parameters
        ----------
        names : Iterable[str]
            Of each; empty for none.
        """
        requests = self._requests
        for name in names:
            if not name:
                continue
            number = int.from_bytes(blake2b(name.encode(), digest_size=_HASH_BYTES).digest())
            if number < self._below:
                requests[number] = requests.get(number, 0) + 1
        while len(requests) > MOST_SESSIONS:
            self._below //= 2
            for number in [each for each in requests if each >= self._below]:
                del requests[number]

    def statistics(self) -> SessionStatistics:
        """Return the sessions so far."""
        several = [requests for requests in self._requests.values() if requests > 1]
        share = self._below / (1 << 8 * _HASH_BYTES)
        return SessionStatistics(round(len(several) / share), sum(several) / len(several) if several else 0.0)


class PromptCounts:
    """What prompts share, and sessions in which each prompt goes on where an earlier one ended.

    What most of them begin with follows from the first `FIRST_BLOCKS`, which are taken in the order of their
    arrival; those after them in the order of the file.
    """

    def __init__(self) -> None:
        self.seen_tokens = 0
        """Prompt tokens that an earlier prompt began with as well."""
        self.blocks = 0
        """Of all prompts."""
        self._waiting: list[TraceRow] = []
        self._common_blocks = 0
        self._memory: PromptMemory | None = None
        self._sessions = 0
        self._in_sessions = 0

    @property
    def kept(self) -> int:
        """How many prompts and blocks are kept."""
        if self._memory is None:
            return len(self._waiting) + self.blocks
        return len(self._memory)

    def add(self, rows: Sequence[TraceRow]) -> None:
        """Take some requests.

        Parameters
        ----------
        rows : Sequence[TraceRow]
            With the blocks of their prompts.
        """
        self.blocks += sum(len(row.blocks) for row in rows)
        if self._memory is not None:
            self._follow(self._memory, rows)
            return
        self._waiting += rows
        if self.blocks + len(self._waiting) > FIRST_BLOCKS:
            self._follow_waiting()

    def common_tokens(self) -> int:
        """Return how many tokens most prompts begin with, once all requests have been taken. [tokens]"""
        if self._memory is None:
            self._follow_waiting()
        return self._common_blocks * BLOCK_TOKENS

    def statistics(self) -> SessionStatistics:
        """Return the sessions."""
        mean = self._in_sessions / self._sessions if self._sessions else 0.0
        return SessionStatistics(self._sessions, mean)

    def _follow_waiting(self) -> None:
        rows = sorted(self._waiting, key=lambda row: row.arrival_s)
        self._common_blocks = common_blocks_of([row.blocks for row in rows])
        self._memory = PromptMemory(self._common_blocks)
        self._follow(self._memory, rows)
        self._waiting.clear()

    def _follow(self, memory: PromptMemory, rows: Sequence[TraceRow]) -> None:
        for row in rows:
            known, session = memory.add(row.blocks)
            self.seen_tokens += min(known * BLOCK_TOKENS, row.input_tokens)
            if session.requests > 1:
                self._sessions += session.requests == 2
                self._in_sessions += 2 if session.requests == 2 else 1
