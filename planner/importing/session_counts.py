"""Sessions of a trace and shared prompts, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from fleetplan.perfmodel.replay.prefix_blocks import BLOCK_TOKENS, PromptMemory, common_blocks_of
from fleetplan.perfmodel.replay.trace_rows import TraceRow

MOST_SESSIONS: Final = 1 << 18
"""Maximum number of named sessions kept, in 30 MB; beyond it, a random share is followed."""

FIRST_BLOCKS: Final = 1 << 19
"""Blocks and prompts at the start of a trace that determine the common prefix, in at most 100 MB."""

_HASH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """Sessions of at least two requests.

    Attributes
    ----------
    sessions : int
        Number of sessions.
    requests_per_session : float
        Mean number of requests; 0 without sessions.
    """

    sessions: int
    requests_per_session: float


class NamedSessions:
    """Sessions named in a trace, in any order of requests.

    Up to `MOST_SESSIONS` sessions are counted. Beyond that, those whose hash lies in a share of all hashes
    are followed, and the share is halved whenever there are too many, which leaves at least about half of
    `MOST_SESSIONS`. An estimate from n followed sessions has a standard error of at most 1 / sqrt(n).
    """

    def __init__(self) -> None:
        self._requests: dict[int, int] = {}
        self._below = 1 << 8 * _HASH_BYTES

    def __len__(self) -> int:
        """Return the number of followed sessions."""
        return len(self._requests)

    def add(self, names: Iterable[str]) -> None:
        """Add the sessions of requests.

        Parameters
        ----------
        names : Iterable[str]
            Session of each request; empty for none.
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
        """Return the statistics of the sessions so far."""
        several = [requests for requests in self._requests.values() if requests > 1]
        share = self._below / (1 << 8 * _HASH_BYTES)
        return SessionStatistics(round(len(several) / share), sum(several) / len(several) if several else 0.0)


class PromptCounts:
    """Shared prompts, and sessions in which each prompt continues an earlier one.

    The common prefix follows from the first `FIRST_BLOCKS`, processed in order of arrival; later ones follow
    in the order of the file.
    """

    def __init__(self) -> None:
        self.seen_tokens = 0
        """Prompt tokens that an earlier prompt also began with."""
        self.blocks = 0
        """Blocks of all prompts."""
        self._waiting: list[TraceRow] = []
        self._common_blocks = 0
        self._memory: PromptMemory | None = None
        self._sessions = 0
        self._in_sessions = 0

    @property
    def kept(self) -> int:
        """Return the number of prompts and blocks kept."""
        if self._memory is None:
            return len(self._waiting) + self.blocks
        return len(self._memory)

    def add(self, rows: Sequence[TraceRow]) -> None:
        """Add requests.

        Parameters
        ----------
        rows : Sequence[TraceRow]
            Requests with the blocks of their prompts.
        """
        self.blocks += sum(len(row.blocks) for row in rows)
        if self._memory is not None:
            self._follow(self._memory, rows)
            return
        self._waiting += rows
        if self.blocks + len(self._waiting) > FIRST_BLOCKS:
            self._follow_waiting()

    def common_tokens(self) -> int:
        """Return the length of the prefix common to most prompts, once all requests are added. [tokens]"""
        if self._memory is None:
            self._follow_waiting()
        return self._common_blocks * BLOCK_TOKENS

    def statistics(self) -> SessionStatistics:
        """Return the statistics of the sessions."""
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
