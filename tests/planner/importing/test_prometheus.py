"""`plan import prometheus` from saved answers: rates, lengths, burstiness and daily profile."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.planner.importing.prometheus_answers import MODEL, document, flat, matrix, options, run, saved

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.importing.demand import demand_fragment, lengths_text, observed_services
from fleetplan.planner.importing.prometheus import parse_answers, queries, system_metrics
from fleetplan.scenarios.load import load_fleet


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
    assert "No readings in h00, h18, whose demand is 0" in demand_fragment((service,), asked)
    assert "No readings" not in demand_fragment(
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
        ({"requests": "[]"}, "is not an answer to a range query"),
        ({"requests": json.dumps({"status": "error", "error": "bad query at 3"})}, "bad query at 3"),
        ({"requests": matrix(({"job": "x"}, flat(1.0)))}, "no series with requests has the label model_name"),
        ({"requests": matrix(({"model_name": "m"}, flat(0.0)))}, "no series with requests"),
        ({"requests": matrix(({"model_name": "m\x1b[2J"}, flat(1.0)))}, "control character"),
        ({"requests": matrix(({"model_name": "a b"}, flat(1.0)), ({"model_name": "a/b"}, flat(1.0)))},
         "differ only in punctuation"),
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
        ((*words, "--out", out), "the file already exists"),
        ((*words, "--slices", 5, "--out", tmp_path / "x"), "not a whole number of hours"),
        ((*words[:2], tmp_path / "none", *words[3:], "--out", tmp_path / "x"), "cannot be read"),
        ((*words[:4], "vlm", "--out", tmp_path / "x"), "did you mean 'vllm'"),
    ):
        assert run(*wrong) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
