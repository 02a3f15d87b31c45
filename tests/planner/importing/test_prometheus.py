"""`plan import prometheus`: saved answers, a server of a test, and a Prometheus that scrapes an exporter."""

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
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
from tests.planner.importing.test_clusters import listed, nvidia

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.cli import main
from fleetplan.planner.importing import prometheus
from fleetplan.planner.importing.demand import DemandOptions, demand_fragment, lengths_text, observed_services
from fleetplan.planner.importing.prometheus import parse_answers, queries, system_metrics
from fleetplan.scenarios.load import load_fleet

STEP_S = 300
DAY_S = 86_400
TIMES = np.arange(1_790_000_000 // DAY_S * DAY_S, 1_790_000_000 // DAY_S * DAY_S + 2 * DAY_S, STEP_S)
MODEL = "meta-llama/Llama-3.1-8B"


def matrix(*series: tuple[dict[str, str], Any]) -> str:
    """An answer of /api/v1/query_range, by the HTTP API of Prometheus."""
    result = [
        {"metric": labels, "values": [[float(t), str(float(v))] for t, v in zip(TIMES, values, strict=True)]}
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def flat(value: float) -> Any:
    return np.full(TIMES.size, value)


def day(low: float, high: float, first: int, last: int) -> Any:
    """Requests/s that are high within hours of the day."""
    hours = TIMES / 3600 % 24
    return np.where((hours >= first) & (hours < last), high, low)


def saved(**changes: str) -> dict[str, str]:
    east, west = {"model_name": MODEL, "region": "east"}, {"model_name": MODEL, "region": "west"}
    other = {"model_name": "other", "region": "east"}
    both = {"model_name": MODEL}
    return {
        "requests": matrix(
            (east, day(2.0, 10.0, 6, 12)), (west, day(1.0, 4.0, 18, 24)), (other, flat(0.5))
        ),
        # Of 100 requests a step 60 have up to 100 tokens, 40 up to 1,000; in the mean 300.
        "prompt_tokens": matrix(
            ({**both, "le": "100"}, flat(60.0)), ({**both, "le": "1000.0"}, flat(100.0)),
            ({**both, "le": "+Inf"}, flat(100.0)),
        ),
        "prompt_tokens_sum": matrix((both, flat(30_000.0))),
        "output_tokens": matrix(
            ({**both, "le": "50"}, flat(75.0)), ({**both, "le": "+Inf"}, flat(100.0)),
        ),
        "output_tokens_sum": matrix((both, flat(4_000.0))),
        "cache_hits": matrix((both, flat(250.0))),
        "cache_queries": matrix((both, flat(1_000.0))),
        **changes,
    }  # fmt: skip


def options(**changes: Any) -> DemandOptions:
    given = {"service_label": "model_name", "region_label": "region", "region": None, "percentile": 100.0,
             "slices": 1, "source": "test"}  # fmt: skip
    return DemandOptions(**{**given, **changes})


def document(asked: DemandOptions, **changes: str) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(
        demand_fragment(observed_services(parse_answers(saved(**changes), "test"), asked), asked)
    )
    return found


def test_rates_are_peaks_by_service_and_region() -> None:
    chat, other = document(options())["services"]
    assert chat["demand"] == {"east": 10.0, "west": 4.0}
    assert (chat["name"], chat["model"]) == ("meta-llama-llama-3.1-8b", MODEL)
    assert other == {"name": "other", "demand": {"east": 0.5}}
    # Six hours of 24 are busy: the 70th percentile is a quiet rate.
    assert document(options(percentile=70.0))["services"][0]["demand"] == {"east": 2.0, "west": 1.0}


def test_the_shape_of_the_day_becomes_slices() -> None:
    found = document(options(slices=4))
    assert found["horizon"]["slices"] == [{"name": f"h{hour:02}", "hours": 6} for hour in (0, 6, 12, 18)]
    shape = found["day_shapes"]["meta-llama-llama-3.1-8b-day"]["by_region"]
    assert shape["east"] == {"h00": 0.2, "h06": 1.0, "h12": 0.2, "h18": 0.2}
    assert shape["west"] == {"h00": 0.25, "h06": 0.25, "h12": 0.25, "h18": 1.0}
    assert found["services"][0]["demand_by_slice"] == "meta-llama-llama-3.1-8b-day"


def test_slices_without_a_reading_are_named() -> None:
    """A server that began to record in the afternoon says nothing of the night."""
    found = json.loads(matrix(({"model_name": MODEL}, flat(2.0))))
    (series,) = found["data"]["result"]
    series["values"] = [each for each in series["values"] if 6 <= each[0] / 3600 % 24 < 18]
    asked = options(slices=4)
    (service,) = observed_services(parse_answers({"requests": json.dumps(found)}, "test"), asked)
    assert service.unread == (0, 3)
    assert "Nothing was read in h00, h18, whose demand is 0" in demand_fragment((service,), asked)
    assert "Nothing was read" not in demand_fragment(
        observed_services(parse_answers(saved(), "test"), asked), asked
    )


def test_lengths_are_those_of_the_histograms() -> None:
    chat = observed_services(parse_answers(saved(), "test"), options())[0]
    assert chat.prompts is not None
    assert (chat.prompts.mean, chat.prompts.bins) == (300.0, ((1, 101, 0.6), (101, 1001, 0.4)))
    assert chat.outputs is not None
    # Beyond the last bucket lengths are taken to end at twice its start.
    assert (chat.outputs.mean, chat.outputs.bins) == (40.0, ((1, 51, 0.75), (51, 102, 0.25)))
    assert chat.hit_ratio == 0.25
    rows = (lengths_text(chat) or "").splitlines()
    assert rows[0] == "input_from,input_to,output_from,output_to,share"
    assert rows[1] == "1,101,1,51,0.45"
    assert sum(float(row.split(",")[-1]) for row in rows[1:]) == pytest.approx(1.0)


@pytest.mark.parametrize("burstiness", [1.0, 4.0])
def test_bursts_are_told_by_steps_of_a_minute_or_less(burstiness: float) -> None:
    random = np.random.default_rng(3)
    # Counts of 10 s with a slow change, each of so many requests at once.
    times = np.arange(0, 40_000, 10.0)
    means = 50 + 20 * np.sin(times / 5_000)
    counts = random.poisson(means / burstiness) * burstiness
    values = [[time_s, str(count / 10)] for time_s, count in zip(times, counts, strict=True)]
    series = {"metric": {"model_name": "m"}, "values": values}
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}})
    (found,) = observed_services(parse_answers({"requests": text}, "test"), options())
    assert found.burstiness == pytest.approx(burstiness, rel=0.1)
    assert observed_services(parse_answers(saved(), "test"), options())[0].burstiness is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requests": "{"}, "test requests:1:2: is not JSON"),
        ({"requests": "[]"}, "is no answer to a range query"),
        ({"requests": json.dumps({"status": "error", "error": "bad query at 3"})}, "bad query at 3"),
        ({"requests": matrix(({"job": "x"}, flat(1.0)))}, "no series with requests has the label model_name"),
        ({"requests": matrix(({"model_name": "m"}, flat(0.0)))}, "no series with requests"),
        ({"requests": matrix(({"model_name": "m\x1b[2J"}, flat(1.0)))}, "steers a terminal"),
        ({"requests": matrix(({"model_name": "a b"}, flat(1.0)), ({"model_name": "a/b"}, flat(1.0)))},
         "differ in punctuation"),
        ({"requests": matrix(({"model_name": "a"}, flat(1.0)),
                             ({"model_name": "a", "region": "e"}, flat(1.0)))}, "have no label region"),
        ({"prompt_tokens": json.dumps({"status": "success", "data": {"resultType": "matrix",
                                                                    "result": [{"values": 3}]}})},
         "series 1 has no labels"),
        # What a query of a native histogram answers, by the HTTP API of Prometheus.
        ({"prompt_tokens": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"model_name": MODEL},
             "histograms": [[60.0, {"count": "10", "sum": "100", "buckets": [[0, "8", "16", "10"]]}]]}]}})},
         "holds native histograms"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_used_say_why(change: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        observed_services(parse_answers(saved(**change), "test"), options())


def test_rates_over_nothing_are_left_out() -> None:
    values = flat(1.0)
    values[:10] = math.nan
    answers = parse_answers({"requests": matrix(({"model_name": "m"}, values))}, "test")
    found = observed_services(answers, options())
    assert found[0].mean_per_s == 1.0


@pytest.mark.parametrize("system", ["vllm", "sglang", "trtllm", "dynamo", "envoy-ai-gateway"])
def test_every_system_has_queries_and_a_source(system: str) -> None:
    asked = queries(system, "region", 60)
    metrics = system_metrics(system)
    assert metrics["source"]
    assert asked["requests"] == (
        f"sum by ({metrics['service']}, region) (rate({metrics['requests']['counter']}[60s]))"
    )
    assert ("prompt_tokens" in asked) == (system != "trtllm")
    if system == "envoy-ai-gateway":
        assert '_bucket{gen_ai_token_type="input"}[60s]' in asked["prompt_tokens"]


def run(*arguments: object) -> int:
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.value) if hasattr(ended, "value") else int(ended.code or 0)
    return 0


def test_a_folder_of_answers_becomes_part_of_a_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in saved().items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    words = ("import", "prometheus", tmp_path, "--system", "vllm")
    out = tmp_path / "out"
    assert run(*words, "--region-label", "region", "--slices", 4, "--out", out) == 0
    (out / "fleet.yaml").write_text(
        "version: 1\nimports: [demand.yaml]\nhorizon: {periods: [2027Q1]}\nregions: {east: {}, west: {}}\n"
        "offers: [{name: rent, hardware: h100, regions: [east, west], rent_usd_per_accelerator_hour: 2}]\n",
        encoding="utf-8",
    )
    text = (
        (out / "demand.yaml")
        .read_text("utf-8")
        .replace("demand:", "slo: {tpot_ms: 40}\n  model: llama3.1-8b\n  demand:")
        .replace(f"  model: {MODEL}\n", "", 1)
    )
    block = read_yaml(text)
    block["services"][1]["workload"] = {"input_tokens": 10, "output_tokens": 10}
    (out / "demand.yaml").write_text(yaml_text(block), "utf-8")
    fleet = load_fleet(out / "fleet.yaml", (), ())
    assert [each.name for each in fleet.slices] == ["h00", "h06", "h12", "h18"]
    assert fleet.services[0].demand.peak["east", "2027Q1", "all"] == 10.0
    capsys.readouterr()
    assert run(*words, "--queries") == 0
    assert "requests.json: sum by (model_name) (rate(vllm:request_success_total[300s]))" in (
        capsys.readouterr().out
    )
    for wrong, said in (
        ((*words,), "--out"),
        ((*words, "--out", out), "there is such a file already"),
        ((*words, "--slices", 5, "--out", tmp_path / "x"), "no whole hours"),
        ((*words[:2], tmp_path / "none", *words[3:], "--out", tmp_path / "x"), "cannot be read"),
        ((*words[:4], "vlm", "--out", tmp_path / "x"), "did you mean 'vllm'"),
    ):
        assert run(*wrong) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


asked: list[str] = []
"""Authorisation of every request of a server of the test."""


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
            assert "holds no token" in capsys.readouterr().err
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
    """What vLLM's metrics say a while after a start: prompts of 60 and 600 tokens by turns, answers of 40."""
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
    """Wait until a server has so many values of every series: a busy one begins late and misses some."""
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
