"""Default scheduling of a server."""

import numpy as np
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.serving import SchedulingOverrides, default_scheduling, server_scheduling

RANKS = np.array([1, 4, 8])


@pytest.mark.parametrize(
    ("framework", "hardware", "tokens"),
    [
        # SGLang divides the tokens of a server by its ranks; vLLM and TensorRT-LLM have them for each.
        ("sglang", "B200-SXM", [16_384, 4096, 2048]),
        ("sglang", "H200-SXM", [8192, 2048, 1024]),
        ("sglang", "L40S", [4096, 1024, 512]),
        ("vllm", "B200-SXM", [16_384] * 3),
        ("vllm", "H200-SXM", [8192] * 3),
        ("trtllm", "B200-SXM", [8192] * 3),
    ],
)
def test_tokens_of_an_iteration_of_a_rank(framework: str, hardware: str, tokens: list[int]) -> None:
    found = server_scheduling(framework, accelerators()[hardware])
    assert found.rank_tokens(RANKS).tolist() == tokens
    # A plan's servers are started with the tokens of each rank.
    planned = default_scheduling(framework, accelerators()[hardware])
    assert planned.rank_tokens(RANKS).tolist() == tokens[:1] * 3


def test_what_is_stated_is_that_of_a_rank() -> None:
    part = accelerators()["B200-SXM"]
    stated = SchedulingOverrides(iteration_tokens=4096).applied(server_scheduling("sglang", part))
    assert stated.rank_tokens(RANKS).tolist() == [4096] * 3


@pytest.mark.parametrize(
    ("framework", "month", "sequences"),
    [
        ("vllm", "", [1024, 256, 128]),
        ("vllm", "2025-02", [256] * 3),
        ("sglang", "2025-02", [2048, 512, 256]),
        ("trtllm", "", [2048] * 3),
    ],
)
def test_stages_of_a_pipeline_share_the_sequences_of_a_server(
    framework: str, month: str, sequences: list[int]
) -> None:
    """TensorRT-LLM and vLLM's first engine have a limit for each micro-batch."""
    found = server_scheduling(framework, accelerators()["B200-SXM"], month)
    assert found.engine_sequences(RANKS).tolist() == sequences


@pytest.mark.parametrize(
    ("hardware", "month", "limits"),
    [
        ("B200-SXM", "2026-07", (1024, 8192)),
        ("B200-SXM", "2026-08", (1024, 16_384)),
        ("MI300X", "", (1024, 16_384)),
        *((name, "", (1024, 8192)) for name in ("H100-SXM", "H200-SXM", "RTX-PRO-6000-Server")),
        *((name, "", (256, 2048)) for name in ("A100-SXM-80GB", "L40S", "GB10", "Gaudi3", "TPU-7x")),
        ("GB10", "2026-10", (1024, 8192)),
    ],
)
def test_limits_of_vllm_by_part(hardware: str, month: str, limits: tuple[int, int]) -> None:
    found = server_scheduling("vllm", accelerators()[hardware], month)
    assert (found.max_sequences, found.iteration_tokens) == limits
