"""Evidence of rows comes from the steps of their block, without another look-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, mixture_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import KvTier, PersistentKv, Precision, SpeculativeDecoding, Techniques
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import (
    LatencyTarget,
    Option,
    RequestShape,
    SearchSpace,
    SweepSpace,
    evaluate_block,
    evidence_table,
    points_of,
    service_landscape,
    tasks_of,
)
from fleetplan.perfmodel.landscape.blocks import ask_block
from fleetplan.perfmodel.landscape.reasons import USABLE
from fleetplan.perfmodel.landscape.tables import evidence_columns
from fleetplan.perfmodel.operators import IntArray, OperatorKind
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.serving import default_scheduling
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups

REQUESTS = (RequestShape(3000, 150, 8192), RequestShape(300, 20))
SHORT = (RequestShape(100, 350, 8000),)
SPACE = SearchSpace(runtimes=("disaggregated",), max_accelerators=8, decode_batches=(1, 7, 56, 640))
TARGET = LatencyTarget(ttft_ms=4000.0, tpot_ms=60.0)
SESSIONS = PersistentKv(0.8, 20.0, (KvTier("hbm", 4.0, None), KvTier("dram", 100.0, 20.0)))


class CallCountingSource(WorkSource):
    """Counts the look-ups of tables."""

    def __init__(self) -> None:
        self.calls = 0

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        self.calls += 1
        return super().times(kind, dtype, dims)


TECHNIQUES = {
    "none": Techniques(),
    "chunks": Techniques(chunk_tokens=512),
    "draft": Techniques(speculative=SpeculativeDecoding(2, 0.7, 0.05), samples_per_prompt=2),
    "sessions": Techniques(persistent_kv=SESSIONS, chunk_tokens=1024),
    "single-batch": Techniques(expert_overlap="single-batch"),
    "two-batch": Techniques(expert_overlap="two-batch"),
}
ENGINES = (
    "MI300X deepseek-ai/DeepSeek-V3 sglang fp8",
    "B200-SXM Qwen/Qwen3-30B-A3B vllm fp8",
    "H100-SXM llama3-70b sglang fp8",
    # The host keeps short prompts waiting whose session is found, but not those that are computed again.
    "A100-SXM-40GB mistralai/Mistral-7B-v0.3 sglang mxfp4",
)
"""Two with experts, which overlaps act on; `make test` has each technique on one of them, in this order."""


@pytest.mark.parametrize(("technique", "engine"), each_once(TECHNIQUES, ENGINES))
def test_rows_rest_on_what_they_do_when_they_are_evaluated_alone(technique: str, engine: str) -> None:
    hardware, model, framework, weights = engine.split()
    part = accelerators()[hardware]
    own = build_evaluator(model, part, framework, Precision(weights, "bf16"), Path(), TECHNIQUES[technique])
    option = Option("", own, None, None, framework, default_scheduling(framework, part))
    compared = 0
    for requests in (REQUESTS, SHORT):
        compared += _compared_rows(SweepSpace((option,), requests, TARGET, SPACE))
    assert compared


def _compared_rows(space: SweepSpace) -> int:
    """Compare the evidence of every usable row of a space; return how many there are."""
    (option,) = space.options
    compared = 0
    for task in tasks_of(space):
        block = evaluate_block(option, task.place, task.axes, TARGET, noting=True)
        rows = np.flatnonzero(block.excluded == USABLE)
        assert block.steps is not None
        layout, batch, request = np.unravel_index(rows, block.excluded.shape)
        steps = block.steps.details((layout, batch, request))
        points = points_of(block, rows)
        alone = evidence_table(points, space)
        for name, values in evidence_columns(points, space, steps=steps).items():
            assert (values == alone[name].to_numpy()).all(), name
        compared += rows.size
    return compared


@pytest.mark.parametrize("model", [dense_model(), mixture_model(shared=256)], ids=["dense", "mixture"])
def test_nothing_is_looked_up_again_for_what_rows_rest_on(model) -> None:  # type: ignore[no-untyped-def]
    source = CallCountingSource()
    own = Evaluator(model, accelerator(), source, Precision("bf16", "bf16"))
    space = SweepSpace((Option("", own, None, None),), REQUESTS[:1], LatencyTarget(), SPACE)
    lookups = SharedLookups()
    asked = [ask_block(space.options[0], task.place, task.axes, lookups) for task in tasks_of(space)]
    for block in asked:
        block.evaluated(space.target)
    in_blocks, source.calls = source.calls, 0
    table = service_landscape(own, REQUESTS[0], LatencyTarget(), SPACE).table
    assert (table["excluded"] == "").any()
    assert source.calls == in_blocks


def test_blocks_of_sweeps_keep_no_steps() -> None:
    own = Evaluator(dense_model(), accelerator(), WorkSource(), Precision("bf16", "bf16"))
    space = SweepSpace(
        (Option("", own, None, None),), REQUESTS, TARGET, replace(SPACE, runtimes=("aggregated",))
    )
    for noting in (False, True):
        for task in tasks_of(space):
            block = evaluate_block(space.options[0], task.place, task.axes, TARGET, noting=noting)
            # Aggregated rows rest on the iterations of their loops.
            assert block.steps is None
    (task, *_) = tasks_of(replace(space, search=SPACE))
    assert evaluate_block(space.options[0], task.place, task.axes, TARGET).steps is None
