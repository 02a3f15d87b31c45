"""Chat requests whose template a server parses anew: none goes on before all that came with it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving.chat_templates import PARSED_TEMPLATES, template_ms

N_REQUESTS = 1000
PARSED = "2025-10"


@pytest.mark.parametrize(
    ("framework", "model_type", "date", "ms"),
    [
        ("vllm", "qwen3", "2024-10", 0.0),
        ("vllm", "qwen3", "2025-06", 7.0),
        ("vllm", "qwen3", "2025-08", 0.0),
        ("vllm", "qwen3", PARSED, 10.0),
        ("vllm", "qwen3", "2025-11", 0.0),
        ("vllm", "qwen3", "", 0.0),
        ("vllm", "gpt_oss", PARSED, 0.0),
        ("sglang", "qwen3", PARSED, 0.0),
    ],
)
def test_versions_of_vllm_parsed_the_template_of_every_request(
    framework: str, model_type: str, date: str, ms: float
) -> None:
    assert template_ms(framework, model_type, date) == ms
    assert all(row.source and row.since < row.until for row in PARSED_TEMPLATES)


def found(mode: str, chat: int, **columns: Any) -> dict[str, float]:
    row = {
        "case_id": mode,
        "model": "Qwen/Qwen3-14B",
        "hardware": "GPU-A",
        "backend": "vllm",
        "weights": "bf16",
        "mode": mode,
        "tp": 1,
        "input_tokens": 200,
        "output_tokens": 50,
        "software_date": PARSED,
        "chat_requests": chat,
    }
    answer = predict(pd.DataFrame([row | columns]), Path()).iloc[0]
    assert answer["status"] == "ok", answer["reason"]
    return dict(answer)


def test_a_thousand_chat_requests_at_once_start_when_the_last_one_is_through() -> None:
    texts, chats = (found("offline", chat, n_requests=N_REQUESTS) for chat in (0, 1))
    makespans = [N_REQUESTS / each["requests_per_s"] for each in (texts, chats)]
    assert makespans[1] - makespans[0] == pytest.approx(N_REQUESTS * 10e-3)
    assert chats["ttft_ms"] - texts["ttft_ms"] == pytest.approx(N_REQUESTS * 10.0)
    assert chats["tpot_ms"] == texts["tpot_ms"]


def test_released_together_they_wait_as_long() -> None:
    texts, chats = (found("burst", chat, concurrency=16) for chat in (0, 1))
    assert chats["ttft_ms"] - texts["ttft_ms"] == pytest.approx(16 * 10.0)
    assert chats["requests_per_s"] < texts["requests_per_s"]


def test_in_a_loop_a_request_waits_for_its_own_and_a_server_takes_a_hundred_a_second() -> None:
    texts, chats = (found("closed_loop", chat, concurrency=4) for chat in (0, 1))
    assert chats["ttft_ms"] - texts["ttft_ms"] == pytest.approx(10.0, rel=0.2)
    many = found("closed_loop", 1, concurrency=4000, output_tokens=2)
    assert many["requests_per_s"] == pytest.approx(100.0)


def test_other_software_and_other_requests_are_as_before() -> None:
    assert found("closed_loop", 1, concurrency=4, software_date="") == found(
        "closed_loop", 0, concurrency=4, software_date=""
    )
