"""Statistics of traces, in bounded memory."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.replay import prefix_blocks
from fleetplan.perfmodel.serving.arrivals import renewal_times_ms
from fleetplan.planner.importing import arrival_counts, session_counts
from fleetplan.planner.importing.arrival_counts import (
    ArrivalCounts,
    ArrivalTimes,
    burstiness_of,
    by_hour,
    peak_per_s,
)
from fleetplan.planner.importing.length_counts import EXACT_TOKENS, LengthCounts
from fleetplan.planner.importing.session_counts import NamedSessions
from fleetplan.planner.importing.trace_summary import TraceStatistics, count_trace, trace_statistics


def statistics_of(tmp_path: Path, text: str, name: str = "trace.csv") -> TraceStatistics:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return trace_statistics(count_trace(path))


def mooncake(*rows: tuple[int, int, int, list[int]]) -> str:
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    return "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)


def test_statistics_of_a_steady_trace(tmp_path: Path) -> None:
    # One request a second over three hours, in the second hour two.
    times = [float(t) for t in range(10_800)] + [3600.5 + t for t in range(3600)]
    rows = "".join(f"{t},{100 if i % 2 else 1000},10\n" for i, t in enumerate(sorted(times)))
    found = statistics_of(tmp_path, "arrival_s,input_tokens,output_tokens\n" + rows)
    assert found.mean_per_s == pytest.approx(4 / 3, rel=0.01)
    assert found.peak_per_s == pytest.approx(2.0, rel=0.02)
    assert found.by_hour == pytest.approx([0.75, 1.5], rel=0.01)
    assert found.burstiness < 0.1
    assert found.input_tokens.mean == pytest.approx(550, rel=0.01)
    assert found.prompts is None


def test_prompts_share_blocks(tmp_path: Path) -> None:
    # Times out of order: the third goes on where the first ended.
    rows = mooncake(
        (3000, 2600, 10, [1, 2, 3, 8, 9]),
        (0, 1500, 10, [1, 2, 3]),
        (1000, 1500, 10, [1, 5, 6]),
        (4000, 500, 10, [1]),
    )
    found = statistics_of(tmp_path, rows, "trace.jsonl")
    assert found.prompts is not None
    assert found.prompts.common_tokens == 512
    assert found.prompts.seen_ratio == pytest.approx((512 + 1536 + 500) / 6100)
    assert (found.sessions.sessions, found.sessions.requests_per_session) == (1, 2.0)


def test_rows_without_hashes_share_nothing_that_is_known(tmp_path: Path) -> None:
    found = statistics_of(tmp_path, mooncake((0, 10, 1, []), (500, 10, 1, [])), "trace.jsonl")
    assert found.prompts is None
    assert found.sessions.sessions == 0


def test_lengths_are_those_of_numpy_to_their_resolution() -> None:
    random = np.random.default_rng(2)
    counts = LengthCounts()
    lengths = np.exp(random.uniform(0, np.log(1e9), 200_000)).astype(np.int64) + 1
    for part in np.split(lengths, 20):
        counts.add(part, part[::-1])
    for found in (counts.inputs(), counts.outputs()):
        assert found.mean == pytest.approx(float(lengths.mean()), rel=1e-12)
        expected = np.percentile(lengths, (50, 95, 99))
        assert (found.p50, found.p95, found.p99) == pytest.approx(tuple(expected), rel=1 / EXACT_TOKENS)
    short = LengthCounts()
    few = random.integers(1, EXACT_TOKENS, 1001)
    short.add(few, few)
    assert short.inputs().p95 == pytest.approx(float(np.percentile(few, 95)), rel=1e-12)


def test_classes_split_by_prompt_length() -> None:
    counts = LengthCounts()
    counts.add([90, 110, 4000, 5000] * 10, [10, 20, 30, 40] * 10)
    short, long = counts.classes(2)
    assert (short.share, short.input_tokens, short.output_tokens) == (0.5, 100.0, 15.0)
    assert (long.share, long.input_tokens, long.output_tokens) == (0.5, 4500.0, 35.0)
    assert sum(each.share for each in long.bins) == pytest.approx(1.0)
    assert all(each.input_from >= 2896 for each in long.bins)
    assert len(counts.classes(1)) == 1
    assert len(counts.classes(9)) <= 4


def counted(times_ms: FloatArray) -> ArrivalCounts:
    counts = ArrivalCounts()
    for part in np.array_split(times_ms, 10):
        counts.add(part / 1e3)
    return counts


def test_burstiness_is_measured_around_slow_changes() -> None:
    random = np.random.default_rng(4)
    for burstiness in (1.0, 3.0):
        times = renewal_times_ms(10.0, burstiness, 100_000, random)
        assert burstiness_of(ArrivalTimes(times)) == pytest.approx(burstiness, rel=0.15)
        # A rate that doubles over the day, and times rounded to seconds, change little.
        slow = times * (1 + times / times[-1])
        rounded = ArrivalTimes(np.floor(slow / 1e3) * 1e3)
        assert burstiness_of(rounded) == pytest.approx(burstiness, rel=0.25)
    assert burstiness_of(ArrivalTimes(np.arange(10.0))) == 1.0


@pytest.mark.parametrize("burstiness", [1.0, 4.0])
@pytest.mark.parametrize("order", ["rising", "falling", "none"])
def test_bins_of_time_say_what_the_times_do(
    monkeypatch: pytest.MonkeyPatch, burstiness: float, order: str
) -> None:
    random = np.random.default_rng(5)
    times = renewal_times_ms(10.0, burstiness, 200_000, random)
    exact = counted(times).times()
    assert exact.bin_ms == 0.0
    monkeypatch.setattr(arrival_counts, "EXACT_ARRIVALS", 1000)
    # Bins end up 0.94 s wide, and windows of bursts have two of them.
    monkeypatch.setattr(arrival_counts, "MOST_BINS", 1 << 15)
    shuffled = {"rising": times, "falling": times[::-1], "none": random.permutation(times)}[order]
    counts = counted(shuffled)
    binned = counts.times()
    assert binned.bin_ms == pytest.approx(60_000 / 64)
    assert binned.requests == counts.requests == 200_000
    assert counts.span_ms == pytest.approx(float(times[-1] - times[0]))
    assert burstiness_of(binned) == pytest.approx(burstiness_of(exact), rel=0.05)
    assert peak_per_s(binned) == pytest.approx(peak_per_s(exact), rel=0.05)
    assert by_hour(binned, 10.0) == pytest.approx(by_hour(exact, 10.0), rel=0.01)


def test_named_sessions_beyond_what_is_kept_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    sizes = random.geometric(0.4, 40_000)
    names = random.permutation(np.repeat(np.arange(sizes.size), sizes)).astype(str).tolist()
    exact = NamedSessions()
    exact.add(names)
    several = sizes[sizes > 1]
    assert exact.statistics().sessions == several.size
    assert exact.statistics().requests_per_session == pytest.approx(float(several.mean()))
    monkeypatch.setattr(session_counts, "MOST_SESSIONS", 4000)
    few = NamedSessions()
    for start in range(0, len(names), 500):
        few.add([*names[start : start + 500], ""])
        assert len(few) <= 4000
    followed = 2000 * several.size / sizes.size
    assert few.statistics().sessions == pytest.approx(several.size, rel=3 / followed**0.5)
    assert few.statistics().requests_per_session == pytest.approx(float(several.mean()), rel=0.05)


def rows_of(form: str, count: int) -> Iterator[str]:
    random = np.random.default_rng(7)
    times = np.cumsum(random.exponential(0.05, count)).tolist()
    # Few lengths, so that all have occurred in the shorter trace.
    tokens = 100 * random.integers(1, 30, (count, 2))
    if form == "burstgpt":
        yield "Timestamp,Session ID,Request tokens,Response tokens"
    elif form == "azure":
        yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    for number, (time, (prompt, output)) in enumerate(zip(times, tokens.tolist(), strict=True)):
        if form == "burstgpt":
            yield f"{time},{number // 2},{prompt},{output}"
        elif form == "azure":
            yield f"2024-05-10 00:{int(time) // 60:02}:{time % 60:09.6f},{prompt},{output}"
        else:
            blocks = [0, *range(4 * (number // 2) + 1, 4 * (number // 2) + 4)]
            yield mooncake((round(time * 1e3), prompt, output, blocks))


def peak_bytes(path: Path) -> int:
    """Most memory that is taken while a trace is read and its statistics are derived."""
    tracemalloc.start()
    try:
        derive(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def derive(path: Path) -> None:
    found = count_trace(path)
    trace_statistics(found)
    found.lengths.classes(3)


@pytest.mark.parametrize("form", ["azure", "burstgpt", "mooncake"])
def test_twice_the_rows_take_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    # Limits that the shorter trace already goes beyond.
    monkeypatch.setattr(arrival_counts, "EXACT_ARRIVALS", 1000)
    monkeypatch.setattr(arrival_counts, "MOST_BINS", 1 << 9)
    monkeypatch.setattr(session_counts, "MOST_SESSIONS", 500)
    monkeypatch.setattr(session_counts, "FIRST_BLOCKS", 1000)
    monkeypatch.setattr(prefix_blocks, "REMEMBERED_BLOCKS", 500)
    monkeypatch.setattr("fleetplan.perfmodel.replay.trace_rows.BATCH_ROWS", 1 << 9)
    paths = [tmp_path / f"{rows}.trace" for rows in (3000, 6000)]
    for path, rows in zip(paths, (3000, 6000), strict=True):
        path.write_text("\n".join(rows_of(form, rows)), encoding="utf-8")
    # What is made once for all traces: a short one makes it, without the cost of counting its bytes.
    derive(paths[0])
    shorter, longer = map(peak_bytes, paths)
    # Less than three bytes a row; times and lengths alone would take sixteen.
    assert longer - shorter < 3 * 3000
