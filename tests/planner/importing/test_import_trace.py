"""`plan import trace`: its output can be planned and states the statistics of the trace."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.perfmodel.replay import read_trace
from fleetplan.planner.cli import main
from fleetplan.planner.importing.traces import run_trace
from fleetplan.scenarios.load import load_fleet

REST = """\
version: 1
name: imported
horizon: {periods: [2027Q1]}
regions: {east: {}}
offers: [{name: rent, hardware: H200-SXM, price_book: rental_3y}]
"""


def run(*arguments: str) -> int:
    try:
        main(["import", "trace", *arguments])
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def trace_file(tmp_path: Path, requests: int = 4000) -> Path:
    random = np.random.default_rng(1)
    times = np.cumsum(random.exponential(0.2, requests))
    long = random.random(requests) < 0.25
    tokens = np.where(long, random.integers(3000, 6000, requests), random.integers(50, 300, requests))
    rows = "".join(
        f"{time:.4f},{prompt},{output}\n"
        for time, prompt, output in zip(times, tokens, random.integers(10, 200, requests), strict=True)
    )
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n" + rows, encoding="utf-8")
    return path


@pytest.mark.parametrize("classes", [1, 2])
def test_what_is_written_loads_as_a_service(tmp_path: Path, classes: int) -> None:
    out = tmp_path / "out"
    path = trace_file(tmp_path)
    assert run(str(path), "--service", "chat", "--classes", str(classes), "--out", str(out)) == 0
    fragment = read_yaml((out / "chat.yaml").read_text(encoding="utf-8"))
    (service,) = fragment["services"]
    service |= {"model": "llama3-8b", "slo": {"ttft_p95_ms": 900}}
    (out / "fleet.yaml").write_text(REST + yaml_text({"services": [service]}), encoding="utf-8")
    found = load_fleet(out / "fleet.yaml").services[0]
    assert found.traffic is not None
    assert found.traffic.burstiness == pytest.approx(1.0, abs=0.2)
    names = [each.name for each in found.classes]
    assert names == (["all"] if classes == 1 else ["short", "long"])
    assert all(found.traffic.lengths_of(name) is not None for name in names)
    rates = found.demand.peak
    assert sum(rates.values()) == pytest.approx(5.0, rel=0.25)
    if classes == 2:
        assert rates["east", "2027Q1", "long"] / sum(rates.values()) == pytest.approx(0.25, abs=0.02)
        assert found.classes[0].input_tokens == pytest.approx(175, rel=0.05)


def test_prefixes_and_sessions_are_told(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 1000 * i, "input_length": 1536, "output_length": 9, "hash_ids": [1, 10 + i // 2, 99]}
        for i in range(8)
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert run(str(path), "--service", "agent", "--out", str(tmp_path)) == 0
    text = (tmp_path / "agent.yaml").read_text(encoding="utf-8")
    assert "512 tokens begin most of them" in text
    assert "# Sessions: 4 of at least two requests, 2.0 requests on average." in text


def test_files_that_are_there_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace_file(tmp_path, 50)
    arguments = (str(path), "--service", "chat", "--out", str(tmp_path))
    assert run(*arguments) == 0
    assert run(*arguments) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert run(*arguments, "--force") == 0


def test_what_is_not_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n0,5,5\n1,0,5\n2,5,5\n", encoding="utf-8")
    assert run(str(path), "--service", "chat", "--out", str(tmp_path)) == 0
    assert "trace.csv:3: a request needs at least one prompt token" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "arrival_s,input_tokens,output_tokens\n0,100,20\n99999999999999999999,200,30\n3.25,150,25\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n9999-12-31T23:59:59,374,44\n2023-11-16 18:15:50,396,109\n",
    ],
)
def test_a_time_that_is_years_away_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    assert run(str(path), "--service", "chat", "--out", str(tmp_path / "out")) == 2
    assert "years apart" in capsys.readouterr().err


def test_requests_that_come_at_once_have_no_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n1,5,5\n1,5,5\n", encoding="utf-8")
    assert run(str(path), "--service", "chat", "--out", str(tmp_path)) == 2
    assert "no two requests at different times" in capsys.readouterr().err


PUBLISHED = {
    "azure": [
        {"TIMESTAMP": f"2024-05-10 00:{n // 60:02}:{n % 60:02}.1234567+00:00", "ContextTokens": 100 + n,
         "GeneratedTokens": 10 + n % 7}
        for n in range(240)
    ],
    "burstgpt": [
        {"Timestamp": float(n), "Request tokens": 100 + n, "Response tokens": 10 + n % 7, "Session ID": n % 9}
        for n in range(240)
    ],
    "mooncake": [
        {"timestamp": 1000 * n, "input_length": 100 + n, "output_length": 10 + n % 7, "hash_ids": [n % 3]}
        for n in range(240)
    ],
}  # fmt: skip
"""Rows as the publishers document them."""


@pytest.mark.parametrize("form", list(PUBLISHED))
@pytest.mark.parametrize("pack", ["plain", "gz", "zst", "parquet"])
def test_a_published_trace_says_the_same_however_it_is_packed(tmp_path: Path, form: str, pack: str) -> None:
    rows = PUBLISHED[form]
    lines = (
        "\n".join(map(json.dumps, rows))
        if form == "mooncake"
        else "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)])
    )
    path = tmp_path / f"trace.{pack}"
    if pack == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif pack == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(lines.encode())
    else:
        path.write_bytes(gzip.compress(lines.encode()) if pack == "gz" else lines.encode())
    trace = read_trace(path)
    assert trace.form == form
    assert trace.rejected == ()
    assert np.diff(trace.requests.arrival_ms) == pytest.approx(1000.0)
    assert trace.requests.input_tokens.tolist() == list(range(100, 340))
    assert int(trace.requests.output_tokens.sum()) == sum(10 + n % 7 for n in range(240))
    assert run(str(path), "--service", "chat", "--out", str(tmp_path / "out")) == 0


def test_a_terminal_sees_how_far_the_reading_is(tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    run_trace(trace_file(tmp_path), "chat", 1, tmp_path / "out", force=False, errors=console)
    assert "reading trace.csv" in out.getvalue()
    assert "100%" in out.getvalue()
