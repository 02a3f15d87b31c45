"""Answers of few tokens under continuous batching: classifiers, scoring, ranking."""

import itertools
from dataclasses import replace

import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, dense_model, whole

from fleetplan.fleet.inventory import Precision, Techniques
from fleetplan.perfmodel.evaluator import Evaluator


def evaluator(chunk_tokens: int | None) -> Evaluator:
    techniques = Techniques(chunk_tokens=chunk_tokens)
    return Evaluator(
        dense_model(), accelerator(), WorkSource(), Precision("bf16", "bf16"), techniques=techniques
    )


@pytest.mark.parametrize("chunk_tokens", [None, 512])
def test_the_first_token_is_paid_once(chunk_tokens: int | None) -> None:
    one = evaluator(chunk_tokens)
    for batch in (1, 8, 64):
        single = configurations(("TP1",), (batch,), input_tokens=512, output_tokens=1)
        prompts = one.prefill(replace(single, batch=whole(1))).requests_per_s[0]
        assert one.aggregated(single).requests_per_s[0] >= 0.99 * prompts


@pytest.mark.parametrize(
    ("label", "chunk_tokens"),
    each_once(("TP1", "TP2DP2-TP4", "PP2-TP2"), (512, None), pytest.mark.more),
)
def test_fewer_tokens_never_serve_fewer_requests(chunk_tokens: int | None, label: str) -> None:
    outputs = [1, 2, 3, 4, 6, 8, 12, 16, 31, 32, 33, 64, 100, 128, 129, 256, 1024]
    for batch in (1, 7, 32, 256):
        rates = [
            evaluator(chunk_tokens)
            .aggregated(configurations((label,), (batch,), input_tokens=512, output_tokens=each))
            .requests_per_s[0]
            for each in outputs
        ]
        assert all(fewer >= 0.999999 * more for fewer, more in itertools.pairwise(rates)), (batch, rates)
