"""`plan import prometheus` from a test server with logins, and from a real Prometheus."""

from __future__ import annotations

import base64
import http.server
import json
import math
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from tests.planner.importing.cluster_nodes import listed, nvidia
from tests.planner.importing.prometheus_answers import MODEL, asked, run, saved

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.importing import prometheus


@contextmanager
def serving(answer: Callable[[str], tuple[int, bytes]]) -> Iterator[str]:
    """A web server of the test."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization", ""))
            code, body = answer(self.path)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((503, b"starting"), "503"),
        ((200, b"<html>"), "is not JSON"),
        ((200, b"\xff"), "gives no answer"),
        ((200, b"x" * 1000), "is larger than"),
    ],
)
def test_a_server_that_does_not_answer_is_one_error(
    answer: tuple[int, bytes], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(prometheus, "MAX_ANSWER_BYTES", 500)
    with serving(lambda path: answer) as url:
        assert run("import", "prometheus", url, "--system", "vllm", "--out", tmp_path / "x") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    words = ("import", "prometheus", url, "--system", "vllm", "--out", tmp_path / "x")
    assert run(*words) == 2
    assert "gives no answer" in capsys.readouterr().err
    assert run(*words, "--days", 100, "--step", 1) == 2
    assert "more than 11,000 steps" in capsys.readouterr().err


def test_a_bearer_token_goes_to_the_server_and_not_beside_a_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {name: text.encode() for name, text in saved().items()}
    token = tmp_path / "token"
    token.write_text("eyJ.s3cret\n", encoding="utf-8")
    with serving(
        lambda path: (200, answers["requests" if "request_success" in path else "cache_hits"])
    ) as url:
        words = ("--system", "vllm", "--token-file", token, "--out", tmp_path / "x")
        assert run("import", "prometheus", url, *words) == 0
        assert asked[-1] == "Bearer eyJ.s3cret"
        assert "s3cret" not in (tmp_path / "x" / "demand.yaml").read_text("utf-8")
        assert run("import", "prometheus", url.replace("//", "//me:pass@"), *words, "--force") == 2
        assert "is given with a password" in capsys.readouterr().err
        for text in ("", "two words", "a\nb", "\u00e9"):
            token.write_text(text, encoding="utf-8")
            assert run("import", "prometheus", url, *words, "--force") == 2
            assert "contains no token" in capsys.readouterr().err
        token.unlink()
        assert run("import", "prometheus", url, *words, "--force") == 2
        assert "No such file" in capsys.readouterr().err


def test_a_password_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {name: text.encode() for name, text in saved().items()}
    with serving(
        lambda path: (200, answers["requests" if "request_success" in path else "cache_hits"])
    ) as url:
        login = url.replace("http://", "http://me:s%40fe@")
        assert run("import", "prometheus", login, "--system", "vllm", "--out", tmp_path / "x") == 0
    assert asked[-1] == "Basic " + base64.b64encode(b"me:s@fe").decode()
    assert run("import", "prometheus", login, "--system", "vllm", "--out", tmp_path / "y") == 2
    said = capsys.readouterr()
    for text in ((tmp_path / "x" / "demand.yaml").read_text("utf-8"), said.err, said.out):
        assert "s@fe" not in text
        assert "s%40fe" not in text


RATES = {"east": 200.0, "west": 50.0}
"""Requests/s of the exporter: whole requests in a second of counters are a small part of them."""


def exported(started: float) -> bytes:
    """Return vLLM's metrics some time after the start: prompts of 60 and 600 tokens, answers of 40."""
    lines = []
    for region, rate in RATES.items():
        done = math.floor((time.monotonic() - started) * rate) + 1000
        labels = f'model_name="{MODEL}",region="{region}"'
        lines.append(f'vllm:request_success_total{{{labels},finished_reason="stop"}} {done}')
        for name, buckets, total in (
            ("prompt", ((100, done // 2), (1000, done)), 330 * done),
            ("generation", ((50, done), (100, done)), 40 * done),
        ):
            for bound, count in (*buckets, ("+Inf", done)):
                lines.append(f'vllm:request_{name}_tokens_bucket{{{labels},le="{bound}"}} {count}')
            lines.append(f"vllm:request_{name}_tokens_sum{{{labels}}} {total}")
        lines.append(f"vllm:prefix_cache_hits_total{{{labels}}} {66 * done}")
        lines.append(f"vllm:prefix_cache_queries_total{{{labels}}} {330 * done}")
    return ("\n".join(lines) + "\n").encode()


@contextmanager
def real_prometheus(program: str, folder: Path, target: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    (folder / "prometheus.yml").write_text(
        "scrape_configs:\n  - job_name: vllm\n    scrape_interval: 250ms\n    scrape_timeout: 250ms\n"
        f"    static_configs: [{{targets: ['{target.removeprefix('http://')}']}}]\n",
        encoding="utf-8",
    )
    words = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with subprocess.Popen([*words, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://{address}"
        finally:
            process.terminate()


def wait_for_scrapes(server: str, number: int) -> None:
    """Wait until a server has this number of samples of every series."""
    asked = urlencode({"query": "min(count_over_time(vllm:request_success_total[1m]))"})
    ends = time.monotonic() + 60.0
    while time.monotonic() < ends:
        time.sleep(0.2)
        with suppress(OSError), urlopen(f"{server}/api/v1/query?{asked}", timeout=5.0) as answer:
            result = json.load(answer)["data"]["result"]
            if result and float(result[0]["value"][1]) >= number:
                return
    pytest.fail("Prometheus did not scrape")


def test_from_a_real_prometheus_to_a_plan_in_five_commands(tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on the path (Debian package prometheus)")
    started = time.monotonic()
    card = "NVIDIA-H100-80GB-HBM3"
    nodes = listed(*(nvidia(f"{place}{n}", card, 8, place) for place in RATES for n in (1, 2)))
    (tmp_path / "nodes.json").write_text(json.dumps(nodes), encoding="utf-8")
    demand = tmp_path / "demand"
    words = ("--system", "vllm", "--region-label", "region", "--days", 0.01, "--step", 1, "--percentile", 50)
    with (
        serving(lambda path: (200, exported(started))) as exporter,
        real_prometheus(program, tmp_path, exporter) as server,
    ):
        wait_for_scrapes(server, 12)
        saving = ("--save", tmp_path / "saved", "--force")
        for _ in range(20):
            if run("import", "prometheus", server, *words, *saving, "--out", demand) == 0:
                break
            time.sleep(0.5)
    document = read_yaml((demand / "demand.yaml").read_text("utf-8"))
    (service,) = document["services"]
    assert service["demand"] == pytest.approx(RATES, rel=0.15)
    assert service["workload"]["input_tokens"] == pytest.approx(330, rel=0.05)
    assert service["workload"]["output_tokens"] == pytest.approx(40, rel=0.05)
    assert "Prefix cache: 20% of the prompt tokens" in (demand / "demand.yaml").read_text("utf-8")
    # What was saved says the same.
    assert run("import", "prometheus", tmp_path / "saved", *words, "--out", tmp_path / "again") == 0
    again = read_yaml((tmp_path / "again" / "demand.yaml").read_text("utf-8"))
    assert again == document
    pools = tmp_path / "pools.yaml"
    words = ("--rent-usd-per-accelerator-hour", 2, "--out", pools)
    assert run("import", "kubernetes", tmp_path / "nodes.json", *words) == 0
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "version: 1\nimports: [demand/demand.yaml, pools.yaml]\nregions: {east: {}, west: {}}\n", "utf-8"
    )
    limits = ("--set", f"services.{service['name']}.slo.tpot_ms=40")
    assert run("check", fleet, *limits) == 0
    assert run("solve", fleet, *limits, "--gap", "5%", "--out", tmp_path / "plan") == 0
    assert run("verify", tmp_path / "plan" / "plan.json", fleet, *limits) == 0
