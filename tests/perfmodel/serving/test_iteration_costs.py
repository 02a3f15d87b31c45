"""Tabulated iterations against the evaluator that they are taken from."""

from pathlib import Path

import numpy as np
import pytest
from tests.measured import needs_tables
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import PROMPT_GRAIN_TOKENS, Range, step_costs, step_grids
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths
from fleetplan.perfmodel.steps import StepShape

EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))
LAYOUT = Parallelism(1, 2, 1, 2, 1)
COSTS = step_costs(EVALUATOR, LAYOUT, Range(sequences=128, prompt_tokens=4096, context_tokens=8192))


def evaluated(
    prompt_tokens: int,
    prefix_tokens: int,
    sequences: int,
    context: int,
    evaluator: Evaluator = EVALUATOR,
    layout: Parallelism = LAYOUT,
) -> float:
    def one(value: int) -> np.ndarray:
        return np.array([value])

    shape = StepShape(
        Layouts.of([layout]),
        one(int(prompt_tokens > 0)),
        one(prompt_tokens),
        one(prefix_tokens),
        one(sequences),
        one(context),
    )
    return float(evaluator.step(shape).latency_ms[0])


@pytest.mark.parametrize(
    ("prompt_tokens", "prefix_tokens", "sequences", "context"),
    [
        (1024, 0, 0, 0),
        (4096, 0, 0, 0),
        (2048, 2048, 0, 0),
        (0, 0, 1, 1000),
        (0, 0, 64, 500),
        (0, 0, 128, 6000),
        (512, 0, 64, 2000),
        (1000, 3000, 17, 777),
    ],
)
def test_an_iteration_is_what_the_evaluator_says(
    prompt_tokens: int, prefix_tokens: int, sequences: int, context: int
) -> None:
    tabled = COSTS.iteration_ms(prompt_tokens, prefix_tokens, sequences, sequences * context)
    assert tabled == pytest.approx(evaluated(prompt_tokens, prefix_tokens, sequences, context), rel=0.035)


@pytest.mark.parametrize("context", [700, 1500, 2047, 2500, 3000, 7000])
def test_contexts_beyond_a_window_take_no_more_and_no_less(context: int) -> None:
    """Attention to a context beyond the window takes the time of a full window."""
    model = dense_model(layers=16, window=2047)
    evaluator = Evaluator(model, accelerator(), WorkSource(), Precision("bf16", "bf16"))
    reach = Range(sequences=128, prompt_tokens=4096, context_tokens=8192)
    grids = step_grids(evaluator, [LAYOUT, LAYOUT], reach)
    times = IterationTimes(grids, Lengths(context, 0.0, 1e-9), 4096.0, layouts=np.array([1]))
    for sequences in (3, 64, 128):
        wanted = pytest.approx(evaluated(0, 0, sequences, context, evaluator), rel=1e-3)
        assert times.decode_ms(np.array([float(sequences)]))[0] == wanted


@pytest.mark.parametrize(
    ("model", "limits"),
    [
        ("llama3-8b", ()),
        ("microsoft/Phi-3-mini-4k-instruct", (2047,)),
        ("gpt-oss-20b", (128,)),
        ("deepseek-ai/DeepSeek-V3.2", (2048,)),
        ("deepseek-ai/DeepSeek-V4-Flash", (128, 2048)),
        ("MiniMaxAI/MiniMax-M3", (2048,)),
    ],
)
def test_layers_attend_to_no_more_than_their_limits(model: str, limits: tuple[int, ...]) -> None:
    assert load_architecture(model, Path()).attended_limits == limits


def test_chunks_of_a_prompt_add_up_to_its_attention() -> None:
    blocks = 4096 // PROMPT_GRAIN_TOKENS
    assert 0.0 <= COSTS.prompt_ms[0] < COSTS.prompt_ms[1]
    assert np.diff(COSTS.prompt_ms).min() >= 0
    assert len(COSTS.prompt_ms) == 8192 // PROMPT_GRAIN_TOKENS + 1
    # The second half of a prompt looks back over the first as well; launches and the cache that is read and
    # written keep it below three times the first.
    half = COSTS.prompt_ms[blocks // 2]
    assert 1.5 < (COSTS.prompt_ms[blocks] - half) / half < 3.0


def test_tables_reach_as_far_as_was_asked() -> None:
    assert (COSTS.most_sequences, COSTS.most_tokens) == (128, 4096 + 128)


@pytest.mark.parametrize(
    ("prompt_tokens", "prefix_tokens"),
    [(500, 0), (1, 1000), (300, 6000), (1, 12_000), (60, 12_000), (1000, 12_000)],
)
@pytest.mark.parametrize(
    ("part", "off"), [("MI300X", 0.03), pytest.param("H200-SXM", 0.08, marks=needs_tables)]
)
def test_latent_attention_rebuilds_and_reads_the_prefix_of_each_prompt(
    part: str, off: float, prompt_tokens: int, prefix_tokens: int
) -> None:
    """A prompt after a prefix takes the time of its step under latent attention.

    Tables take a prompt after a prefix as a whole one with as many pairs of queries and keys.
    """
    precision, layout = Precision("bf16", "bf16"), Parallelism(1, 1, 1, 1, 1)
    evaluator = build_evaluator("deepseek-v2-lite", accelerators()[part], "vllm", precision, Path())
    reach = Range(64, 2048, 16_384)
    alone = evaluated(prompt_tokens, prefix_tokens, 0, 0, evaluator, layout)
    costs = step_costs(evaluator, layout, reach)
    assert costs.iteration_ms(prompt_tokens, prefix_tokens, 0, 0.0) == pytest.approx(alone, rel=off)
    times = IterationTimes(
        step_grids(evaluator, [layout], reach), Lengths(prompt_tokens, prefix_tokens, 10.0), 2048
    )
    one, none = np.array([float(prompt_tokens)]), np.zeros(1)
    assert times.prompts_ms(one, none)[0] == pytest.approx(alone, rel=off)


@pytest.mark.parametrize(("prompt_tokens", "prefix_tokens"), [(200, 0), (200, 20_000), (4000, 20_000)])
@pytest.mark.parametrize("part", ["MI300X", pytest.param("H100-SXM", marks=needs_tables)])
def test_a_prompt_after_a_prefix_takes_as_long_in_a_replay_as_in_a_step(
    part: str, prompt_tokens: int, prefix_tokens: int
) -> None:
    """A replay prices a prompt after a prefix as a step does, by as many pairs of queries and keys."""
    precision, layout = Precision("bf16", "bf16"), Parallelism(1, 1, 1, 1, 1)
    evaluator = build_evaluator("llama3-8b", accelerators()[part], "vllm", precision, Path())
    alone = evaluated(prompt_tokens, prefix_tokens, 0, 0, evaluator, layout)
    costs = step_costs(evaluator, layout, Range(64, 4096, 32_768))
    assert costs.iteration_ms(prompt_tokens, prefix_tokens, 0, 0.0) == pytest.approx(alone, rel=0.02)


@pytest.mark.parametrize("model", ["nvidia/Nemotron-H-56B-Base-8K", "gemma3-1b"])
def test_short_prompts_leave_a_state_and_need_logits_each(model: str) -> None:
    """Each short prompt pays for a recurrent state and logits of its own."""
    layout, count = Parallelism(1, 4, 1, 4, 1), 512
    evaluator = build_evaluator(model, accelerators()["MI300X"], "vllm", Precision("bf16", "bf16"), Path())
    grids = step_grids(evaluator, [layout], Range(count, 4096, 16_384))
    prompts, none = np.array([count]), np.array([0])
    for tokens, most in ((1, 1.01), (4, 1.4)):
        shape = StepShape(Layouts.of([layout]), prompts, np.array([tokens]), none, none, none)
        together_ms = evaluator.step(shape).latency_ms[0]
        times = IterationTimes(grids, Lengths(tokens, 0.0, 1.0), 4096.0)
        # Prompts of some tokens are taken to launch their kernels each.
        found_ms = times.prompts_ms(np.array([float(count * tokens)]), np.zeros(1))[0]
        assert 0.99 <= found_ms / together_ms <= most


@needs_tables
@pytest.mark.parametrize("context", [1, 30, 100])
def test_short_contexts_take_no_less_than_their_kernels(context: int) -> None:
    """Decoding of short contexts takes at least the time of its kernels."""
    precision, layout = Precision("fp8", "bf16"), Parallelism(1, 1, 1, 1, 1)
    evaluator = build_evaluator("Qwen/Qwen2-7B", accelerators()["H100-SXM"], "trtllm", precision, Path())
    times = IterationTimes(
        step_grids(evaluator, [layout], Range(512, 4096, 16_384)), Lengths(context, 0.0, 1e-9), 4096.0
    )
    for sequences in (128, 256, 512):
        step_ms = evaluated(0, 0, sequences, context, evaluator, layout)
        assert times.decode_ms(np.array([float(sequences)]))[0] >= 0.96 * step_ms
