"""Values that options and arguments take, by the name of their parameter, and the files behind them.

All are of one small fleet, which is solved in milliseconds: random lines reach the work of a command.
"""

from __future__ import annotations

from typing import Any, Final

from fleetplan.planner.commands.export import FORMAT_NAMES
from fleetplan.planner.commands.replay import ROUTERS

FLEET_FILE, PLAN_FILE = "fleet.yaml", "out/plan.json"

FLEET: Final = """\
version: 1
name: small
horizon: {periods: [2027Q1, 2027Q2], slices: [{name: day, hours: 14}, {name: night, hours: 10}]}
regions: {here: {power_kw: 400, pue: 1.2, energy_usd_per_kwh: 0.1, grid_kg_co2_per_kwh: 0.3}}
hardware:
  gpu: {accelerators_per_host: 8, all_in_w: 1000}
  old: {accelerators_per_host: 4, all_in_w: 600}
pools:
  - {name: own, hardware: old, hosts: 1, owned: {capex_usd_per_host: 9000, in_service: 2026Q1, resale_usd_per_host: 100}}
offers:
  - {name: rent, hardware: gpu, rent_usd_per_accelerator_hour: 1.0, per: accelerator}
services:
  - {name: chat, engines: engines.csv, demand: 9, growth: 10 %/quarter, demand_by_slice: {night: 0.5}}
  - {name: batch, engines: engines.csv, offline: {requests_per_day: 20000}}
scenarios:
  more: {services: [{name: chat, demand: 12}]}
"""  # noqa: E501  (a fleet file)

RIGHT_FILES: Final = {
    FLEET_FILE: FLEET,
    "engines.csv": """\
phase,hardware,config,accelerators_per_replica,requests_per_s
aggregated,gpu,one,1,1.0
aggregated,old,two,2,0.7
prefill,gpu,fast,1,4.0
decode,gpu,slow,1,2.0
""",
    "actuals.csv": "period,service,region,requests_per_s\n2027Q1,chat,here,11\n",
    "stress.csv": "case,service,region,period,unserved_requests_per_s,asked_requests_per_s,kept_least_usd,"
    "kept_most_usd\ndemand +10%,chat,here,2027Q1,1,11,5,6\n",
    "history.csv": "date,service,requests_per_s\n"
    + "".join(f"{2024 + month // 12}-{month % 12 + 1:02},chat,{5 + month / 4}\n" for month in range(30)),
    "cases.csv": "case_id,model,hardware,framework,weights,kv,mode,tp,input_tokens,output_tokens,batch\n"
    "a,llama3-8b,L40S,vllm,bf16,bf16,decode,1,90,9,4\n",
    "inventory.csv": "name,region,hardware,hosts,capex_usd_per_host\nmore,here,L40S,3,50000\n",
    "prices.csv": "name,hardware,regions,rent_usd_per_accelerator_hour\nrent2,L40S,here,0.9\n",
    "trace.csv": "arrival_s,input_tokens,output_tokens\n"
    + "".join(f"{n},{50 + n},{5 + n}\n" for n in range(70)),
}  # fmt: skip
"""Files that commands take; a plan of the fleet stands beside them."""

_FLEETS, _PLANS, _TIMES = (FLEET_FILE,), (PLAN_FILE,), ("1", "2.5")
RIGHT: Final[dict[str, tuple[str, ...]]] = {
    "fleet_file": _FLEETS, "fleet": _FLEETS,
    "plan_file": _PLANS, "old": _PLANS, "new": _PLANS, "baseline": _PLANS,
    "actuals": ("actuals.csv",), "history": ("history.csv",),
    "stress": ("stress.csv",),
    "cases": ("cases.csv",), "trace": ("trace.csv",), "file": (*RIGHT_FILES,), "files": (*RIGHT_FILES,),
    "scenario": ("more",), "assignment": ("services.chat.demand=4", "policy.reserve_hosts_per_pool=0"),
    "why_not": ("gpu", "old", "rent", "aggregated", "here", "chat/gpu/one", "hardware:gpu", "L40S"),
    "grid": ("demand=0.5,1", "price=1,2", "scenario=base,more", "policy.reserve_hosts_per_pool=0,1"),
    "service": ("chat", "batch"), "period": ("2027Q1", "2027Q2"), "part_of_day": ("day", "night"),
    "form": FORMAT_NAMES, "router": ROUTERS, "framework": ("vllm", "sglang", "trtllm"),
    "hardware": ("L40S",), "model": ("llama3-8b",), "location": ("here=europe-west4",),
    "time_limit": _TIMES, "duration": _TIMES, "load_ratio": ("0.5", "1.5"), "gap": ("1%", "0.01", "0"),
    "seed": ("0", "7"), "workers": ("1",), "jobs": ("1",), "backend": ("local",), "share": ("1%", "50%"),
    "within": ("3%", "20%"), "demand": ("10%,-10%", "50%"), "price": ("20%",), "slower": ("10%",),
    "late": ("0", "1", "9"), "lose": ("all", "none", "here"), "days": ("3",), "step": ("300",),
    "out": ("written", "written.csv", "written.yaml", "written/deep/file.html"),
    "csv": ("written.csv",), "plot": ("written.svg",), "next_file": ("next.yaml",), "solve_into": ("next",),
    "condition": ("batch >= 16", "tp == 1"), "input_tokens": ("90",), "output_tokens": ("9",),
    "template": ("tiny", "hetero", "quarterly"), "preset": ("safety",), "prices": ("on_demand_low",),
}  # fmt: skip
"""By the name of the parameter."""

ALWAYS: Final = {
    ("optables", "list"): ("--hardware", "Arc-Pro-B60"),
    ("optables", "report"): ("--hardware", "Arc-Pro-B60", "--framework", "vllm"),
}
"""Words that end each line of a command which reads every table that is installed without them."""


OF_COMMAND: Final = {
    (("import", "inventory"), "file"): ("inventory.csv",),
    (("import", "prices"), "file"): ("prices.csv",),
    (("import", "trace"), "file"): ("trace.csv",),
    (("new",), "file"): ("new.yaml",),
    (("pareto",), "against"): ("energy", "carbon", "accelerators", "latency", "headroom"),
    (("compare",), "against"): ("homogeneous", "no-disaggregation", "single-vendor", "without:gpu", "more"),
}
"""What a parameter of one command takes alone."""


ONE_OF: Final[dict[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    ("explain",): (("--why-not", "old"), ("--service", "chat"), ("--marginal",), ("--full",)),
    ("landscape",): (("--model", "llama3-8b", "--hardware", "L40S", "--input", "90", "--output", "9"),),
}
"""Commands that are asked something by options alone: what a right line has one of."""


def right_value(way: tuple[str, ...], parameter: Any) -> tuple[str, ...]:
    """Return a valid value of a command parameter; None if unknown."""
    name = str(parameter.name)
    return OF_COMMAND.get((way, name), RIGHT.get(name, ()))
