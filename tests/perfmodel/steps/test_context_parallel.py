"""Context parallelism: who computes, sends and keeps what, by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import (
    WorkSource,
    accelerator,
    configurations,
    dense_model,
    layouts,
    mixture_model,
    whole,
)
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import ExpertRouting, Precision, Techniques
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import (
    GridBlock,
    LatencyTarget,
    Option,
    Points,
    RequestShape,
    SearchSpace,
    SweepSpace,
    layout_problem,
    point_table,
    points_of,
    search_layouts,
    service_landscape,
    sweep,
)
from fleetplan.perfmodel.operators import attended_pairs
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps import decode_shape, prefill_shape

BF16 = Precision("bf16", "bf16")


def test_a_prompt_is_shared_out_and_its_cache_goes_around_the_ring() -> None:
    shape = prefill_shape(configurations(("TP2CP4-TP8",), (2,), input_tokens=4096, prefix_tokens=1024))
    found = operators(dense_model(layers=4), shape)
    # 1024 of 4096 tokens of each of two prompts; the prefix makes up for the tokens of the other ranks.
    assert row(found["qkv_projection"])[0] == 2 * 1024
    assert row(found["prefill_attention"]) == (2, 1024, 1024 + 1536, 4, 1, 64, 0)
    # A rank's part of the cache: (4096 + 1024) / 4 tokens of one key-value head, keys and values in BF16.
    assert row(found["ring_send"]) == (2 * 1280 * 2 * 64 * 2, 2 * 3)
    assert found["ring_send"].count.tolist() == [4 * 3.0]
    # The dense block sees all tokens of the stage: its ranks gather them.
    assert row(found["ffn_gate_up"])[0] == 2 * 4096
    assert row(found["ffn_token_gather"]) == (2 * 4096 * 512 * 2, 4, 2)
    assert not {name for name in found if name.startswith("context_")}


def test_the_ranks_see_as_many_pairs_as_the_prompt_has() -> None:
    shape = prefill_shape(configurations(("TP2CP4-TP8",), (1,), input_tokens=4096, prefix_tokens=1024))
    none = whole(0)
    each = attended_pairs(shape.local_new_tokens, shape.local_prefix_tokens, none)
    together = attended_pairs(shape.new_tokens, shape.prefix_tokens, none)
    assert 4 * each[0] == pytest.approx(together[0], rel=1e-3)


def test_generated_tokens_attend_to_a_share_of_the_cache_each() -> None:
    shape = decode_shape(configurations(("TP2CP4-TP8",), (16,), context_tokens=1000))
    found = operators(dense_model(layers=4), shape)
    assert row(found["qkv_projection"])[0] == 16
    assert row(found["decode_attention"]) == (16, 250, 4, 1, 64, 0)
    assert row(found["context_all_reduce"]) == (16 * 4 * 64 * 2, 4, 2)
    assert row(found["context_all_gather"]) == (16 * 512 * 2, 4, 2)
    assert row(found["ffn_gate_up"])[0] == 16
    assert "ring_send" not in found


def test_a_window_is_not_shared_out() -> None:
    shape = decode_shape(configurations(("CP2-TP2",), (16,), context_tokens=1000))
    found = operators(dense_model(window=128), shape)
    assert row(found["decode_attention"])[1] == 1000


def test_cache_is_shared_out_and_attention_weights_are_not() -> None:
    evaluator = Evaluator(dense_model(), accelerator(), WorkSource(), BF16)
    memory = evaluator.decode_memory(configurations(("TP2", "TP2CP4-TP8"), (16, 16), context_tokens=4025))
    assert memory.kv_gib[0] == pytest.approx(4 * memory.kv_gib[1])
    wide = evaluator.decode_memory(configurations(("TP2DP4-TP8",), (16,), context_tokens=4025))
    assert memory.weights_gib[1] == pytest.approx(wide.weights_gib[0])


def test_long_prompts_gain_and_one_rank_changes_nothing() -> None:
    evaluator = Evaluator(dense_model(), accelerator(), WorkSource(), BF16)
    found = evaluator.prefill(configurations(("TP1", "CP8-TP8"), (1, 1), input_tokens=131072))
    assert found.ttft_ms[1] < found.ttft_ms[0] / 4
    whole_shape = prefill_shape(configurations(("TP4",), (2,)))
    assert whole_shape.local_tokens is not None
    assert np.array_equal(whole_shape.local_tokens, whole_shape.rank_tokens)
    assert layouts("TP4").token_ranks.tolist() == [1]


def test_search_tries_the_degrees_it_is_given() -> None:
    space = SearchSpace(context_ranks=(1, 2))
    found = {layout.label for layout in search_layouts(dense_model(), accelerator(), space)}
    assert {"TP8", "TP4CP2-TP8", "TP4CP2-TP4EP2", "TP2DP2CP2-TP8"} <= found
    assert not {label for label in found if "CP4" in label}


def test_recurrent_layers_have_no_context_to_share() -> None:
    model = load_architecture("Qwen/Qwen3.5-27B", Path())
    problem = layout_problem(model, parse_parallelism("TP2CP2-TP4"), accelerator())
    assert problem == "cp 2 splits a context, but recurrent layers have a state instead"


def test_redundant_experts_fill_a_pod_of_72() -> None:
    model = load_architecture("deepseek-ai/DeepSeek-V3", Path())
    assert layout_problem(model, parse_parallelism("DP72-EP72"), accelerator(scale_up_accelerators=72)) == ""
    found = operators(model, decode_shape(configurations(("DP72-EP72", "DP64-EP64"), (16, 16))))
    # 256 experts on 72 accelerators: four each, 288 in all; on 64 they are exactly four each.
    assert found["routed_experts"].dims["experts"].tolist() == [288, 256]
    # A load balancer places 32 copies on 72 accelerators at no further cost, and needs a fifth place on 64.
    batch = configurations(("DP72-EP72", "DP64-EP64"), (16, 16))
    balanced, alone = (
        Evaluator(
            model,
            accelerator(),
            WorkSource(),
            BF16,
            techniques=Techniques(experts=ExpertRouting(balance=balance)),
        )
        .decode_memory(batch)
        .weights_gib
        for balance in ("auto", "none")
    )
    assert balanced[0] == pytest.approx(alone[0])
    assert alone[0] == pytest.approx(alone[1])
    per_layer = 3 * 7168 * 2048 * 2 / 2**30
    assert balanced[1] - alone[1] == pytest.approx(58 * per_layer)
    assert operators(mixture_model(), decode_shape(configurations(("DP4-EP4",), (16,))))[
        "routed_experts"
    ].dims["experts"].tolist() == [16]


def test_a_row_of_cases_may_ask_for_it() -> None:
    row_of_cases = {
        "case_id": "a",
        "model": "deepseek-r1",
        "hardware": "H200-SXM",
        "weights": "fp8",
        "mode": "prefill",
        "tp": 8,
        "input_tokens": 131072,
        "batch": 1,
    }
    # vLLM runs it for latent attention alone, and shares experts out among all ranks.
    found = predict(pd.DataFrame([{**row_of_cases, "cp": cp, "ep": 8 * cp} for cp in (1, 2)]), Path())
    assert found["status"].tolist() == ["ok", "ok"]
    alone, shared = found["ttft_ms"]
    assert alone / 2 < shared < alone / 1.5


def test_tables_of_a_landscape_say_the_degree() -> None:
    part = accelerators()["MI300X"]
    own = build_evaluator("llama3.1-8b", part, "vllm", Precision("bf16", "bf16"), Path())
    tried = SearchSpace(max_accelerators=4, prefill_batches=(1,), decode_batches=(8,), context_ranks=(1, 2))
    requests = (RequestShape(4000, 100),)
    space = SweepSpace((Option("MI300X", own, None, None),), requests, LatencyTarget(None, None), tried)
    blocks: list[GridBlock] = []
    sweep(space, blocks.append, threads=1)
    points = Points.concatenated([points_of(block, np.arange(block.excluded.size)) for block in blocks])
    for table in (
        point_table(points, space, ("all",)),
        service_landscape(own, requests[0], space.target, tried).table,
    ):
        assert set(table["cp"]) == {1, 2}
        assert (table["cp"] > 1).tolist() == table["parallelism"].str.contains("CP").tolist()
