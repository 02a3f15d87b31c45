"""`services.rate_ratio`: a fleet with measured rates is the fleet whose rates were given so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.plan import Plan
from fleetplan.planner.search import SearchLimits
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
hardware: {A: {accelerators_per_host: 1}, B: {accelerators_per_host: 1}}
offers:
  - {name: a, hardware: A, per: accelerator, rent_usd_per_accelerator_hour: 1.0}
  - {name: b, hardware: B, per: accelerator, rent_usd_per_accelerator_hour: 1.05}
services: [{name: chat, engines: ENGINES, demand: 40, EXTRA}]
"""


def plan_of(folder: Path, rates: tuple[float, float], extra: str) -> Plan:
    table = "phase,hardware,config,accelerators_per_replica,requests_per_s\n" + "".join(
        f"aggregated,{name},one,1,{rate}\n" for name, rate in zip("AB", rates, strict=True)
    )
    (folder / "engines.csv").write_text(table, "utf-8")
    (folder / "fleet.yaml").write_text(
        FLEET.replace("ENGINES", "engines.csv").replace("EXTRA", extra or "priority: 1"), "utf-8"
    )
    outcome = plan_fleet(load_fleet(folder / "fleet.yaml"), SearchLimits(20, 0.0, 1, 2)).outcome
    assert isinstance(outcome, Plan)
    return outcome


@pytest.mark.parametrize(
    ("extra", "factors"),
    [
        ("rate_ratio: 0.9", (0.9, 0.9)),
        ("rate_ratio: {A: 0.9}", (0.9, 1.0)),
        ("rate_ratio: {B: 1.25}", (1.0, 1.25)),
    ],
)
def test_measured_rates_are_rates_of_the_table(
    tmp_path: Path, extra: str, factors: tuple[float, float]
) -> None:
    measured = plan_of(tmp_path, (1.0, 1.0), extra)
    given = plan_of(tmp_path, factors, "")
    before = plan_of(tmp_path, (1.0, 1.0), "")
    assert measured.objective_usd == pytest.approx(given.objective_usd, rel=1e-9)
    assert [(r.hardware, r.accelerators) for r in measured.placements] == [
        (r.hardware, r.accelerators) for r in given.placements
    ]
    assert measured.objective_usd != pytest.approx(before.objective_usd, rel=1e-3)


def test_a_model_is_as_much_slower(tmp_path: Path) -> None:
    path = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"
    before = build_candidates(load_fleet(path), lambda _: None).candidates
    after = build_candidates(
        load_fleet(path, (), ["services.chat.rate_ratio={H100-SXM: 0.8}"]), lambda _: None
    )
    ratios = {"H100-SXM": 0.8, "H200-SXM": 1.0}
    assert [each.key for each in after.candidates] == [each.key for each in before]
    for old, new in zip(before, after.candidates, strict=True):
        assert new.requests_per_s == pytest.approx(
            [rate * ratios[old.hardware] for rate in old.requests_per_s]
        )
        assert (new.ttft_ms, new.tpot_ms) == (old.ttft_ms, old.tpot_ms)


def test_unknown_hardware_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no hardware 'C'"):
        plan_of(tmp_path, (1.0, 1.0), "rate_ratio: {C: 0.9}")


@pytest.mark.parametrize("name", ["p5.48xlarge", "NVIDIA H100 80GB HBM3", "h100"])
def test_hardware_goes_by_any_of_its_names(name: str) -> None:
    path = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"
    fleet = load_fleet(path, (), [f"services.chat.rate_ratio={{{name}: 0.8}}"])
    assert fleet.services[0].rate_ratio == {"H100-SXM": 0.8}


def test_a_part_has_one_ratio() -> None:
    path = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"
    with pytest.raises(InputError, match=r"p5\.48xlarge is H100-SXM, which has a ratio already"):
        load_fleet(path, (), ["services.chat.rate_ratio={h100: 0.8, p5.48xlarge: 0.9}"])
