"""Rows of an engine table and the request classes that they hold for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.planner.candidates import build_candidates
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
hardware:
  card: {vendor: A, bf16_tflops: 900, hbm_gib: 80, hbm_gb_per_s: 3000, scale_up_gb_per_s: 450, tdp_w: 700}
offers:
  - {name: cloud, hardware: card, per: accelerator, rent_usd_per_accelerator_hour: 2}
services:
  - name: api
    engines: engines.csv
    workload:
      classes:
        short: {share: 0.7, input_tokens: 500, output_tokens: 50}
        long: {share: 0.3, input_tokens: 5000, output_tokens: 500}
    demand: 20
"""


def rates(folder: Path, table: str) -> dict[str, tuple[float, ...]]:
    (folder / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    (folder / "engines.csv").write_text(table, encoding="utf-8")
    found = build_candidates(load_fleet(folder / "fleet.yaml"), lambda _: None).candidates
    return {each.config: each.requests_per_s for each in found}


def test_a_table_without_classes_holds_for_every_class(tmp_path: Path) -> None:
    """An engine table without a class column applies to every class of the service."""
    table = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,card,1,c1,10\n"
    assert rates(tmp_path, table) == {"c1": (10.0, 10.0)}


def test_a_row_of_a_class_comes_before_that_of_all(tmp_path: Path) -> None:
    table = (
        "phase,hardware,accelerators_per_replica,config,class,requests_per_s\n"
        "aggregated,card,1,c1,all,10\naggregated,card,1,c1,long,3\n"
    )
    assert rates(tmp_path, table) == {"c1": (10.0, 3.0)}


def test_a_class_that_the_service_does_not_have_is_an_error(tmp_path: Path) -> None:
    table = (
        "phase,hardware,accelerators_per_replica,config,class,requests_per_s\n"
        "aggregated,card,1,c1,all,10\naggregated,card,1,c1,lnog,3\n"
    )
    with pytest.raises(InputError, match=r"the classes \(short, long\) are not those of the engine table"):
        rates(tmp_path, table)
