"""Measuring without torch: what is swept, what is measured next, what an interruption leaves."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.perfmodel.fakes import accelerator

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.microbench.adaptive import next_points, node_errors, rows_of
from fleetplan.perfmodel.microbench.control import calm_control_us, disturbed
from fleetplan.perfmodel.microbench.journal import FILE_NAME, Journal, Origin
from fleetplan.perfmodel.microbench.points import Measurement, Point, Unmeasurable, point
from fleetplan.perfmodel.microbench.session import (
    MeasuringGoal,
    MeasuringProgress,
    run_group_session,
    run_session,
)
from fleetplan.perfmodel.microbench.sites import (
    Extent,
    Site,
    first_points,
    group_sites,
    least_read_bytes,
    model_sites,
    site_of,
    standard_sites,
)
from fleetplan.perfmodel.microbench.table_files import write_table
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import read_own_table

ORIGIN = Origin("my-part", "a device", "torch 2", 512)
GEMM = Site(OperatorKind.GEMM, "bf16", (("n", 1024), ("k", 512)))
SMALL = Site(OperatorKind.ELEMENTWISE, "bf16")
EXTENT = Extent(4096)


def gemm(m: int) -> Point:
    return point(OperatorKind.GEMM, "bf16", m=m, n=1024, k=512)


def straight(each: Point) -> Measurement:
    """A device that takes 1 us and 1 ns a row or byte."""
    work = each["m"] if each.kind is OperatorKind.GEMM else each["traffic_bytes"]
    return Measurement(each, 1.0 + work / 1e3, 0.01, 21, power_w=300.0)


def kinked(each: Point) -> Measurement:
    """The same with a step at 700 rows."""
    return Measurement(each, straight(each).latency_us * (2.0 if each["m"] > 700 else 1.0), 0.01, 21)


def test_dimensions_of_a_point_are_those_of_its_table() -> None:
    assert gemm(3).dims == (("n", 1024), ("k", 512), ("m", 3))
    assert (gemm(3)["m"], gemm(3).label) == (3, "gemm bf16 n=1024 k=512 m=3")
    with pytest.raises(ValueError, match="has the dimensions"):
        point(OperatorKind.GEMM, "bf16", m=1)
    with pytest.raises(ValueError, match="has the dimensions"):
        Point(OperatorKind.GEMM, "bf16", (("m", 1),))
    with pytest.raises(ValueError, match="unknown data type"):
        Point(OperatorKind.GEMM, "fp5", gemm(3).dims)


def test_a_first_sweep_is_coarse_and_holds_what_a_step_may_ask_for() -> None:
    assert [each["m"] for each in first_points(GEMM, EXTENT)] == [1, 8, 64, 512, 4096]
    attention = Site(
        OperatorKind.PREFILL_ATTENTION,
        "bf16",
        (("heads", 8), ("kv_heads", 2), ("head_dim", 64), ("window", 0)),
    )
    prompts = first_points(attention, EXTENT)
    # Batches of 1, 8, 64 and 256 with prompts of 64, 512 and 4,096 tokens, of which 8,192 are the most.
    assert len(prompts) == 3 + 2 + 1
    assert max(each["batch"] * each["new_tokens"] for each in prompts) == 4096
    assert min(each["new_tokens"] for each in prompts) == 64
    assert all(site_of(each) == attention for each in prompts)


def test_sites_of_models_are_those_that_their_steps_ask_for() -> None:
    dense = load_architecture("llama3-8b", Path())
    sites = model_sites([(dense, Precision("fp8", "bf16"))], (1, 8))
    widths = {
        dict(site.fixed)["n"] for site in sites if site.kind is OperatorKind.GEMM and site.dtype == "fp8"
    }
    # 32 heads and two times 8 of 128, the hidden size, two times 14,336 and 4,096; then an eighth of them.
    assert widths == {6144, 4096, 28672, 768, 3584}
    heads = {dict(site.fixed)["heads"] for site in sites if site.kind is OperatorKind.DECODE_ATTENTION}
    assert heads == {32, 4}
    assert SMALL in sites
    mixture = load_architecture("mixtral-8x7b", Path())
    experts = [
        dict(site.fixed)
        for site in model_sites([(mixture, Precision("bf16", "bf16"))], (2,))
        if site.kind is OperatorKind.MOE
    ]
    assert {(each["moe_tp"], each["moe_ep"]) for each in experts} == {(2, 1), (1, 2)}


def test_a_standard_grid_has_every_operator_of_one_device() -> None:
    sites = standard_sites(("bf16", "fp8"))
    assert {site.dtype for site in sites if site.kind is OperatorKind.GEMM} == {"bf16", "fp8"}
    assert {site.kind for site in sites} == {
        OperatorKind.GEMM,
        OperatorKind.PREFILL_ATTENTION,
        OperatorKind.DECODE_ATTENTION,
        OperatorKind.MOE,
        OperatorKind.ELEMENTWISE,
    }
    assert {site.kind for site in group_sites((2, 4))} == {
        OperatorKind.ALL_REDUCE,
        OperatorKind.ALL_GATHER,
        OperatorKind.REDUCE_SCATTER,
        OperatorKind.ALL_TO_ALL,
        OperatorKind.SEND_RECV,
    }
    assert group_sites(()) == []


def test_the_next_points_lie_beside_the_worst_prediction() -> None:
    measured = [kinked(gemm(m)) for m in (1, 8, 64, 512, 4096)]
    (rows,) = rows_of(measured)
    errors = node_errors(accelerator(), rows)
    assert {each.values for each in errors} == {(8,), (64,), (512,)}
    assert errors == sorted(errors, key=lambda each: -each.ratio)
    assert errors[0].values == (512,)
    wanted = next_points(errors[:1], [each.point for each in measured], 0.05, EXTENT)
    # The geometric means of 64 and 512, and of 512 and 4,096.
    assert [each["m"] for each in wanted] == [181, 1448]
    assert next_points(errors[:1], [each.point for each in measured], 10.0, EXTENT) == []
    near = [kinked(gemm(m)) for m in (1, 500, 512, 600, 4096)]
    (worst, *_) = [each for each in node_errors(accelerator(), rows_of(near)[0]) if each.values == (512,)]
    assert next_points([worst], [each.point for each in near], 0.0, EXTENT) == []


def test_a_run_measures_until_neighbours_predict_each_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ORIGIN)
    outcome = run_session((GEMM, SMALL), straight, journal, accelerator(), MeasuringGoal(0.02, extent=EXTENT))
    assert not outcome.over_budget
    assert outcome.new_points == len(journal.measured)
    assert max(each.ratio for each in outcome.errors) <= 0.02 or outcome.new_points > 40
    kinks = Journal(tmp_path / "other", ORIGIN)
    run_session((GEMM,), kinked, kinks, accelerator(), MeasuringGoal(0.02, extent=EXTENT))
    around = sorted(each["m"] for each in kinks.measured if 300 < each["m"] < 1500)
    # Most of the points are where the time jumps.
    assert len(around) >= 4
    assert max(high / low for low, high in pairwise(around)) < 2


def test_an_interrupted_run_goes_on_without_repeating_or_losing_a_point(tmp_path: Path) -> None:
    attempted: list[Point] = []

    def interrupted(each: Point) -> Measurement:
        if len(attempted) == 3:
            raise KeyboardInterrupt
        attempted.append(each)
        return straight(each)

    goal = MeasuringGoal(0.02, extent=EXTENT)
    with pytest.raises(KeyboardInterrupt):
        run_session((GEMM,), interrupted, Journal(tmp_path, ORIGIN), accelerator(), goal)
    again: list[Point] = []

    def counted(each: Point) -> Measurement:
        again.append(each)
        return straight(each)

    journal = Journal(tmp_path, ORIGIN)
    assert list(journal.measured) == attempted
    assert journal.measured[attempted[0]] == straight(attempted[0])
    run_session((GEMM,), counted, journal, accelerator(), goal)
    assert not set(again) & set(attempted)
    whole = Journal(tmp_path / "whole", ORIGIN)
    run_session((GEMM,), straight, whole, accelerator(), goal)
    assert set(journal.measured) == set(whole.measured)


def test_a_line_that_was_cut_short_is_dropped(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ORIGIN)
    journal.add(straight(gemm(1)))
    journal.add(straight(gemm(8)))
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:-20])
    found = Journal(tmp_path, ORIGIN)
    assert list(found.measured) == [gemm(1)]
    found.add(straight(gemm(64)))
    assert list(Journal(tmp_path, ORIGIN).measured) == [gemm(1), gemm(64)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 2, "hardware": "other"}\n', "holds points of hardware 'other', not of 'my-part'"),
        ('{"format": 1}\n', "holds points of format 1, not of 2"),
        ("what\n", "is not a journal of measurements; name another folder"),
        ("[1]\n", "is not a journal of measurements"),
    ],
)
def test_points_of_another_device_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / FILE_NAME).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Journal(tmp_path, ORIGIN)


def test_a_point_that_cannot_be_measured_stops_its_sweep_and_nothing_else(tmp_path: Path) -> None:
    tried: list[int] = []

    def small_memory(each: Point) -> Measurement:
        tried.append(each["m"])
        if each["m"] >= 64:
            raise Unmeasurable("ran out of memory")
        return straight(each)

    journal = Journal(tmp_path, ORIGIN)
    other = Site(OperatorKind.GEMM, "fp8", (("n", 1024), ("k", 512)))
    run_session((GEMM, other), small_memory, journal, accelerator(), MeasuringGoal(0.5, extent=EXTENT))
    assert set(journal.skipped.values()) == {"ran out of memory"}
    assert sorted(each["m"] for each in journal.skipped if each.dtype == "bf16") == [64, 512, 4096]
    # Of either data type, one attempt at 64 rows and none above.
    assert sorted(tried) == [1, 1, 8, 8, 64, 64]
    assert Journal(tmp_path, ORIGIN).skipped == journal.skipped


def test_the_time_may_be_up(tmp_path: Path) -> None:
    outcome = run_session(
        (GEMM,), straight, Journal(tmp_path, ORIGIN), accelerator(), MeasuringGoal(0.01, budget_s=-1.0)
    )
    assert outcome.over_budget
    assert outcome.new_points == 0


def test_groups_are_measured_in_one_go(tmp_path: Path) -> None:
    journal, goes = Journal(tmp_path, ORIGIN), []
    sites = group_sites((2,))

    def measure_all(points: list[Point]) -> None:
        goes.append(len(points))
        for each in points:
            journal.add(Measurement(each, 10.0 + each["message_bytes"] / 1e4, 0.0, 7))

    told = MeasuringProgress()
    outcome = run_group_session(
        sites, measure_all, journal, accelerator(), MeasuringGoal(0.3, extent=EXTENT), told
    )
    assert goes[0] == sum(len(first_points(site, EXTENT)) for site in sites)
    assert outcome.new_points == sum(goes)
    late = run_group_session(
        sites, measure_all, Journal(tmp_path / "b", ORIGIN), accelerator(), MeasuringGoal(0.3, -1.0)
    )
    assert late.over_budget


def test_the_table_is_one_that_plans_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ORIGIN)
    run_session((GEMM, SMALL), straight, journal, accelerator(), MeasuringGoal(0.5, extent=EXTENT))
    table = read_own_table(write_table(journal, ORIGIN, "2026-11-21", tmp_path), "my-part")
    assert table.rejected == ()
    assert table.ignored_columns == ()
    assert table.n_accepted == len(journal.measured)
    assert {part.rows.kind for part in table.parts} == {OperatorKind.GEMM, OperatorKind.ELEMENTWISE}
    text = (tmp_path / "optable.csv").read_text(encoding="utf-8")
    assert "plan optables measure, a device, torch 2, 2026-11-21" in text
    assert '"latency_us"' not in json.dumps(text.splitlines()[1])


class Spells:
    """A device that is twice as slow for some attempts, as its control says."""

    def __init__(self, slow: set[int]) -> None:
        self._slow = slow
        self.attempts: list[Point] = []

    def measure(self, each: Point) -> Measurement:
        times = 2.0 if len(self.attempts) in self._slow else 1.0
        self.attempts.append(each)
        return replace(straight(each), latency_us=straight(each).latency_us * times, control_us=50.0 * times)


def test_points_of_a_slow_spell_are_measured_again(tmp_path: Path) -> None:
    device, journal = Spells({1}), Journal(tmp_path, ORIGIN)
    goal = MeasuringGoal(1.0, extent=EXTENT)
    outcome = run_session((GEMM,), device.measure, journal, accelerator(), goal)
    assert [each["m"] for each in device.attempts] == [1, 8, 64, 512, 4096, 8]
    assert (outcome.disturbed, outcome.new_points) == (0, 5)
    assert journal.measured[gemm(8)].latency_us == straight(gemm(8)).latency_us
    # On the disk the later line counts.
    assert Journal(tmp_path, ORIGIN).measured == journal.measured


def test_a_point_that_stays_slow_is_kept_and_says_so(tmp_path: Path) -> None:
    device, journal = Spells({1, 5, 6}), Journal(tmp_path, ORIGIN)
    outcome = run_session((GEMM,), device.measure, journal, accelerator(), MeasuringGoal(1.0, extent=EXTENT))
    assert [each["m"] for each in device.attempts[5:]] == [8, 8]
    assert outcome.disturbed == 1
    text = write_table(journal, ORIGIN, "2026-11-21", tmp_path).read_text(encoding="utf-8")
    ratios = {line["m"]: float(line["control_ratio"]) for line in csv.DictReader(text.splitlines())}
    assert ratios == {"1": 1.0, "8": 2.0, "64": 1.0, "512": 1.0, "4096": 1.0}
    # The next run tries again.
    later = Spells(set())
    run_session((GEMM,), later.measure, journal, accelerator(), MeasuringGoal(1.0, extent=EXTENT))
    assert [each["m"] for each in later.attempts] == [8]


def test_a_slow_point_is_kept_where_it_cannot_be_measured_again(tmp_path: Path) -> None:
    device, journal = Spells({1}), Journal(tmp_path, ORIGIN)

    def once(each: Point) -> Measurement:
        if each in device.attempts:
            raise Unmeasurable("ran out of memory")
        return device.measure(each)

    outcome = run_session((GEMM,), once, journal, accelerator(), MeasuringGoal(1.0, extent=EXTENT))
    assert outcome.disturbed == 1
    assert journal.measured[gemm(8)].control_us == 100.0
    assert journal.skipped == {}


def test_without_a_control_nothing_is_disturbed() -> None:
    measured = [straight(gemm(m)) for m in (1, 8)]
    assert calm_control_us(measured) is None
    assert disturbed(measured) == []
    # One point with a control is its own measure.
    assert disturbed([*measured, replace(measured[0], control_us=9.0)]) == []


def test_what_is_read_between_two_uses_of_a_weight() -> None:
    dense = load_architecture("llama3-8b", Path())
    half = Precision("fp8", "bf16")
    # 8.03 billion weights in FP8, without the embedding, of which a step reads one row; the head in BF16.
    embedding = 525.3e6
    expected = 8.03e9 - 2 * embedding + 2 * embedding
    assert least_read_bytes([(dense, half)], (1,)) == pytest.approx(expected, rel=0.01)
    assert least_read_bytes([(dense, half)], (1, 8)) == pytest.approx(expected / 8, rel=0.01)
    small = load_architecture("mixtral-8x7b", Path())
    assert least_read_bytes([(small, half), (dense, half)], (1,)) == pytest.approx(expected, rel=0.01)
