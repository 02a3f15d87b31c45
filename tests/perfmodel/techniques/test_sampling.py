"""Drawing tokens from the most likely ones: its cost, where it is known, and its switch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.perfmodel.fakes import accelerator, configurations, whole

from fleetplan.fleet.inventory import Precision, Techniques
from fleetplan.fleet.units import NS_PER_MS
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, Provenance, work
from fleetplan.perfmodel.optables import OperatorSource
from fleetplan.perfmodel.optables.formulas.token_sampling import (
    SAMPLING_NS_PER_LOGIT,
    SORTED_NS_PER_LOGIT,
    TRITON_NS_PER_LOGIT,
)
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps import decode_shape, mixed_shape
from fleetplan.perfmodel.techniques.sampling import sampling_operators, sampling_problem

DRAWN = Techniques(sampling="top-p")


def evaluator(framework: str, techniques: Techniques) -> Evaluator:
    part = accelerator(hbm_gib=180.0)
    model = load_architecture("meta-llama/Llama-3.1-70B", Path())
    source = OperatorSource(part, framework, None)
    return Evaluator(model, part, source, Precision("fp8", "bf16"), techniques=techniques)


@pytest.mark.parametrize("framework", sorted(SAMPLING_NS_PER_LOGIT))
def test_drawing_costs_as_much_for_every_sequence_whatever_the_parallelism(framework: str) -> None:
    shape = decode_shape(configurations(("TP1", "TP8", "TP8"), (16, 16, 32)))
    greedy, drawn = (evaluator(framework, each).step(shape) for each in (Techniques(), DRAWN))
    each_ms = 128_256 * SAMPLING_NS_PER_LOGIT[framework] / 1e6
    assert drawn.latency_ms - greedy.latency_ms == pytest.approx([16 * each_ms, 16 * each_ms, 32 * each_ms])
    assert drawn.by_provenance_ms[Provenance.ROOFLINE].sum() > greedy.by_provenance_ms.sum()


def test_vllm_draws_as_fast_as_it_was_measured() -> None:
    source = evaluator("vllm", DRAWN).source
    found = source.times(OperatorKind.TOKEN_SAMPLING, "bf16", {"rows": whole(128), "vocab": whole(131_072)})
    assert found.latency_ms == pytest.approx([0.267], rel=2e-3)
    # Sorting, until March 2026, and the Triton kernels that came then.
    assert pytest.approx(57.59, rel=1e-3) == 2048 * 131_072 * SORTED_NS_PER_LOGIT / NS_PER_MS
    assert pytest.approx(2.013, rel=2e-3) == 512 * 131_072 * TRITON_NS_PER_LOGIT / NS_PER_MS


def test_prompts_draw_their_first_token() -> None:
    one = configurations(("TP1",), (16,))
    shape = mixed_shape(one, whole(3))
    (operator,) = sampling_operators(1000, shape, DRAWN)
    assert operator.dims["rows"].tolist() == [19]
    assert operator.dims["vocab"].tolist() == [1000]
    assert operator.count.tolist() == [1.0]
    assert work(operator.kind, operator.dtype, operator.dims).activation_bytes.tolist() == [2 * 19_000.0]
    assert not list(sampling_operators(1000, shape, Techniques()))


def test_a_framework_without_figures_is_refused() -> None:
    assert sampling_problem("sglang", DRAWN) == ""
    assert sampling_problem("trtllm", Techniques()) == ""
    assert "known for sglang and vllm only, not for trtllm" in sampling_problem("trtllm", DRAWN)


def test_predict_takes_the_switch() -> None:
    case = {
        "case_id": "a",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "hardware": "MI300X",
        "backend": "vllm",
        "weights": "fp8",
        "mode": "decode",
        "tp": 1,
        "input_tokens": 1000,
        "output_tokens": 100,
        "batch": 64,
    }
    rows = [
        case,
        case | {"sampling": "top-p"},
        case | {"sampling": "greedy"},
        case | {"sampling": "beam"},
        case | {"sampling": "top-p", "backend": "trtllm"},
    ]
    found = predict(pd.DataFrame(rows), Path())
    assert found["status"].tolist() == ["ok", "ok", "ok", "rejected", "rejected"]
    more_ms = 64 * 128_256 * SAMPLING_NS_PER_LOGIT["vllm"] / 1e6
    assert found["tpot_ms"][1] - found["tpot_ms"][0] == pytest.approx(more_ms)
    assert found["tpot_ms"][2] == found["tpot_ms"][0]
    assert "'beam' is not known" in found["reason"][3]
    assert "not for trtllm" in found["reason"][4]
    assert replace(DRAWN, sampling="greedy") == Techniques()
