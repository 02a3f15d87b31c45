from pathlib import Path

import pytest

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import MoeFfn, load_architecture
from fleetplan.perfmodel.steps import part_dtypes
from fleetplan.perfmodel.steps.merged_experts import merged_experts


@pytest.mark.parametrize(("weights", "experts"), [("fp8", 257), ("int4", 256)])
def test_shared_experts_of_deepseek_join_the_routed_ones_of_their_type(weights: str, experts: int) -> None:
    plain = load_architecture("deepseek-ai/DeepSeek-R1", Path())
    merged = merged_experts(plain, part_dtypes(plain, Precision(weights, "bf16")))
    (ffn,) = {group.ffn for group in merged.groups if isinstance(group.ffn, MoeFfn)}
    assert ffn.experts == experts
    assert ffn.top_k == experts - 248
    (before,) = {group.ffn for group in plain.groups if isinstance(group.ffn, MoeFfn)}
    weights_before = before.routed_weights(7168) + before.shared_weights(7168)
    assert ffn.routed_weights(7168) + ffn.shared_weights(7168) == weights_before


def test_other_decoders_stay_as_they_are() -> None:
    plain = load_architecture("llama4-maverick", Path())
    assert merged_experts(plain, part_dtypes(plain, Precision("fp8", "bf16"))) == plain
