"""Laws of whole plans: better parts, fewer tokens and larger caps never cost more."""

import itertools
import math
import random
from pathlib import Path
from typing import Final

import pytest
from tests.parts import first_parts, those_with

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.candidates import build_candidates
from fleetplan.planner.plan import Plan
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

pytestmark = pytest.mark.skipif(data_folder() is None, reason="the measured tables are not installed")

FLEET: Final = """\
version: 1
regions: {{here: {{pue: 1.3, energy_usd_per_kwh: 0.4, hosting_usd_per_kw_month: 200}}}}
offers:
  - {{name: rent, hardware: {hardware}, per: accelerator, rent_usd_per_accelerator_hour: 2.0}}
hardware: {{{hardware}: {{{figures}}}}}
services:
  - name: chat
    model: {model}
    precision: {{weights: fp8, kv: fp8}}
    workload: {{input_tokens: {input_tokens}, output_tokens: {output_tokens}}}
    slo: {{ttft_ms: {ttft_ms}, tpot_ms: {tpot_ms}}}
    demand: {demand}
"""
SOLVED: Final = SearchLimits(time_limit_s=60.0, gap_ratio=0.0, workers=1)


def case(seed: int) -> dict[str, object]:
    chosen = random.Random(seed)
    return {
        "hardware": chosen.choice(["H200-SXM", "H100-SXM", "B200-SXM"]),
        "model": chosen.choice(["llama3-8b", "llama3-70b", "gpt-oss-20b"]),
        "input_tokens": chosen.randint(200, 6000),
        "output_tokens": chosen.randint(8, 400),
        "ttft_ms": chosen.choice([400, 1500]),
        "tpot_ms": chosen.choice([20, 60]),
        "demand": chosen.randint(5, 200),
        "figures": "",
    }


def planned(folder: Path, values: dict[str, object]) -> Plan | None:
    """The optimal plan; None where there is none."""
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(**values), encoding="utf-8")
    outcome = plan_fleet(load_fleet(str(path)), SOLVED).outcome
    return outcome if isinstance(outcome, Plan) else None


def cost(folder: Path, values: dict[str, object], **changes: object) -> float:
    plan = planned(folder, values | changes)
    return float("inf") if plan is None else plan.objective_usd


@pytest.mark.parametrize("seed", first_parts(range(3), 1))
def test_better_parts_fewer_tokens_and_looser_limits_never_cost_more(tmp_path: Path, seed: int) -> None:
    values = case(seed)
    part = accelerators()[str(values["hardware"])]
    usd = cost(tmp_path, values)
    cheaper = {
        "bandwidth": {"figures": f"hbm_gb_per_s: {2 * part.hbm_gb_per_s}"},
        "flops": {
            "figures": f"bf16_tflops: {2 * part.bf16_tflops}, fp8_tflops: {2 * (part.fp8_tflops or 0)}"
        },
        "links": {"figures": f"scale_up_gb_per_s: {2 * part.scale_up_gb_per_s}"},
        "input": {"input_tokens": int(str(values["input_tokens"])) // 2},
        "output": {"output_tokens": int(str(values["output_tokens"])) // 2},
        "ttft": {"ttft_ms": 3000},
        "tpot": {"tpot_ms": 120},
    }
    for name, changes in cheaper.items():
        assert cost(tmp_path, values, **changes) <= usd * (1 + 1e-9), name
    caps = [f"power_cap_w: {ratio * (part.tdp_w or 0)}" for ratio in (1.0, 0.986, 0.7, 0.5)]
    costs = [cost(tmp_path, values, figures=cap) for cap in caps]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(usd)


CAPPED: Final = (
    "A100-SXM-80GB", "H100-SXM", "H200-SXM", "B200-SXM", "B300-SXM", "GB200-NVL72", "L40S", "MI300X",
    "MI355X", "Gaudi3",
)  # fmt: skip
OF_EACH_KIND: Final = ("A100-SXM-80GB", "H200-SXM", "MI300X", "Gaudi3")
"""Without FP8, with measured tables, and by the roofline of two other vendors."""


@pytest.mark.parametrize("name", those_with(CAPPED, OF_EACH_KIND.__contains__))
def test_no_cap_makes_a_request_cheaper(tmp_path: Path, name: str) -> None:
    # Energy alone: whatever a cap does, a replica of the part without it does as much for no more.
    part = accelerators()[name]
    kind = "bf16" if part.fp8_tflops is None else "fp8"
    values = case(1) | {"hardware": name, "model": "llama3-8b", "ttft_ms": 1500, "tpot_ms": 60}
    path = tmp_path / "fleet.yaml"
    charged: list[dict[str, float]] = []
    for ratio in (1.0, 0.986, 0.75, 0.5):
        values["figures"] = f"power_cap_w: {ratio * (part.tdp_w or 0)}"
        text = FLEET.format(**values).replace("weights: fp8, kv: fp8", f"weights: {kind}, kv: bf16")
        path.write_text(text + "    search: {max_accelerators: 1}\n", encoding="utf-8")
        fleet = load_fleet(str(path))
        kwh = {}
        for each in build_candidates(fleet, lambda _: None).candidates:
            idle_kw = fleet.hardware[name].idle_w_per_accelerator * each.accelerators / 1000
            kwh[each.phase] = min(
                kwh.get(each.phase, math.inf), ((each.charged_kw or 0.0) - idle_kw) / each.requests_per_s[0]
            )
            assert (each.power_kw or 0.0) * 1000 <= (part.all_in_w or 1.9 * (part.tdp_w or 0)) + 1e-6
        charged.append(kwh)
    assert charged[0]
    for larger, smaller in itertools.pairwise(charged):
        assert smaller.keys() <= larger.keys()
        assert all(smaller[phase] >= larger[phase] * (1 - 1e-9) for phase in smaller)


def test_a_cap_counts_for_the_power_of_a_region_alone(tmp_path: Path) -> None:
    # 350 of 700 W: three replicas fit where two did, and a request costs what it cost.
    base = {**case(1), "hardware": "H200-SXM", "model": "llama3-8b", "demand": 1}
    path = tmp_path / "fleet.yaml"
    found, caps = [], []
    for figures in ("", "power_cap_w: 350"):
        path.write_text(FLEET.format(**(base | {"figures": figures})), encoding="utf-8")
        kind = load_fleet(str(path)).hardware["H200-SXM"]
        caps.append(kind.power_cap_w)
        found.append(
            (kind.power_w_per_accelerator, kind.installed_w_per_accelerator, kind.idle_w_per_accelerator)
        )
    (full, installed, idle), (capped, same, idle_capped) = found
    assert (full, capped) == (1370, 1020)
    assert (installed, same, idle_capped) == (1370, 1370, idle)
    assert caps == [None, 350]


def test_the_catalogue_s_own_figures_give_the_same_plan(tmp_path: Path) -> None:
    values = case(1) | {"hardware": "H200-SXM"}
    plain, stated = (
        planned(tmp_path, values | {"figures": figures}) for figures in ("", "hbm_gb_per_s: 4800")
    )
    assert plain is not None
    assert stated is not None
    assert stated.placements == plain.placements
    assert stated.objective_usd == plain.objective_usd


def test_scaled_times_are_told(tmp_path: Path) -> None:
    plan = planned(tmp_path, case(1) | {"hardware": "H200-SXM", "figures": "hbm_gb_per_s: 9600"})
    assert plan is not None
    warnings = load_fleet(str(tmp_path / "fleet.yaml")).warnings
    assert any("scaled by the ratio of rooflines" in warning for warning in warnings)
    shares = plan.provenance.spend_share
    assert shares["extrapolated"] > 0.5
    assert shares.get("measured", 0.0) < 0.1
