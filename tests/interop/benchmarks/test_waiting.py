"""The delay by a busy machine is measured, and only that much is excused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetplan.planner.importing.benchmarks import ImportedBenchmarks
from tests.interop.benchmarks.__main__ import RUNS, differences
from tests.interop.benchmarks.server import Seen, Server
from tests.interop.benchmarks.waiting import ProcessorWait, watched

BUSY = (
    "import os, time\nos.sched_setaffinity(0, {CPU})\nend = time.time() + 0.6\nwhile time.time() < end: pass"
)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts it")
def test_processes_that_share_a_processor_wait_for_it() -> None:
    cpu = min(os.sched_getaffinity(0))
    command = [sys.executable, "-c", BUSY.replace("CPU", str(cpu))]
    start = time.monotonic()
    with (
        subprocess.Popen(command) as first,
        subprocess.Popen(command),
        watched(first.pid, first.pid) as found,
    ):
        first.wait()
    assert found.between(start, time.monotonic()) > 0.05


def test_what_others_waited_counts_after_a_process_has_ended() -> None:
    """A tool's workers import for seconds and end; then the rest of it waits."""
    found = ProcessorWait()
    start = time.monotonic()
    found.note({"worker": 5.0, "client": 1.0})
    middle = time.monotonic()
    time.sleep(0.01)
    found.note({"client": 1.2})
    found.note({"client": 1.5, "other": 0.25})
    assert found.between(start, middle) <= 6.0
    assert found.between(middle, time.monotonic()) == pytest.approx(0.75, abs=0.01)


def read(ttft_ms: float, waited_s: float) -> list[str]:
    """Differences of an open loop of 60 requests in four seconds, read with another TTFT."""
    server, waiting = Server(), ProcessorWait()
    for each in range(60):
        came = each / 15
        server.seen.append(Seen(came, came + 0.144, 32, 8, answered=True))
    waiting._at, waiting._waited = [0.0, 4.1], [0.0, waited_s]
    row = {"mode": "open_loop", "input_tokens": 32, "output_tokens": 8, "concurrency": None,
           "requests_per_s": 15.0, "ttft_ms": ttft_ms, "tpot_ms": 12.0}  # fmt: skip
    return list(differences(RUNS["open"], ImportedBenchmarks((row,), ()), server, waiting))


def test_a_busy_machine_excuses_what_it_held_up_and_no_more() -> None:
    assert read(62.0, 0.0) == []
    assert len(read(144.0, 0.0)) == 1
    # Two requests are in flight in the mean, so that two seconds hold up each of sixty by 72 ms.
    assert read(144.0, 2.0) == []
    assert len(read(200.0, 2.0)) == 1
