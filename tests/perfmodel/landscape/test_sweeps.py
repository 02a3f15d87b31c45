"""The sweep says what the landscape and the evaluator say, for far more configurations at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, mixture_model

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import (
    REASONS,
    GridBlock,
    LatencyTarget,
    Option,
    Points,
    RequestShape,
    SearchSpace,
    SweepResult,
    SweepSpace,
    evidence_table,
    pair_table,
    pareto_mask,
    point_table,
    points_of,
    search_layouts,
    service_landscape,
    sweep,
)
from fleetplan.perfmodel.operators import OperatorKind

BF16 = Precision("bf16", "bf16")
REQUESTS = (
    RequestShape(2048, 150, 8192),
    RequestShape(300, 20),
    RequestShape(300, 2000),
    RequestShape(5000, 7),
)
SPACE = SearchSpace(max_accelerators=8, prefill_batches=(1, 3, 8), decode_batches=(1, 7, 56, 640))
TARGET = LatencyTarget(ttft_ms=4000.0, tpot_ms=60.0)


def option(name: str, model: str = "llama3-70b", weights: str = "fp8", usd: float | None = 2.0) -> Option:
    evaluator = build_evaluator(model, accelerators()[name], "vllm", Precision(weights, "bf16"), Path())
    return Option(name, evaluator, usd, 1.3)


def all_points(space: SweepSpace, threads: int = 2) -> tuple[SweepResult, Points, np.ndarray]:
    blocks: list[GridBlock] = []
    result = sweep(space, blocks.append, threads)
    every = [points_of(block, np.arange(block.excluded.size)) for block in blocks]
    reasons = [np.array(REASONS, dtype=object)[block.excluded.ravel()] for block in blocks]
    return result, Points.concatenated(every), np.concatenate(reasons)


@pytest.mark.parametrize(
    ("hardware", "model", "weights"),
    [
        ("H200-SXM", "llama3-70b", "fp8"),
        pytest.param("GPU-A", "llama3-70b", "fp8-ffn", marks=pytest.mark.more),
        ("MI300X", "Qwen/Qwen3-235B-A22B", "fp8"),
        pytest.param("B200-SXM", "openai/gpt-oss-120b", "mxfp4", marks=pytest.mark.more),
    ],
)
def test_a_sweep_has_the_rows_of_the_landscape(hardware: str, model: str, weights: str) -> None:
    own = option(hardware, model, weights)
    _, points, reasons = all_points(SweepSpace((own,), REQUESTS, TARGET, SPACE))
    names = tuple(str(position) for position in range(len(REQUESTS)))
    swept = point_table(points, SweepSpace((own,), REQUESTS, TARGET, SPACE), names)
    swept["excluded"] = reasons
    for position, request in enumerate(REQUESTS):
        flat = service_landscape(own.evaluator, request, TARGET, SPACE).table
        flat = flat.set_index(["phase", "config"]).sort_index()
        mine = swept[swept["request"] == names[position]].set_index(["phase", "config"]).sort_index()
        assert flat.index.tolist() == mine.index.tolist()
        assert flat["excluded"].tolist() == mine["excluded"].tolist()
        usable = flat["excluded"].isin(["", "ttft", "tpot"])
        rate = flat["requests_per_s"] / flat["accelerators_per_replica"]
        for left, right in (
            (rate, mine["requests_per_s_per_accelerator"]),
            (flat["ttft_ms"], mine["ttft_ms"]),
            (flat["tpot_ms"], mine["tpot_ms"]),
            (flat["memory_gib_per_accelerator"], mine["memory_gib_per_accelerator"]),
        ):
            np.testing.assert_allclose(left[usable], right[usable], rtol=1e-9)


def test_every_row_has_a_number_and_threads_change_nothing() -> None:
    space = SweepSpace((option("H200-SXM"), option("MI300X")), REQUESTS, TARGET, SPACE)
    result, points, reasons = all_points(space, threads=2)
    alone, same, _ = all_points(space, threads=1)
    assert points.row.tolist() == list(range(result.configurations))
    assert sum(result.excluded.values()) == result.configurations
    for name in ("", "ttft"):
        counted = sum(count for key, count in result.excluded.items() if key[2] == name)
        assert counted == (reasons == name).sum()
    np.testing.assert_array_equal(points.requests_per_s_per_accelerator, same.requests_per_s_per_accelerator)
    assert result.excluded == alone.excluded
    assert result.frontier.row.tolist() == alone.frontier.row.tolist()


def test_the_frontier_is_that_of_all_usable_rows() -> None:
    cheap = option("MI300X", usd=1.0)
    space = SweepSpace((option("H200-SXM", usd=3.0), cheap), REQUESTS[:2], TARGET, SPACE)
    result, points, reasons = all_points(space)
    usable = points.take(reasons == "")
    expected = []
    for phase in ("prefill", "decode", "aggregated"):
        for request in range(2):
            rows = np.flatnonzero((usable.phase == phase) & (usable.request == request))
            expected += usable.row[rows[pareto_mask([column[rows] for column in usable.costs])]].tolist()
    assert sorted(result.frontier.row.tolist()) == sorted(expected)
    # The best by energy may lie behind the frontier, but never behind that of its own hardware.
    for name in ("kwh_per_million_tokens", "usd_per_million_tokens", "tpot_ms", "ttft_ms"):
        of_phase = usable.phase == ("prefill" if name == "ttft_ms" else "decode")
        kept = result.candidates.phase == ("prefill" if name == "ttft_ms" else "decode")
        assert getattr(result.candidates, name)[kept].min() == getattr(usable, name)[of_phase].min()


def test_cost_and_energy_by_hand() -> None:
    space = SweepSpace((option("H200-SXM", usd=3.6),), REQUESTS[1:2], TARGET, SPACE)
    points = sweep(space).candidates
    # 320 tokens a request; 3.6 USD and 1.3 kWh an hour.
    per_hour = points.requests_per_s_per_accelerator * 3600 * 320 / 1e6
    np.testing.assert_allclose(points.usd_per_million_tokens, 3.6 / per_hour)
    np.testing.assert_allclose(points.kwh_per_million_tokens, 1.3 / per_hour)
    priceless = sweep(replace(space, options=(replace(space.options[0], usd_per_accelerator_hour=None),)))
    assert np.isnan(priceless.candidates.usd_per_million_tokens).all()
    assert priceless.frontier.count == points.count


def test_pairs_of_phases_add_up() -> None:
    space = SweepSpace((option("H200-SXM"),), REQUESTS[:1], LatencyTarget(), SPACE)
    found = sweep(space).candidates
    prefill, decode = (found.take(found.phase == phase) for phase in ("prefill", "decode"))
    pairs = pair_table(prefill, decode, space, ("all",))
    assert len(pairs) == prefill.count * decode.count
    first = pairs.iloc[0]
    p, d = prefill.requests_per_s_per_accelerator[0], decode.requests_per_s_per_accelerator[0]
    assert first["requests_per_s_per_accelerator"] == pytest.approx(1 / (1 / p + 1 / d))
    assert first["prefill_accelerators_per_decode_accelerator"] == pytest.approx(d / p)
    # The price of a pair is that of its accelerators at its rate.
    hourly = first["requests_per_s_per_accelerator"] * 3600 * (2048 + 150) / 1e6
    assert first["usd_per_million_tokens"] == pytest.approx(2.0 / hourly)


def test_evidence_is_that_of_the_landscape() -> None:
    own = option("H200-SXM")
    space = SweepSpace((own,), REQUESTS[:1], TARGET, SPACE)
    points = sweep(space).candidates
    evidence = evidence_table(points, space)
    flat = service_landscape(own.evaluator, REQUESTS[0], TARGET, SPACE).table.set_index(["phase", "config"])
    table = point_table(points, space, ("all",))
    expected = flat.loc[list(zip(table["phase"], table["config"], strict=True))]
    assert evidence["source"].tolist() == expected["source"].tolist()
    assert evidence["bottleneck"].tolist() == expected["bottleneck"].tolist()
    np.testing.assert_allclose(evidence["share_measured"], expected["share_measured"])


def test_data_types_that_a_part_lacks_are_counted() -> None:
    result = sweep(SweepSpace((option("A100-SXM-80GB", weights="fp4"),), REQUESTS[:1], TARGET, SPACE))
    assert {reason for _, _, reason in result.excluded} == {"data type"}
    assert result.candidates.count == result.frontier.count == 0


class RowCountingSource(WorkSource):
    """Counts the rows that are looked up."""

    def __init__(self) -> None:
        self.rows = 0

    def times_of_distinct(self, kind: OperatorKind, dtype: str, dims: dict):  # type: ignore[no-untyped-def, type-arg]
        self.rows += next(iter(dims.values())).size
        return self.times(kind, dtype, dims)


@pytest.mark.parametrize("model", [dense_model(), mixture_model(shared=256)])
def test_shapes_that_configurations_share_are_looked_up_once(model) -> None:  # type: ignore[no-untyped-def]
    source = RowCountingSource()
    own = Option("H", Evaluator(model, accelerator(), source, BF16), None, None)
    search = SearchSpace(
        runtimes=("disaggregated",), prefill_batches=(1,), decode_batches=tuple(range(1, 65))
    )
    requests = tuple(RequestShape(1000, 100 + step, 1000) for step in range(32))
    result = sweep(SweepSpace((own,), requests, LatencyTarget(), search), threads=1)
    layouts = len(search_layouts(model, accelerator(), search))
    assert result.configurations == layouts * 65 * 32
    # One by one there would be a dozen look-ups a configuration.
    assert source.rows < result.configurations / 3
