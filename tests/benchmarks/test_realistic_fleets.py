"""The realistic fleets that the solver is measured on, and the bars that they are measured by."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from benchmarks.fleet_sizes import Variant
from benchmarks.realistic import __main__ as command
from benchmarks.realistic.fleet import BOOM_RATIO, write_file, write_fleet
from benchmarks.realistic.kinds import KINDS, Shape
from benchmarks.realistic.places import PLACES, round_trip_ms, slice_names, slice_ratios
from benchmarks.realistic.sizes import SIZES, Switch, switches_of
from benchmarks.realistic.witness import find_witness
from benchmarks.solve import judge
from benchmarks.solve_families import FAMILIES, SolveBar, random_bars, realistic_bars
from benchmarks.solve_runs import SolverRun, children
from tests.measured import needs_tables
from tests.parts import first_of

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates.build import build_candidates
from fleetplan.planner.problem import Phase
from fleetplan.scenarios.load import load_fleet

VARIANTS = (
    "plain",
    "day",
    "region-loss",
    "day+region-loss",
    "percentiles",
    "day+offline",
    "scenarios",
    "day4+tidal",
    "quarter",
    "year2",
)


def _load(folder: Path, size: str, variant: str, seed: int = 1) -> Fleet:
    return load_fleet(write_fleet(folder, size, seed, variant))


def _document(folder: Path, size: str, variant: str, seed: int = 1) -> dict[str, Any]:
    document: dict[str, Any] = read_yaml(write_fleet(folder, size, seed, variant).read_text("utf-8"))
    return document


def test_the_same_seed_writes_the_same_fleet(tmp_path: Path) -> None:
    texts = [
        write_file(tmp_path / f"{i}.yaml", "company", seed, "day").read_text("utf-8")
        for i, seed in enumerate((1, 1, 2))
    ]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def sizes_and_variants() -> list[ParameterSet]:
    """All of them; `make test` tries every variant of the smallest size, and the plain one of the others."""
    smallest = next(iter(SIZES))
    left_to = {"plain": (), "day4+tidal": pytest.mark.more}
    return [
        pytest.param(size, variant, marks=() if size == smallest else left_to.get(variant, pytest.mark.slow))
        for size in SIZES
        for variant in VARIANTS
    ]


@pytest.mark.parametrize(("size", "variant"), sizes_and_variants())
def test_every_size_and_variant_is_a_valid_fleet(tmp_path: Path, size: str, variant: str) -> None:
    fleet = _load(tmp_path, size, variant)
    assert len(fleet.services) == SIZES[size].services
    assert len(fleet.periods) == {"quarter": 1, "year2": 8}.get(variant, SIZES[size].quarters)
    assert len(fleet.slices) == (3 if "day" in variant.split("+") else 4 if "day4" in variant else 0)
    least, most = SIZES[size].regions
    assert least <= len(fleet.regions) <= most


def test_switches_change_what_they_name_alone(tmp_path: Path) -> None:
    plain, day = (_document(tmp_path / name, "company", name) for name in ("plain", "day"))
    assert [plain["pools"], plain["offers"]] == [day["pools"], day["offers"]]
    for one, other in zip(plain["services"], day["services"], strict=True):
        for region, by_period in one.get("demand", {}).items():
            for period, peak in by_period.items():
                parts = other["demand"][region][period]
                assert list(parts) == slice_names(3)
                assert max(parts.values()) == peak


def test_each_switch_is_in_the_file(tmp_path: Path) -> None:
    loss = _document(tmp_path, "company", "region-loss")
    protected = set(loss["policy"]["survive_region_loss"])
    assert protected == {each["name"] for each in loss["services"] if KINDS[each["name"]].protected}

    limits = [
        each["slo"] for each in _document(tmp_path, "company", "percentiles")["services"] if "slo" in each
    ]
    assert any("ttft_p95_ms" in each for each in limits)
    assert any("ttft_ms" in each for each in limits)

    batch = [each for each in _document(tmp_path, "company", "day+offline")["services"] if "offline" in each]
    assert len(batch) >= 4
    assert {each["offline"]["deadline_hours"] for each in batch} != {24}

    boom = _document(tmp_path, "company", "scenarios")["uncertainty"]["scenarios"][-1]
    assert set(boom["demand_ratio"].values()) == {BOOM_RATIO}
    assert _document(tmp_path, "company", "day+tidal")["policy"]["tidal"]["max_share_per_pool"] == 0.5


@pytest.mark.parametrize("variant", ["night", "day+night", "plain+day"])
def test_an_unknown_switch_is_refused(variant: str) -> None:
    with pytest.raises(ValueError, match="no switch"):
        switches_of(variant)


@pytest.mark.parametrize("variant", ["day+day4", "quarter+year2"])
def test_switches_that_exclude_each_other_are_refused(variant: str) -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        switches_of(variant)


def test_an_unknown_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no size 'tiny'"):
        write_file(tmp_path / "fleet.yaml", "tiny", 1)


def test_every_region_knows_the_way_to_every_other_one() -> None:
    for one in PLACES:
        for other in PLACES:
            if one != other:
                assert round_trip_ms(one, other) == round_trip_ms(other, one) > 0


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("shape", list(Shape))
def test_a_day_has_one_busiest_part(shape: Shape, count: int) -> None:
    for region in PLACES:
        ratios = slice_ratios(region, shape, count)
        assert max(ratios) == 1.0
        assert min(ratios) > 0
    # Evening in Virginia is night in Europe.
    assert slice_ratios("us-east", Shape.PEOPLE, 3) != slice_ratios("eu-central", Shape.PEOPLE, 3)


SOME_KINDS = ["assistant", "safety", "embeddings"]
"""Dense and sparse models, one in MXFP4, one without decode."""


@needs_tables
@pytest.mark.parametrize(
    "kinds",
    first_of([SOME_KINDS, [each for each in KINDS if each not in SOME_KINDS]], 1),
    ids=("some kinds", "the others"),
)
def test_every_model_of_every_kind_runs_on_h100_at_about_its_pace(tmp_path: Path, kinds: list[str]) -> None:
    """Every region has H100 or H200 and can rent both; paces size demand and supply alike."""
    services = []
    for kind_name, kind in ((name, KINDS[name]) for name in kinds):
        for model in kind.models:
            spec: dict[str, Any] = {
                "name": f"{kind_name}/{model.name}",
                "model": model.name,
                "precision": {"weights": model.weights, "kv": model.kv},
                "workload": dict(kind.workload),
                "demand": 1.0,
                **kind.extra,
            }
            services.append({**spec, "slo": dict(kind.slo)} if kind.slo else spec)
    path = tmp_path / "fleet.yaml"
    offer = {"name": "h100", "hardware": "H100-SXM", "rent_usd_per_accelerator_hour": 2.0}
    document = {"version": 1, "name": "kinds", "offers": [offer], "services": services}
    path.write_text(yaml_text(document), encoding="utf-8")
    candidates = build_candidates(load_fleet(path), lambda _: None).candidates
    best: dict[tuple[str, Phase], float] = {}
    for each in candidates:
        key = (each.service, each.phase)
        best[key] = max(best.get(key, 0.0), each.requests_per_s[0] / each.accelerators)
    for kind_name, kind in ((name, KINDS[name]) for name in kinds):
        for model in kind.models:
            name = f"{kind_name}/{model.name}"
            apart = [best.get((name, phase), 0.0) for phase in (Phase.PREFILL, Phase.DECODE)]
            paces = [best.get((name, Phase.AGGREGATED), 0.0)]
            paces += [1 / sum(1 / each for each in apart)] if all(apart) else []
            assert model.pace / 2 < max(paces) < 2 * model.pace, name


@pytest.mark.slow
def test_a_team_has_a_plan_that_the_measured_search_did_not_find(tmp_path: Path) -> None:
    witness = find_witness(_load(tmp_path, "team", "offline+quarter"), limit_s=60.0)
    assert witness is not None
    assert witness.candidates <= witness.of
    assert witness.usd > 0


def test_the_command_writes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine" / "team.yaml"
    words = ["realistic", "team", "--seed", "3", "--variant", "percentiles", "--out", str(path)]
    monkeypatch.setattr(sys, "argv", words)
    command.main()
    assert capsys.readouterr().out.strip() == str(path)
    assert load_fleet(path).name == "team-percentiles-3"


def test_the_command_refuses_an_unknown_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["realistic", "team", "--variant", "night", "--out", str(tmp_path / "fleet.yaml")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        command.main()
    assert "no switch night" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "variant", "first_s", "gap"),
    [
        ("team", "plain", 15, SolveBar(30, 0.005)),
        ("team", "day+region-loss", 15, SolveBar(30, 0.005)),
        ("company", "plain", 20, SolveBar(120, 0.01)),
        ("company", "region-loss", 20, SolveBar(120, 0.01)),
        ("company", "day+region-loss", 20, SolveBar(240, 0.03)),
        ("company", "year2", 20, SolveBar(240, 0.03)),
        ("large-company", "plain", 150, SolveBar(300, 0.02)),
    ],
)
def test_bars_of_the_realistic_family(size: str, variant: str, first_s: float, gap: SolveBar) -> None:
    assert realistic_bars(size, variant) == (SolveBar(first_s, None, each_seed=True), gap)


def test_scarce_random_fleets_have_twice_the_gap_and_no_bar_on_the_first_plan() -> None:
    assert random_bars("medium", "scarce-power") == (SolveBar(45, 0.06), SolveBar(120, 0.02))
    assert random_bars("small", "scarce-power") == (SolveBar(5, 0.002, each_seed=True),)
    assert random_bars("large", "head") == ()


def test_default_sizes_and_variants_are_known() -> None:
    for variant in FAMILIES["random"].variants.split(","):
        Variant(variant)
    for size in FAMILIES["realistic"].sizes.split(","):
        for variant in FAMILIES["realistic"].variants.split(","):
            assert FAMILIES["realistic"].bars(size, variant)
    assert set(Switch) >= switches_of("day+region-loss")


def _run(seed: int, first_s: float, gap: float) -> SolverRun:
    steps = [(first_s, 100.0, 100.0 * (1 - gap))]
    return SolverRun("company", "plain", seed, "blocks", 0.0, steps=steps, wall_s=first_s)


def test_the_first_plan_of_the_worst_seed_and_the_median_gap_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [_run(1, 5.0, 0.002), _run(2, 25.0, 0.005), _run(3, 6.0, 0.5)]
    missed = judge(FAMILIES["realistic"], "company", "plain", runs)
    said = capsys.readouterr().out
    assert "company plain: first plan of every seed 25.0 s (bar 20 s)" in missed
    assert "met    company plain: 0.50 % after 120 s (bar 1 %)" in said


def test_processes_that_any_thread_started_are_children() -> None:
    started: list[subprocess.Popen[bytes]] = []
    ended = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        ended.wait(10)

    thread = threading.Thread(target=start)
    thread.start()
    while not started:
        time.sleep(0.01)
    assert started[0].pid in children(os.getpid())
    started[0].communicate(b"\n")
    assert started[0].pid not in children(os.getpid())
    ended.set()
    thread.join()
