from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import CountingSource, accelerator, configurations, dense_model, whole

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import Operator, OperatorKind, Provenance
from fleetplan.perfmodel.optables import OperatorTimes
from fleetplan.perfmodel.steps import decode_shape, provenance_shares, step_times, weakest_provenance
from fleetplan.perfmodel.steps.latency import OVERHEAD_NAME

BF16 = Precision("bf16", "bf16")


def test_a_measured_step_is_the_sum_of_its_operators() -> None:
    # 4 layers of two norms, three GEMMs more than the output projection, attention and an activation:
    # norm, qkv, attention, output, norm, gate-up, activation, down = 8; embedding, norm and head = 3.
    evaluator = Evaluator(dense_model(layers=4), accelerator(), CountingSource(), BF16)
    times = evaluator.step(decode_shape(configurations(("TP1",), (1,))))
    assert times.latency_ms == pytest.approx([(4 * 8 + 3) * 1e-3])
    assert times.breakdown_ms.sum(axis=0) == pytest.approx(times.latency_ms)
    assert OVERHEAD_NAME not in times.names


def test_layer_overhead_counts_where_the_roofline_prices_the_kernels() -> None:
    source = CountingSource(Provenance.ROOFLINE)
    evaluator = Evaluator(dense_model(layers=4), accelerator(), source, BF16)
    times = evaluator.step(decode_shape(configurations(("TP1", "PP4"), (1, 1))))
    overhead = times.breakdown_ms[times.names.index(OVERHEAD_NAME)]
    # 50 us a layer of five kernels, over all stages; the head is a kernel more.
    assert overhead == pytest.approx([0.21, 0.21])
    assert times.names[times.bottleneck[0]] == OVERHEAD_NAME


def test_layers_of_more_kernels_wait_longer() -> None:
    source = CountingSource(Provenance.ROOFLINE)
    one = configurations(("TP1",), (1,))
    plain, latent = (
        Evaluator(load_architecture(name, Path()), accelerator(), source, BF16).step(decode_shape(one))
        for name in ("meta-llama/Llama-3.1-70B", "deepseek-ai/DeepSeek-R1")
    )
    overhead = [
        float(times.breakdown_ms[times.names.index(OVERHEAD_NAME), 0] / 0.050 * 5)
        for times in (plain, latent)
    ]
    assert overhead[0] == pytest.approx(80 * 5 + 1)
    # Latent attention is six kernels; three dense layers add two, the others a router, two grouped products
    # and the two of the shared expert.
    assert overhead[1] == pytest.approx(61 * 6 + 3 * 2 + 58 * 5 + 1)


def test_an_operator_that_does_not_run_takes_no_time_even_where_it_could_not() -> None:
    class NoNetwork:
        def times(self, kind: OperatorKind, dtype: str, dims: object) -> OperatorTimes:
            return OperatorTimes.labelled(np.array([np.inf, 1.0]), Provenance.ROOFLINE)

    operator = Operator(
        "send",
        OperatorKind.SEND_RECV,
        "bf16",
        {"message_bytes": whole(1, 1), "stride": whole(9, 1)},
        np.array([0.0, 2.0]),
    )
    times = step_times([operator], NoNetwork(), accelerator())
    assert times.latency_ms.tolist() == [0.0, 2.0]


def test_a_step_without_operators_is_a_bug() -> None:
    with pytest.raises(ValueError, match="at least one operator"):
        step_times([], CountingSource(), accelerator())


def test_label_is_the_weakest_evidence_that_holds_a_tenth() -> None:
    by_provenance = np.array([[90.0, 91.0, 0.0], [0.0, 0.0, 0.0], [0.0, 9.0, 100.0], [10.0, 0.0, 0.0]])
    shares = provenance_shares(by_provenance)
    assert shares.sum(axis=0) == pytest.approx([1.0, 1.0, 1.0])
    assert weakest_provenance(shares).tolist() == [
        Provenance.ROOFLINE,
        Provenance.MEASURED,
        Provenance.EXTRAPOLATED,
    ]


def test_times_that_are_not_finite_rest_on_nothing() -> None:
    shares = provenance_shares(np.array([[np.inf], [1.0], [0.0], [0.0]]))
    assert shares.sum() == 0.0
    assert weakest_provenance(shares).tolist() == [Provenance.ROOFLINE]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = CountingSource()
    evaluator = Evaluator(dense_model(), accelerator(), source, BF16)
    shape = decode_shape(configurations(("TP1", "PP2", "TP4", "PP2-TP2", "TP1"), (1, 2, 3, 4, 5)))
    together = evaluator.step(shape)
    monkeypatch.setattr("fleetplan.perfmodel.evaluator.step.CHUNK_CONFIGURATIONS", 2)
    apart = evaluator.step(shape)
    assert apart.latency_ms.tolist() == together.latency_ms.tolist()
    for name in together.names:
        left = apart.breakdown_ms[apart.names.index(name)]
        assert left.tolist() == together.breakdown_ms[together.names.index(name)].tolist()
