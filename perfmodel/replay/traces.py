"""Recorded requests as a simulation takes them, all of them at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fleetplan.fleet.document.records import Watcher
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.prefix_blocks import prompt_sessions
from fleetplan.perfmodel.replay.trace_rows import TraceRow, open_trace
from fleetplan.perfmodel.serving import Requests
from fleetplan.perfmodel.serving.requests import NO_SESSION


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded trace.

    Attributes
    ----------
    form : str
        Name of the format.
    requests : Requests
        In the order of their arrival, the first at time 0.
    rejected : tuple[str, ...]
        Why rows were not taken: the first few, then a count.
    """

    form: str
    requests: Requests
    rejected: tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    """Requests in reading order, 24 bytes each: `MOST_TOKENS` and the number of sessions fit in 32 bits."""

    arrival_s: array[float] = field(default_factory=lambda: array("d"))
    input_tokens: array[int] = field(default_factory=lambda: array("i"))
    output_tokens: array[int] = field(default_factory=lambda: array("i"))
    prefix_tokens: array[int] = field(default_factory=lambda: array("i"))
    session: array[int] = field(default_factory=lambda: array("i"))
    session_names: dict[str, int] = field(default_factory=dict)
    blocks: list[tuple[int, ...]] = field(default_factory=list)
    """Values of each request as soon as one has any; empty before."""

    def add(self, rows: Sequence[TraceRow]) -> None:
        if self.blocks or any(row.blocks for row in rows):
            self.blocks += [()] * (len(self.arrival_s) - len(self.blocks))
            self.blocks += [row.blocks for row in rows]
        self.arrival_s.extend(row.arrival_s for row in rows)
        self.input_tokens.extend(row.input_tokens for row in rows)
        self.output_tokens.extend(row.output_tokens for row in rows)
        self.prefix_tokens.extend(row.prefix_tokens for row in rows)
        names = self.session_names
        self.session.extend(
            names.setdefault(row.session, len(names)) if row.session else NO_SESSION for row in rows
        )


def read_trace(path: Path, watch: Watcher | None = None) -> Trace:
    """Read all requests of a trace.

    Parameters
    ----------
    path : Path
        Its file. Memory is taken for the requests, not for the file.
    watch : Watcher or None
        Callback for the progress of reading.

    Raises
    ------
    InputError
        The file cannot be read, is of no known format, or no row of it can be used.
    """
    columns = _Columns()
    with open_trace(path, watch) as opened:
        for rows in opened.batches():
            columns.add(rows)
    order = np.argsort(np.frombuffer(columns.arrival_s), kind="stable")
    return Trace(opened.form, _requests(columns, order), opened.rejected)


def _requests(columns: _Columns, order: IntArray) -> Requests:
    def sorted_column(values: array[int]) -> IntArray:
        return np.frombuffer(values, dtype=np.int32)[order].astype(np.int64)

    arrival: FloatArray = np.frombuffer(columns.arrival_s)[order]
    # Requests that share more than a common prefix form a session; otherwise only the trace names sessions.
    sessions = sorted_column(columns.session) if columns.session_names else np.array([], dtype=np.int64)
    if columns.blocks:
        sessions = prompt_sessions([columns.blocks[place] for place in order.tolist()])
    return Requests(
        (arrival - arrival[0]) * MS_PER_S,
        sorted_column(columns.input_tokens),
        sorted_column(columns.prefix_tokens),
        sorted_column(columns.output_tokens),
        session=sessions,
    )
