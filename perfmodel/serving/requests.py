"""Requests of a simulation: arrival times and lengths."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray

NO_SESSION = -1
"""The session of a request that belongs to none."""


def _nothing() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in order of arrival, each array of shape (n_requests,).

    Attributes
    ----------
    arrival_ms : FloatArray
        Time from the start of the simulation, non-decreasing. [ms]
    input_tokens : IntArray
        Prompt tokens to compute without a cached session. [tokens]
    prefix_tokens : IntArray
        Prompt tokens before them that are always cached. [tokens]
    output_tokens : IntArray
        Generated tokens, at least one. [tokens]
    session : IntArray
        Session of each request; `NO_SESSION` for none. Empty without any sessions.
    request_class : IntArray
        Index of its class; empty if there is one class.

    Raises
    ------
    ValueError
        Arrays of different length, arrivals out of order, or a request without new or generated tokens.
    """

    arrival_ms: FloatArray
    input_tokens: IntArray
    prefix_tokens: IntArray
    output_tokens: IntArray
    session: IntArray = field(default_factory=_nothing)
    request_class: IntArray = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        sizes = {self.arrival_ms.size, self.input_tokens.size, self.prefix_tokens.size}
        if sizes != {self.output_tokens.size}:
            raise ValueError(f"arrays of requests differ in length: {sorted(sizes)}")
        if self.arrival_ms.size and float(np.diff(self.arrival_ms).min(initial=0.0)) < 0:
            raise ValueError("requests must be in the order of their arrival")
        if self.input_tokens.min(initial=1) < 1 or self.output_tokens.min(initial=1) < 1:
            raise ValueError("a request has at least one new and one generated token")

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.arrival_ms.size)

    @property
    def sessions(self) -> IntArray:
        """Session of each request, `NO_SESSION` without sessions, shape (n_requests,)."""
        return self.session if self.session.size else np.full(len(self), NO_SESSION)

    @property
    def classes(self) -> IntArray:
        """Class of each request, 0 with a single class, shape (n_requests,)."""
        return self.request_class if self.request_class.size else np.zeros(len(self), dtype=np.int64)

    def take(self, rows: IntArray) -> Requests:
        """Return the requests at `rows`, which must be increasing."""
        return Requests(
            self.arrival_ms[rows],
            self.input_tokens[rows],
            self.prefix_tokens[rows],
            self.output_tokens[rows],
            self.session[rows] if self.session.size else self.session,
            self.request_class[rows] if self.request_class.size else self.request_class,
        )
