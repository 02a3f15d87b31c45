"""Lengths of prompts and outputs of a trace of any length in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import LengthBin
from fleetplan.fleet.resolve.services.length_files import counted_bins, length_bin
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.trace_rows import MOST_TOKENS

EXACT_TOKENS: Final = 1 << 14
"""Lengths below this have exact bins; wider bins above it keep the error of a length below 1/16,384."""

_PER_DOUBLING: Final = EXACT_TOKENS // 2


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """Lengths of prompts or outputs. [tokens]

    Attributes
    ----------
    mean, p50, p95, p99 : float
        Mean and percentiles.
    """

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class LengthClass:
    """Requests with prompts of similar length.

    Attributes
    ----------
    share : float
        Share of all requests.
    input_tokens, output_tokens : float
        Mean lengths. [tokens]
    bins : tuple[LengthBin, ...]
        Distribution of lengths.
    """

    share: float
    input_tokens: float
    output_tokens: float
    bins: tuple[LengthBin, ...]


class LengthCounts:
    """Lengths of requests in bins: 3.5 MB, plus the touched pages of 70 MB."""

    def __init__(self) -> None:
        size = int(_bin_of(np.array([MOST_TOKENS]))[0]) + 1
        starts, start = [], 1
        while start <= MOST_TOKENS:
            starts.append(start)
            start = length_bin(start)[1]
        self._file_starts: IntArray = np.array(starts)
        self._pairs: IntArray = np.zeros((size, len(starts)), dtype=np.int64)
        """Requests by bin of the prompt, and by file bin of the output."""
        self._outputs: IntArray = np.zeros(size, dtype=np.int64)
        """Requests by bin of the output."""
        self._input_sums: IntArray = np.zeros(size, dtype=np.int64)
        self._output_sums: IntArray = np.zeros(size, dtype=np.int64)
        """Tokens of prompts and of outputs, by bin of the prompt."""

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of all requests. [tokens]"""
        return int(self._input_sums.sum())

    def add(self, input_tokens: Sequence[int], output_tokens: Sequence[int]) -> None:
        """Add the lengths of requests.

        Parameters
        ----------
        input_tokens, output_tokens : Sequence[int]
            Lengths from 1 to `MOST_TOKENS`. [tokens]
        """
        inputs, outputs = np.array(input_tokens), np.array(output_tokens)
        places = _bin_of(inputs)
        np.add.at(self._pairs, (places, self._file_bin_of(outputs)), 1)
        np.add.at(self._outputs, _bin_of(outputs), 1)
        np.add.at(self._input_sums, places, inputs)
        np.add.at(self._output_sums, places, outputs)

    def inputs(self) -> TokenStatistics:
        """Return the statistics of prompts, for at least one request."""
        return _statistics(self._pairs.sum(axis=1), self.prompt_tokens)

    def outputs(self) -> TokenStatistics:
        """Return the statistics of outputs, for at least one request."""
        return _statistics(self._outputs, int(self._output_sums.sum()))

    def classes(self, most: int) -> tuple[LengthClass, ...]:
        """Split requests into classes by prompt length, shortest first.

        k-means on the logarithm of the prompt length minimises ratios within a class. There are fewer classes
        if fewer lengths occur.

        Parameters
        ----------
        most : int
            Maximum number of classes.
        """
        requests = self._pairs.sum(axis=1)
        places = np.flatnonzero(requests)
        members = _members(np.log(_tokens_of(places)), requests[places], most)
        return tuple(self._class(places[members == k], int(requests.sum())) for k in np.unique(members))

    def _class(self, places: IntArray, all_requests: int) -> LengthClass:
        # Some hundred file bins, each with thousands of the bins here.
        bins = self._file_bin_of(_tokens_of(places).astype(np.int64))
        starts = self._file_starts
        counted = [
            (int(starts[prompt]), int(starts[output]), int(requests))
            for prompt in np.unique(bins)
            for output, requests in enumerate(self._pairs[places[bins == prompt]].sum(axis=0))
            if requests
        ]
        requests = sum(each[2] for each in counted)
        return LengthClass(
            requests / all_requests,
            int(self._input_sums[places].sum()) / requests,
            int(self._output_sums[places].sum()) / requests,
            tuple(counted_bins(counted)),
        )

    def _file_bin_of(self, tokens: IntArray) -> IntArray:
        """Return the file bins of lengths."""
        found: IntArray = np.searchsorted(self._file_starts, tokens, side="right") - 1
        return found


def _bin_of(tokens: IntArray) -> IntArray:
    """Return the bins of lengths: exact up to `EXACT_TOKENS`, then `_PER_DOUBLING` per doubling."""
    doublings = np.maximum(np.frexp(tokens.astype(np.float64))[1] - EXACT_TOKENS.bit_length() + 1, 0)
    found: IntArray = doublings * _PER_DOUBLING + (tokens >> doublings)
    return found


def _tokens_of(places: IntArray) -> FloatArray:
    """Return the centres of bins. [tokens]"""
    doublings = np.maximum(places // _PER_DOUBLING - 1, 0)
    starts = (places - doublings * _PER_DOUBLING) << doublings
    found: FloatArray = starts + ((1 << doublings) - 1) / 2
    return found


def _statistics(requests: IntArray, tokens: int) -> TokenStatistics:
    places = np.flatnonzero(requests)
    found = _quantiles(_tokens_of(places), requests[places], np.array([0.5, 0.95, 0.99]))
    return TokenStatistics(tokens / int(requests.sum()), *found.tolist())


def _quantiles(values: FloatArray, requests: IntArray, shares: FloatArray) -> FloatArray:
    """Return quantiles of rising values with counts, interpolated linearly as in NumPy."""
    until = np.cumsum(requests)
    places = shares * (until[-1] - 1)
    whole = np.floor(places)
    below = values[np.searchsorted(until, whole, side="right")]
    above = values[np.searchsorted(until, np.ceil(places), side="right")]
    found: FloatArray = below + (above - below) * (places - whole)
    return found


def _members(logs: FloatArray, requests: IntArray, classes: int) -> IntArray:
    centres = np.unique(_quantiles(logs, requests, (np.arange(classes) + 0.5) / classes))
    for _ in range(100):
        members = np.abs(logs[:, None] - centres[None, :]).argmin(axis=1)
        sums, counts = np.bincount(members, logs * requests), np.bincount(members, requests)
        found = sums[counts > 0] / counts[counts > 0]
        if found.size == centres.size and np.allclose(found, centres):
            break
        centres = found
    nearest: IntArray = np.abs(logs[:, None] - centres[None, :]).argmin(axis=1)
    return nearest
