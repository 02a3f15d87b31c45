"""Statistics of a trace of any length: rates, burstiness, daily profile, lengths, prefixes, sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleetplan.fleet.document.records import Watcher
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.replay.trace_rows import MOONCAKE, open_trace
from fleetplan.planner.importing.arrival_counts import ArrivalCounts, burstiness_of, by_hour, peak_per_s
from fleetplan.planner.importing.length_counts import LengthCounts, TokenStatistics
from fleetplan.planner.importing.session_counts import NamedSessions, PromptCounts, SessionStatistics


@dataclass(frozen=True, slots=True)
class PromptStatistics:
    """Shared parts of prompts.

    Attributes
    ----------
    common_tokens : int
        Length of the prefix common to most prompts. [tokens]
    seen_ratio : float
        Share of prompt tokens that an earlier prompt also began with.
    """

    common_tokens: int
    seen_ratio: float


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """Statistics of a trace.

    Attributes
    ----------
    requests : int
        Number of requests.
    span_s : float
        Time from the first to the last request. [s]
    mean_per_s, peak_per_s : float
        Rate over the whole trace, and in its busiest minute. [requests/s]
    burstiness : float
        Index of dispersion of counts around their slow changes: 1 is Poisson. It replaces the squared
        coefficient of variation of interarrival times, to which it is equal for renewal processes.
    by_hour : tuple[float, ...]
        Rate of each hour from the start over the mean rate; empty for less than two hours.
    input_tokens, output_tokens : TokenStatistics
        Lengths of prompts and outputs.
    prompts : PromptStatistics or None
        Shared parts of prompts; None if unknown.
    sessions : SessionStatistics
        Sessions of at least two requests.
    """

    requests: int
    span_s: float
    mean_per_s: float
    peak_per_s: float
    burstiness: float
    by_hour: tuple[float, ...]
    input_tokens: TokenStatistics
    output_tokens: TokenStatistics
    prompts: PromptStatistics | None
    sessions: SessionStatistics


@dataclass(frozen=True, slots=True)
class CountedTrace:
    """A trace that has been read.

    Attributes
    ----------
    path : Path
        Path of the file.
    form : str
        Name of the format.
    rejected : tuple[str, ...]
        Reasons for rejected rows: the first few, then a count.
    arrivals : ArrivalCounts
        Arrival times.
    lengths : LengthCounts
        Lengths of requests.
    sessions : NamedSessions
        Sessions named in the trace.
    prompts : PromptCounts or None
        Shared parts of prompts; None if unknown.
    """

    path: Path
    form: str
    rejected: tuple[str, ...]
    arrivals: ArrivalCounts
    lengths: LengthCounts
    sessions: NamedSessions
    prompts: PromptCounts | None


def count_trace(path: Path, watch: Watcher | None = None) -> CountedTrace:
    """Read a trace once, in bounded memory.

    Parameters
    ----------
    path : Path
        Path of the file.
    watch : Watcher or None
        Receives the share of the file that has been read.

    Raises
    ------
    InputError
        The file is unreadable, has no known format, or has no usable row.
    """
    arrivals, lengths, sessions, prompts = ArrivalCounts(), LengthCounts(), NamedSessions(), PromptCounts()
    with open_trace(path, watch) as trace:
        has_blocks = trace.form == MOONCAKE
        for rows in trace.batches():
            arrivals.add([row.arrival_s for row in rows])
            lengths.add([row.input_tokens for row in rows], [row.output_tokens for row in rows])
            sessions.add(row.session for row in rows)
            if has_blocks:
                prompts.add(rows)
    shared = prompts if prompts.blocks else None
    return CountedTrace(path, trace.form, trace.rejected, arrivals, lengths, sessions, shared)


def trace_statistics(trace: CountedTrace) -> TraceStatistics:
    """Return the statistics of a trace.

    Raises
    ------
    InputError
        The trace has no two requests at different times.
    """
    requests, span_ms = trace.arrivals.requests, trace.arrivals.span_ms
    if span_ms <= 0:
        raise InputError([Issue(str(trace.path), 0, 0, "", "has no two requests at different times")])
    times = trace.arrivals.times()
    mean_per_s = requests / span_ms * MS_PER_S
    prompts = trace.prompts
    shared = None
    if prompts is not None:
        shared = PromptStatistics(prompts.common_tokens(), prompts.seen_tokens / trace.lengths.prompt_tokens)
    return TraceStatistics(
        requests=requests,
        span_s=span_ms / MS_PER_S,
        mean_per_s=mean_per_s,
        peak_per_s=max(mean_per_s, peak_per_s(times)),
        burstiness=burstiness_of(times),
        by_hour=by_hour(times, mean_per_s),
        input_tokens=trace.lengths.inputs(),
        output_tokens=trace.lengths.outputs(),
        prompts=shared,
        sessions=(trace.sessions if prompts is None else prompts).statistics(),
    )
