"""A random plan with other hardware and layouts: what exports read of it, beyond what small fleets plan.

Random fleets have hosts of one or two accelerators, as their landscapes then take hundredths of a second.
Exports read neither rates nor costs, so a plan may be given the parts, hosts and layouts of large fleets.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.parallelism import Configuration, parse_parallelism
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.plan.inputs import HardwareInput, LaunchInput

LAYOUTS = (
    "TP1", "TP2", "TP4", "TP8", "TP16", "PP2", "PP3-TP2", "PP2-TP4", "PP4-TP8", "DP2-TP2", "DP4-EP4",
    "DP8-EP8", "DP16-EP16", "TP4DP2-TP8", "TP2DP8-EP16", "PP2-DP8-EP8", "TP8CP2-TP16", "TP2CP4-TP8",
    "CP4-EP4", "TP3",
)  # fmt: skip
"""Within a host and over several, evenly and not, for dense models and mixtures."""

PARTS = (
    "H100-SXM", "H200-SXM", "B200-SXM", "A100-SXM-80GB", "A100-SXM-40GB", "L4", "L40S", "GB200-NVL72",
    "MI300X", "Gaudi3", "TPU-v5e", "TPU-v6e", "TPU-7x", "Trainium2",
)  # fmt: skip

HOST_SIZES = (1, 4, 8)

ConfigKey = tuple[str, str, str, str]
"""Service, phase, hardware and configuration."""


def enlarged(plan: Plan, dice: random.Random) -> Plan:
    """Return a plan with parts of the catalogue and layouts of any size; its costs are those of before.

    Parameters
    ----------
    plan : Plan
        With its inputs.
    dice : random.Random
        For parts, sizes of hosts and layouts.
    """
    assert plan.inputs is not None
    hardware = tuple(_on_a_part(each, dice) for each in plan.inputs.hardware)
    modelled = {each.name for each in plan.inputs.services if each.variants}
    labels: dict[ConfigKey, str] = {}
    for row in plan.placements:
        if row.service in modelled and _key(row) not in labels:
            labels[_key(row)] = _another(row, labels, dice)
    rows = tuple(_with_label(row, labels) for row in plan.placements)
    launches = tuple(
        _with_facts(each, labels[key], dice) if (key := _key(each)) in labels else each
        for each in plan.inputs.launches
    )
    per_host = {each.name: each.accelerators_per_host for each in hardware}
    inputs = plan.inputs.model_copy(update={"hardware": hardware, "launches": launches})
    return _with_room(plan.model_copy(update={"placements": rows, "inputs": inputs}), per_host, dice)


def _on_a_part(each: HardwareInput, dice: random.Random) -> HardwareInput:
    part = accelerators()[dice.choice(PARTS)]
    size = part.accelerators_per_host if dice.random() < 0.5 else dice.choice(HOST_SIZES)
    return each.model_copy(update={"part": part.name, "vendor": part.vendor, "accelerators_per_host": size})


def _key(row: Placement | LaunchInput) -> ConfigKey:
    return row.service, row.phase, row.hardware, row.config


def _another(row: Placement, taken: Mapping[ConfigKey, str], dice: random.Random) -> str:
    """A configuration with another layout, which no other one of its service, phase and hardware has."""
    known = Configuration.parse(row.config)
    while True:
        label = replace(known, layout=parse_parallelism(dice.choice(LAYOUTS))).label
        if label not in {new for key, new in taken.items() if key[:3] == _key(row)[:3]}:
            return label


def _with_label(row: Placement, labels: Mapping[ConfigKey, str]) -> Placement:
    label = labels.get(_key(row))
    if label is None:
        return row
    count = row.replicas * Configuration.parse(label).layout.accelerators
    return row.model_copy(update={"config": label, "accelerators": count})


def _with_facts(each: LaunchInput, label: str, dice: random.Random) -> LaunchInput:
    """Return model facts that a layout allows: a mixture if the layout splits experts."""
    latent = dice.random() < 0.5
    facts = {
        "config": label,
        "experts": each.experts or Configuration.parse(label).layout.ep > 1,
        "latent_attention": latent,
        "kv_heads": None if latent else each.kv_heads,
    }
    return each.model_copy(update=facts)


def _with_room(plan: Plan, per_host: Mapping[str, int], dice: random.Random) -> Plan:
    """Pools that hold what is placed in them, in whole hosts or not, as many in every moment of a period."""
    used: Counter[tuple[str, str, str | None, str | None]] = Counter()
    for row in plan.placements:
        used[row.pool, row.period, row.slice, row.scenario] += row.accelerators
    most: dict[tuple[str, str], int] = defaultdict(int)
    for use in plan.pools:
        here = used[use.pool, use.period, use.slice, use.scenario]
        key = use.pool, use.period
        most[key] = max(most[key], use.accelerators, here + use.reserve_accelerators)
    by_host = {name for name in sorted({use.pool for use in plan.pools}) if dice.random() < 0.5}
    pools = []
    for use in plan.pools:
        held = most[use.pool, use.period]
        if use.pool in by_host:
            held = math.ceil(held / per_host[use.hardware]) * per_host[use.hardware]
        here = used[use.pool, use.period, use.slice, use.scenario]
        pools.append(use.model_copy(update={"accelerators": held, "used_accelerators": here}))
    return plan.model_copy(update={"pools": tuple(pools)})
