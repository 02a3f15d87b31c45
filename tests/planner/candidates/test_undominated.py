"""Rows of landscapes that numbers alone tell to be dominated are those that candidates would be."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest
from tests.parts import first_of

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.candidates.dominance import prune_dominated, undominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.problem import Candidate, Phase, ProvenanceShares
from fleetplan.scenarios.load import load_fleet

SIZES: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 24, 32)
FLEET: Final = """\
version: 1
regions:
  east: {round_trip_ms: {west: 60}}
  west: {}
offers: [{name: rent, hardware: MI300X, rent_usd_per_accelerator_hour: 2, regions: [east, west]}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 800, output_tokens: 100}
    slo: {ttft_ms: 400, tpot_ms: 30}
    demand: {east: 20, west: 10}
    serve_from: {west: [east]}
  - name: voice
    model: llama3-8b
    variants:
      - {name: whole, quality: 1.0, precision: {weights: bf16, kv: bf16}}
      - {name: half, quality: 0.99, precision: {weights: fp8, kv: fp8}}
    workload: {input_tokens: 900, output_tokens: 100}
    slo: {ttft_ms: 400, tpot_ms: 30}
    demand: {east: 20}
  - name: safety
    model: llama3-8b
    workload: {input_tokens: 500, output_tokens: 1}
    slo: {ttft_ms: 300}
    demand: {east: 40}
"""
KEPT_OUT: Final = ("chat", "decode", "MI300X", "no configuration has this name")
"""A configuration in force: where there is one, all rows become candidates before any is left out."""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return load_fleet(path)


@pytest.mark.parametrize("seed", first_of(range(20), 8))
def test_numbers_tell_what_candidates_do(seed: int, fleet: Fleet) -> None:
    draw = random.Random(seed)
    hardware = fleet.hardware["MI300X"]
    sizes = [draw.choice(SIZES) for _ in range(25)]
    # Many are equal, or whole multiples of each other.
    rates = [draw.choice((1.0, 1.5, 1.7)) * draw.choice((size, size // 2 + 1)) for size in sizes]
    whole = ProvenanceShares(measured=1.0)
    candidates = [
        Candidate(
            "chat", Phase.DECODE, "MI300X", str(at), size, (rate,), (None,), (None,), size * 0.75, whole
        )
        for at, (size, rate) in enumerate(zip(sizes, rates, strict=True))
    ]
    kept = prune_dominated(candidates, {"MI300X": hardware}, RejectionLog())
    expected = sorted(int(each.config) for each in kept)
    assert undominated(sizes, rates, hardware.accelerators_per_host) == expected
    assert len(expected) < len(sizes)


def test_candidates_and_counts_are_those_of_all_rows(fleet: Fleet) -> None:
    found = build_candidates(fleet, lambda _: None)
    assert {each.service for each in found.candidates} == {"chat", "voice", "safety"}
    assert found == build_candidates(fleet, lambda _: None, [KEPT_OUT])
