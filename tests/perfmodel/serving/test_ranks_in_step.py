"""Attention-DP ranks whose iterations start and end together, against iterations counted one by one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.parts import first_parts

from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving import Admission, StepGrids
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths

RANKS, CHUNK, RUNNING = 4, 2048, 64
APART = Admission(prompts_apart=True)
DECODE_MS, PROMPT_MS, EXPERTS_MS = 20.0, 60.0, 40.0
"""An iteration that generates, and what a full one of prompts takes of a rank and of the experts of all."""


def grids(ranks: int) -> StepGrids:
    """Return iterations of one token or less, or of a whole chunk, straight in between."""
    tokens = np.array([1.0, float(CHUNK)])
    none = np.zeros((1, 2))
    return StepGrids(
        tokens=tokens,
        token_ms=np.array([[DECODE_MS, PROMPT_MS + EXPERTS_MS]]),
        shared_ms=np.array([[0.0, EXPERTS_MS]]) if ranks > 1 else none,
        sequences=np.array([0.0, float(RUNNING)]),
        decode_ms=none,
        slope_ms=none,
        contexts=(1.0, 2.0, 3.0),
        bend_ms=none,
        least_ms=none,
        lengths=np.array([0.0, 1e6]),
        prompt_ms=none,
        unlimited_ms=none,
        prompt_floor_ms=np.zeros(1),
        ranks=np.array([float(ranks)]),
        rebuilt_ms=np.zeros(1),
        read_ms=np.zeros(1),
    )


def times(ranks: int, admission: Admission = APART, drafted: float = 1.0) -> IterationTimes:
    lengths = Lengths(CHUNK, 0.0, 512.0, tokens_per_step=drafted)
    return IterationTimes(grids(ranks), lengths, CHUNK, admission)


def mean(found: IterationTimes, share: float, chunks: int) -> float:
    one = np.ones(1)
    return float(found.mean_ms(share * one, float(CHUNK * chunks) * one, RUNNING * one)[0])


STEPS = first_parts((20_000, 60_000), 1)
"""Iterations that are counted."""


def counted(found: IterationTimes, share: float, chunks: int, waits: bool, iterations: int) -> float:
    """Mean time between two tokens of a rank; each ends a request with a chance of `share`."""
    random = np.random.default_rng(5)
    left, steps, elapsed_ms = np.zeros(RANKS, dtype=int), 0, 0.0
    one = np.ones(1)
    decode = float(found.decode_ms(RUNNING * one)[0])
    carrying_ms = [
        float(found.mixed_ms(float(CHUNK) * one, 0.0 * one, count / RANKS)[0]) for count in range(RANKS + 1)
    ]
    for ends in random.random((iterations, RANKS)) < share:
        prompts = left > 0
        computing = np.count_nonzero(prompts)
        elapsed_ms += max(decode, carrying_ms[computing]) if computing else decode
        if waits and computing:
            left = left - prompts
            continue
        steps += RANKS - computing
        left = left - prompts + chunks * (ends & ~prompts)
    return elapsed_ms * RANKS / steps


@pytest.mark.parametrize("iterations", STEPS)
@pytest.mark.parametrize(("share", "chunks"), [(0.02, 1), (0.125, 1), (0.125, 3), (0.5, 1)])
def test_an_iteration_lasts_as_long_as_that_of_the_busiest_rank(
    share: float, chunks: int, iterations: int
) -> None:
    found = times(RANKS)
    one_by_one = counted(found, share, chunks, False, iterations)
    assert mean(found, share, chunks) == pytest.approx(one_by_one, rel=0.06)


@pytest.mark.parametrize("iterations", STEPS)
@pytest.mark.parametrize("share", [0.02, 0.125, 0.5])
def test_ranks_that_draft_wait_while_another_computes_prompts(share: float, iterations: int) -> None:
    found = times(RANKS, drafted=2.0)
    one_by_one = counted(found, share, 1, True, iterations)
    assert mean(found, share, 1) == pytest.approx(one_by_one, rel=0.08)


def test_one_rank_waits_for_no_other() -> None:
    decode = float(times(1).decode_ms(RUNNING * np.ones(1))[0])
    assert mean(times(1), 0.125, 2) == pytest.approx(decode + 0.125 * 2 * (PROMPT_MS + EXPERTS_MS))


def test_ranks_that_only_compute_prompts_do_so_together() -> None:
    one = np.ones(1)
    found = times(RANKS).mean_ms(one, CHUNK * one, 0.0 * one)[0]
    assert found == pytest.approx(PROMPT_MS + EXPERTS_MS)


@pytest.mark.parametrize("admission", [replace(APART, prompts_aligned=True), Admission()])
def test_ranks_that_align_or_join_their_prompts_are_as_one(admission: Admission) -> None:
    assert mean(times(RANKS, admission), 0.125, 1) == mean(times(1, admission), 0.125, 1)


def test_an_iteration_where_all_ranks_have_prompts_is_the_ordinary_one() -> None:
    found, one = times(RANKS), np.ones(1)
    assert found.mixed_ms(float(CHUNK) * one, 0.0 * one)[0] == pytest.approx(PROMPT_MS + EXPERTS_MS)
    assert found.mixed_ms(float(CHUNK) * one, 0.0 * one, 0.25)[0] == pytest.approx(
        PROMPT_MS + EXPERTS_MS / 4, rel=0.01
    )


def loops(backend: str, **columns: object) -> pd.Series:
    case = {
        "case_id": "a",
        "model": "deepseek-ai/DeepSeek-V4-Flash",
        "hardware": "B200-SXM",
        "backend": backend,
        "weights": "mxfp4",
        "kv": "fp8",
        "mode": "closed_loop",
        "tp": 1,
        "dp": 4,
        "ep": 4,
        "input_tokens": 4096,
        "output_tokens": 512,
        "concurrency": 256,
        "max_batched_tokens": 4096,
    }
    return predict(pd.DataFrame([case | columns]), Path()).iloc[0]


def test_a_prefill_delayer_shortens_the_iterations_of_sglang_alone() -> None:
    apart, aligned = loops("sglang"), loops("sglang", prompts_aligned=1)
    assert aligned["tpot_ms"] < 0.7 * apart["tpot_ms"]
    assert loops("vllm", prompts_aligned=1)["tpot_ms"] == loops("vllm")["tpot_ms"]
    assert loops("sglang", prompts_aligned=2)["reason"].startswith("prompts_aligned: 2")


@needs_tables
def test_published_rates_of_ranks_in_step_are_met() -> None:
    # SGLang's cookbook, sgl-project/sglang@0858700: 7,997 tokens/s an accelerator at 71.3 ms, 1,024 clients
    # of which 256 run, on four B200. 38 ms without the wait for other ranks.
    found = loops("sglang", concurrency=1024, max_sequences=64)
    assert found["tpot_ms"] == pytest.approx(71.3, rel=0.1)
    assert found["requests_per_s"] * 4608 / 4 == pytest.approx(7997, rel=0.1)
