"""Load generators' own files against what a server saw: `python -m tests.interop.benchmarks TOOL=FOLDER ...`.

FOLDER holds the programs of an environment with the tool, TOOL is a format of `plan import benchmark`. Every
tool runs under every load that it knows. --keep FOLDER keeps what they wrote. Exits 1 if a file is read as
something else than the server saw.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import ImportedBenchmarks, import_benchmarks
from fleetplan.planner.importing.records import read_json
from tests.interop.benchmarks.server import FIRST_TOKEN_S, TOKEN_S, Server, running
from tests.interop.benchmarks.tools import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    TOOLS,
    AskedLoad,
    NoResultError,
    tokenizer,
    written_by,
)
from tests.interop.benchmarks.waiting import ProcessorWait

RATE_TOLERANCE: Final = 0.12
"""How far rates may be off that of the server: tools count the last answer into their time or not."""

FILLED: Final = 0.7
"""Requests in flight at the server over the cap, at least: short runs have few at their ends."""

TIME_TOLERANCE: Final = 0.35
"""How far times may be off those that the server was set to, beside what a busy machine adds."""


@dataclass(frozen=True)
class CheckedRun:
    """A load, the server behaviour, and the expected result: a mode, or a reason of rejection."""

    load: AskedLoad
    read: str
    server: dict[str, int] = field(default_factory=dict)
    tools: tuple[str, ...] = tuple(TOOLS)


RUNS: Final = {
    "closed": CheckedRun(AskedLoad(None, 4, 40), "closed_loop"),
    "open": CheckedRun(AskedLoad(15.0, None, 60), "open_loop"),
    # Four at a time are 28 requests a second at most. inference-perf knows no cap beside a rate.
    "capped": CheckedRun(
        AskedLoad(60.0, 4, 60), "closed_loop", tools=("vllm", "sglang", "aiperf", "guidellm")
    ),
    "loose": CheckedRun(AskedLoad(15.0, 30, 60), "open_loop", tools=("vllm", "sglang", "aiperf", "guidellm")),
    "unfilled": CheckedRun(AskedLoad(None, 40, 20), "no steady load"),
    "warm": CheckedRun(AskedLoad(None, 4, 40, warmup=8), "closed_loop", {"cold": 8}),
    "failing": CheckedRun(AskedLoad(None, 4, 40), "requests failed", {"fails_every": 5}),
    # The others do not ask the server, and state none.
    "drafted": CheckedRun(
        AskedLoad(None, 4, 40), "speculative decoding", {"drafted": 4}, ("vllm", "sglang", "aiperf")
    ),
}
"""Runs by name."""


def differences(
    run: CheckedRun, found: ImportedBenchmarks, server: Server, waiting: ProcessorWait
) -> Iterator[str]:
    """Yield the differences between imported figures and those of the server."""
    if not found.rows:
        (why,) = (each.reason for each in found.rejected)
        if run.read not in why:
            yield f"{run.read} expected, rejected: {why}"
        return
    (row,) = found.rows
    if row["mode"] != run.read:
        yield f"{run.read} expected, {row['mode']} read"
        return
    # A tool may pause between its warm-up and what is measured, which comes last.
    answered = [each for each in server.seen if each.answered][-run.load.requests :]
    start, end = min(each.came for each in answered), max(each.done for each in answered)
    span_s, waited_s = end - start, waiting.between(start, end)
    reached = len(answered) / span_s
    in_flight = sum(each.done - each.came for each in answered) / span_s
    # A client that waits for a processor sends nothing in the place of what is done.
    if run.read == "closed_loop" and run.load.cap and in_flight < (FILLED - waited_s / span_s) * run.load.cap:
        yield f"closed loop of {run.load.cap} read, {in_flight:.2f} requests were in flight at the server"
    # A process that waits for a processor holds up whatever it has in flight, from the clock of the tool on.
    held_ms = 1000 * waited_s * in_flight / len(answered)
    # A rate counts from the first request on, which a busy machine lets come late.
    rate = row["requests_per_s"]
    own_span_s = len(answered) / rate if isinstance(rate, float) and rate else span_s
    less = reached - len(answered) / (span_s + waiting.between(end - own_span_s, end))
    wanted: dict[str, tuple[float | None, float, float, float]] = {
        "input_tokens": (INPUT_TOKENS, 0.0, 0.0, 0.0),
        "output_tokens": (OUTPUT_TOKENS, 0.0, 0.0, 0.0),
        "concurrency": (run.load.cap if run.read == "closed_loop" else None, 0.0, 0.0, 0.0),
        "requests_per_s": (reached if run.read == "open_loop" else None, RATE_TOLERANCE, less, 0.0),
        "ttft_ms": (1000 * FIRST_TOKEN_S, TIME_TOLERANCE, 0.0, held_ms),
        "tpot_ms": (1000 * TOKEN_S, TIME_TOLERANCE, 0.0, held_ms / (OUTPUT_TOKENS - 1)),
    }
    for name, (value, tolerance, below, above) in wanted.items():
        seen: Any = row[name]
        if (seen is None) != (value is None) or (
            value is not None and not -tolerance * value - below <= seen - value <= tolerance * value + above
        ):
            busy = f", {-below:.3g} to +{above:.3g} by a busy machine" if below or above else ""
            yield f"{name}: {value} at the server, {seen} read{busy}"


def check(tool: str, name: str, programs: Path, out: Path, words: Path) -> list[str]:
    """Run a tool under a load; how its file is read otherwise than it was."""
    run = RUNS[name]
    out.mkdir(parents=True)
    # SGLang's benchmark states what the server says of itself.
    given = MeasuredDeployment("mock", "H100-SXM", None, None, "bf16", "bf16", 1)
    if tool != "sglang":
        given = MeasuredDeployment("mock", "H100-SXM", "vllm", "0.24.0", "bf16", "bf16", 1)
    with running(Server(**run.server)) as server:
        file, waiting = written_by(tool, programs, server.url, run.load, words, out)
    return list(differences(run, import_benchmarks(tool, read_json(file), given), server, waiting))


def main(environments: dict[str, Path], folder: Path, only: list[str]) -> int:
    """Print a line a run; 1 if any is read as something else."""
    words, wrong = tokenizer(folder / "tokenizer"), 0
    for tool, programs in environments.items():
        for name, run in RUNS.items():
            if tool not in run.tools or (only and name not in only):
                continue
            try:
                found = check(tool, name, programs, folder / tool / name, words)
            except NoResultError as error:
                found = [str(error)]
            wrong += bool(found)
            print(f"{tool} {name}: {'; '.join(found) or 'as the server saw it'}", flush=True)
    print(f"read otherwise: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tools", nargs="+", metavar="TOOL=FOLDER")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", action="append", default=[], choices=sorted(RUNS))
    asked = parser.parse_args()
    places = {name: Path(place).absolute() for name, place in (each.split("=", 1) for each in asked.tools)}
    with tempfile.TemporaryDirectory() as scratch:
        raise SystemExit(main(places, (asked.keep or Path(scratch)).absolute(), asked.only))
