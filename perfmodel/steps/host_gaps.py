"""The time for which an accelerator waits between two steps while the host schedules.

A framework that makes up its steps one by one reads the tokens of a step, ends and schedules requests and
prepares the next step before it launches it: a time for each step and for each sequence in it. Frameworks
that make up a step while the one before runs hide it. So do pipelines, whose other micro-batches run
meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.software_versions import Software

GAP_NAME: Final = "host_gap"
"""The name of the wait in a breakdown."""


@dataclass(frozen=True, slots=True)
class HostGap:
    """The wait of a framework, from a month on until a later row replaces it.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    since : str
        Year and month (YYYY-MM) of the release; empty for all that came before the next row.
    step_ms : float
        For each step. [ms]
    sequence_us : float
        For each sequence of the step, behind a server. [us]
    engine_us : float
        The part of it that a batch waits which is handed to the library, without a server. [us]
    source : str
        Source: mostly published pairs of runs that differ in the schedule.
    """

    framework: str
    since: str
    step_ms: float
    sequence_us: float
    engine_us: float
    source: str


NO_GAP: Final = HostGap("", "", 0.0, 0.0, 0.0, "")

_ENGINE_PART: Final = 29 / (29 + 33)
"""Part of vLLM's host that is its engine, the rest its server.

Source: vLLM's profile of Llama 3 8B on one H100 (blog.vllm.ai, 5 September 2024): 29 % of the time goes to
scheduling, 33 % to the HTTP server, 38 % to the GPU. That 0.6 and 0.7, whose server is a process of its own,
have the same part is an assumption; 512 static batches of September 2024 are met within 5 % (median)."""

_LAMBDA: Final = "LambdaLabsML/vllm-benchmark@0e8fc5d, benchmark_v0.md"

HOST_GAPS: Final = (
    HostGap(
        "vllm",
        "",
        2.0,
        200.0,
        200.0 * _ENGINE_PART,
        f"{_LAMBDA}: 8B on H100, batch 256: 84 ms a step under vLLM 0.5.4, 32 ms under 0.6.0 with ten steps "
        "a schedule; its results for Mistral-7B on H100: 7.8 ms a token of one sequence, 5.8 ms of which are "
        "kernels",
    ),
    HostGap(
        "vllm",
        "2024-09",
        2.0,
        165.0,
        165.0 * _ENGINE_PART,
        f"{_LAMBDA}: vLLM 0.6.0 on H100, batch 256, with one and with ten steps a schedule: 65 and 32 ms a "
        "step of 8B, 112 and 72 ms of 70B on four, 192 and 149 ms of 405B on eight; nine tenths of 144, 173 "
        "and 186 us a sequence. The step as before",
    ),
    HostGap(
        "vllm",
        "2025-03",
        0.5,
        20.0,
        20.0,
        "vLLM 0.8 to 0.13 (V1) without and with --async-scheduling: GPUStack's performance lab "
        "(gpustack/gpustack@47277d79), 1,000 prompts at once, gpt-oss-20b on H100 and A100 and 120b on A100: "
        "18, 23 and 21 us a token; 120b on A100 with 4 clients: 11.67 and 11.03 ms a token; "
        "vllm-project/vllm pull request 26866, 800 clients: 17 us",
    ),
    HostGap(
        "vllm", "2026-01", 0.0, 0.0, 0.0, "vLLM 0.14 (January 2026): --async-scheduling is on by default"
    ),
    HostGap(
        "trtllm",
        "2024-06",
        1.0,
        0.0,
        0.0,
        "Argonne's static batches under TensorRT-LLM 0.11 (argonne-lcf/LLM-Inference-Bench@4211f5d4) on one "
        "A100 and one H100: 0.83 to 1.23 ms a step beyond the kernels in six least-squares fits, 0.99 in the "
        "mean. Its batch manager, which the Python runner calls since 0.10 (pull request 1598 of May 2024)",
    ),
    HostGap(
        "trtllm",
        "2025-02",
        0.0,
        0.0,
        0.0,
        "TensorRT-LLM 0.17 (February 2025): its PyTorch backend overlaps the host; its tables of 0.19 are "
        "met without a wait",
    ),
)
"""Every wait that is known. SGLang overlaps the host by default since 0.4 (December 2024). What the batch
manager of TensorRT-LLM takes for each sequence and for several ranks is not known."""

SYNCHRONOUS_GAP: Final = HostGap(
    "sglang",
    "",
    0.6,
    10.0,
    10.0,
    "SGLang without its overlap schedule and with it: sgl-project/sglang pull request 5608 (April 2025), "
    "Llama-3.1-8B on four accelerators, 16 sequences: 5.24 and 4.63 ms a step; pull request 38131 (September "
    "2026), LFM2 on RTX 5090, one sequence: 2.75 and 2.01 ms; uw-syfi/vibesys pull request 421, Qwen3.5-397B "
    "on MI300A: 0.9 ms with 16 sessions and 1.3 ms with 48",
)
"""The wait of SGLang where the cache of states keeps it from making up the next step while one runs."""


def host_gap(framework: str, software: Software) -> HostGap:
    """Return the wait of a framework; that of software that makes up steps one by one where this is set."""
    known = [
        row
        for row in HOST_GAPS
        if row.framework == framework and (not software.date or row.since <= software.date)
    ]
    if software.iterations_ahead is not None:
        # An explicit setting takes precedence over the default of the version.
        known = [row for row in known if row.step_ms > 0] if software.iterations_ahead == 0 else []
    return max(known, key=lambda row: row.since, default=NO_GAP)


def gap_ms(shape: StepShape, gap: HostGap, *, is_served: bool) -> FloatArray:
    """Wait after a step, behind a server or without one, of the broadcast shape of its sequences. [ms]."""
    sequences = shape.prefill_sequences + shape.decode_sequences
    each_us = gap.sequence_us if is_served else gap.engine_us
    found: FloatArray = np.where(shape.layouts.pp > 1, 0.0, gap.step_ms + each_us / US_PER_MS * sequences)
    return found
