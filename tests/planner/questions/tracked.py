"""A plan of three quarters, and measurements of one quarter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.planner.command_line import run

from fleetplan.planner.plan import Plan

FLEET = """\
version: 1
name: studio
horizon: {periods: [2027Q1, 2027Q2, 2027Q3]}   # three quarters
regions: {us: {}, eu: {}}
hardware: {A: {accelerators_per_host: 4}, B: {accelerators_per_host: 1}}
pools:
  - {name: us-a, region: us, hardware: A, hosts: 6, owned: {capex_usd_per_host: 100000, in_service: 2026Q1}}
  - {name: eu-a, region: eu, hardware: A, hosts: 4, rented: {usd_per_accelerator_hour: 1.5}}   # until 2028
offers:
  - {name: a-buy, hardware: A, regions: [us], capex_usd_per_host: 100000, lead_time_quarters: 1}
  - {name: b-rent, hardware: B, regions: [us, eu], per: accelerator, rent_usd_per_accelerator_hour: 2.0}
services:
  # What people talk to; imports nothing.
  - name: chat
    engines: engines.csv
    slo: {tpot_ms: 50}
    demand: {us: 15, eu: 8}
  - name: code
    engines: engines.csv
    demand: {us: {2027Q1: 6, 2027Q2: 7, 2027Q3: 8}}   # as sales says
    growth: 10 %/quarter
"""
ENGINES = """\
phase,hardware,config,accelerators_per_replica,requests_per_s,tpot_ms
aggregated,A,one,1,1,30
aggregated,B,one,1,1,35
"""


def happened(
    plan: Plan, period: str, demand: dict[str, float], rates: dict[str, float], price: float = 1.0
) -> None:
    """Write what was measured if demand and rates were such multiples of the plan, and prices of eu-a."""
    likely = max(plan.demand_scenarios, key=lambda row: row.probability, default=None)
    scenario = None if likely is None else likely.name
    assert plan.inputs is not None
    lines = ["period,service,region,pool,requests_per_s,accelerators,utilisation,tpot_ms,usd"]
    for asked in plan.inputs.demand:
        if (asked.period, asked.scenario) == (period, scenario):
            rate = asked.requests_per_s * demand.get(asked.service, 1.0)
            lines.append(f"{period},{asked.service},{asked.region},,{rate},,,,")
    for row in plan.placements:
        if (row.period, row.scenario) == (period, scenario):
            served = row.requests_per_s * demand.get(row.service, 1.0)
            busy = served / rates.get(row.service, 1.0)
            # More replicas are started so that each is as busy as 80 %.
            lines.append(f"{period},{row.service},,{row.pool},{served},{busy / 0.8},0.8,{row.tpot_ms},")
    for pool in plan.pools:
        if (pool.period, pool.scenario) == (period, scenario) and pool.accelerators:
            usd = sum(row.usd for row in plan.pools if (row.pool, row.period) == (pool.pool, period))
            usd *= price if pool.pool == "eu-a" else 1.0
            lines.append(f"{period},,,{pool.pool},,{pool.accelerators},{pool.utilisation},,{usd}")
    Path("actuals.csv").write_text("\n".join(lines) + "\n", "utf-8")


_SOLVED: dict[str, bytes] = {}
"""plan.json of the fleets that were planned before: most tests ask what happened to the same plan."""


def planned(fleet: str = FLEET) -> Plan:
    Path("fleet.yaml").write_text(fleet, encoding="utf-8")
    written = Path("q1/plan.json")
    if fleet in _SOLVED:
        written.parent.mkdir()
        written.write_bytes(_SOLVED[fleet])
    else:
        assert run("solve", "fleet.yaml", "--out", "q1", "--time-limit", "20", "--gap", "0.1%") == 0
        _SOLVED[fleet] = written.read_bytes()
    return Plan.read(written)


def tracked(*more: str) -> dict[str, Any]:
    assert run("track", "q1/plan.json", "actuals.csv", "--out", "track", *more) == 0
    found: dict[str, Any] = json.loads(Path("track/track.json").read_text("utf-8"))
    return found
