"""Parts without HBM: weights resident over pipelines of hundreds of chips with synchronous links."""

from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, dense_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import SearchSpace, search_layouts
from fleetplan.perfmodel.landscape.search_space import default_max_accelerators
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Layouts

LPU = accelerators()["LPU-v1"]
INT8 = Precision("int8", "bf16")


@pytest.fixture(scope="module")
def llama() -> Evaluator:
    return build_evaluator("llama2-70b", LPU, "vllm", INT8, Path())


def test_a_70b_decoder_needs_hundreds_of_chips(llama: Evaluator) -> None:
    layouts = search_layouts(llama.architecture, LPU, SearchSpace())
    labels = tuple(layout.label for layout in layouts)
    memory = llama.decode_memory(configurations(labels, (1,) * len(labels), context_tokens=500))
    smallest = min(layout.accelerators for layout, fits in zip(layouts, memory.fits, strict=True) if fits)
    # 69 GB of weights in INT8, of which embedding and head are in BF16, in 230.7 MB a chip: 300 at least.
    assert 300 < smallest <= 640
    assert max(layout.pp for layout in layouts) == 80
    assert {layout.pp for layout in layouts} <= {1, 2, 4, 5, 8, 10, 16, 20, 40, 80}


def test_a_compiler_places_every_matrix_and_keeps_nothing_back(llama: Evaluator) -> None:
    memory = llama.decode_memory(configurations(("PP80-TP8",), (1,)))
    matrices = llama.architecture.weight_count()
    bytes_in_all = matrices.layers * 1.0 + 2.0 * (matrices.embedding + matrices.head)
    # All query heads are shared out; 8 key-value heads too: nothing is held twice.
    assert memory.weights_gib[0] == pytest.approx(bytes_in_all / 640 / 2**30)
    assert memory.reserve_gib == 0.0
    assert memory.communication_gib.tolist() == [0.0]


def test_a_long_pipeline_generates_hundreds_of_tokens_a_second(llama: Evaluator) -> None:
    found = llama.decode(configurations(("PP80-TP8",), (1,), context_tokens=2048))
    # Published: 300 tokens a second for this model (TechPowerUp, 2024); nothing was fitted on it.
    assert 1.0 < found.tpot_ms[0] < 4.0
    assert found.memory.fits.tolist() == [True]
    assert found.shares[3].tolist() == [1.0]


def test_a_type_that_the_part_lacks_is_refused_by_name() -> None:
    evaluator = build_evaluator("llama2-70b", LPU, "vllm", Precision("fp8", "bf16"), Path())
    with pytest.raises(UnsupportedDtype, match="LPU-v1 has no matrix units for fp8"):
        evaluator.decode(configurations(("PP80-TP8",), (1,)))


def test_memory_of_other_parts_is_as_before() -> None:
    assert default_max_accelerators(LPU) == 1024
    assert default_max_accelerators(accelerator()) == 16
    evaluator = Evaluator(dense_model(), accelerator(), WorkSource(), Precision("bf16", "bf16"))
    memory = evaluator.decode_memory(configurations(("PP2-TP2",), (1,)))
    assert memory.reserve_gib == pytest.approx(8.0)
    assert np.array_equal(Layouts.of([]).accelerators, np.zeros(0, dtype=np.int64))
