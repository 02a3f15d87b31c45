"""Steps that share look-ups have the times that each has alone, and ask every table once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, mixture_model

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.landscape import RequestShape
from fleetplan.perfmodel.landscape.grid import full_grid
from fleetplan.perfmodel.operators import IntArray, OperatorKind
from fleetplan.perfmodel.optables import OperatorTimes, UnsupportedDtype
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.steps import StepShape, decode_shape, prefill_shape
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups

LAYOUTS = (Parallelism(1, 1, 1, 1, 1), Parallelism(1, 2, 1, 2, 1), Parallelism(2, 4, 1, 4, 1))
REQUESTS = (RequestShape(3000, 150), RequestShape(700, 20))


class ListingSource(WorkSource):
    """Source that records the tables it is asked for, and has none for one data type."""

    def __init__(self, lacking: str = "") -> None:
        self.lacking = lacking
        self.asked: list[tuple[OperatorKind, str]] = []

    def times(self, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> OperatorTimes:
        self.asked.append((kind, dtype))
        if dtype == self.lacking:
            raise UnsupportedDtype("part", dtype)
        return super().times(kind, dtype, dims)


def evaluators(source: ListingSource) -> list[Evaluator]:
    models = (dense_model(), mixture_model(shared=256))
    precisions = (Precision("bf16", "bf16"), Precision("fp8", "fp8"))
    return [Evaluator(model, accelerator(), source, each) for model in models for each in precisions]


def shapes() -> list[StepShape]:
    configurations = full_grid(LAYOUTS, (1, 7, 64), REQUESTS)
    return [prefill_shape(configurations), decode_shape(configurations)]


def test_shared_lookups_change_no_time_and_ask_a_table_once() -> None:
    source = ListingSource()
    lookups = SharedLookups()
    pairs = [(own, own.asked_step(shape, lookups)) for own in evaluators(source) for shape in shapes()]
    assert not source.asked
    found = [own.time_of(asked).latency_ms for own, asked in pairs]
    assert len(source.asked) == len(set(source.asked)) > 5
    for (own, asked), latency_ms in zip(pairs, found, strict=True):
        np.testing.assert_array_equal(latency_ms, own.step(asked.shape).latency_ms)


def test_a_step_that_cannot_run_leaves_the_others_their_times() -> None:
    source = ListingSource(lacking="fp8")
    lookups = SharedLookups()
    (shape, _) = shapes()
    pairs = [(own, own.asked_step(shape, lookups)) for own in evaluators(source)]
    for own, asked in pairs:
        if own.precision.weights == "fp8":
            with pytest.raises(UnsupportedDtype):
                own.time_of(asked)
        else:
            assert np.isfinite(own.time_of(asked).latency_ms).all()
    assert len(source.asked) == len(set(source.asked))
