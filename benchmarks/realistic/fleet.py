"""Write a realistic fleet as a file that a user could read and change."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.realistic.kinds import KINDS
from benchmarks.realistic.places import NETWORK_USD_PER_GB, PLACES, round_trip_ms, slices_of
from benchmarks.realistic.services import ServiceDemand, Setting, services
from benchmarks.realistic.sizes import PLAIN, SIZES, Switch, periods_of, slice_count, switches_of
from benchmarks.realistic.supply import L40S_ALL_IN_W, PARTS, offers, pools

from fleetplan.fleet.document.plain import yaml_text

TRAFFIC: Final = Path(__file__).resolve().parents[2] / "scenarios" / "traffic"
"""How lengths spread, for fleets with percentiles."""

LINE_WIDTH: Final = 112

POWER_SLACK: Final = 1.08
"""Power of a site over what its hosts and the growth of its demand take; an assumption."""

BOOM_RATIO: Final = 1.25
"""Demand of the services that people use, over the planned one, if all goes well; an assumption."""

CAPITAL_SHARE: Final = 0.05
"""Part of the last quarter's need that a quarter's budget buys, as B200."""

_ABOUT: Final = """\
# {size}, variant {variant}, seed {seed}: {services} services in {regions} regions, {pools} pools of
# {installed:,} accelerators, {periods[0]} to {last}.
#
# Nobody's fleet. Models, lengths and latency limits: public figures, as each service says. Prices: the price
# book of 2026-08 and assumptions, drawn within some per cent. Demand, pools, power and budget: drawn.
#   [azure] Azure LLM inference traces 2023   [mooncake] Mooncake traces, FAST'25   [lmsys] LMSYS-Chat-1M
#   [table 2] Meta, Optimizing Deployment Configurations for LLM Inference, Table 2
"""


def write_fleet(folder: Path, size_name: str, seed: int, variant: str = PLAIN) -> Path:
    """Write a fleet into a folder, as `write_file` does, and return the path of its fleet.yaml."""
    return write_file(folder / "fleet.yaml", size_name, seed, variant)


def write_file(path: Path, size_name: str, seed: int, variant: str = PLAIN) -> Path:
    """Write a fleet.

    Parameters
    ----------
    path : Path
        The file; its folder is created, and receives `traffic/` where the fleet has percentiles.
    size_name : str
        A key of `SIZES`.
    seed : int
        The same seed writes the same file.
    variant : str
        `plain`, or switches joined by +.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ValueError
        If there is no such size or variant.
    """
    if size_name not in SIZES:
        raise ValueError(f"no size {size_name!r}; there are {', '.join(SIZES)}")
    switches = switches_of(variant)
    size = SIZES[size_name]
    rng = random.Random(f"realistic {size_name} {seed}")
    regions = tuple(list(PLACES)[: rng.randint(*size.regions)])
    setting = Setting(size, switches, regions, tuple(periods_of(size, switches)))
    asked = services(rng, setting)
    document = _document(rng, setting, asked)
    document["name"] = f"{size_name}-{variant}-{seed}"
    header = _ABOUT.format(
        size=size_name,
        variant=variant,
        seed=seed,
        services=len(asked),
        regions=len(regions),
        pools=len(document["pools"]),
        installed=sum(
            pool["hosts"] * PARTS[pool["hardware"]].accelerators_per_host for pool in document["pools"]
        ),
        periods=setting.periods,
        last=setting.periods[-1],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + _text(document, {each.name: each.kind for each in asked}), encoding="utf-8")
    if Switch.PERCENTILES in switches:
        shutil.copytree(TRAFFIC, path.parent / "traffic", dirs_exist_ok=True)
    return path


def _document(rng: random.Random, setting: Setting, asked: Sequence[ServiceDemand]) -> dict[str, Any]:
    """All blocks of the file, in the order in which people write them."""
    need = {
        (region, period): sum(each.need.get((region, period), 0.0) for each in asked)
        for region in setting.regions
        for period in setting.periods
    }
    standing = pools(rng, need, setting.periods, setting.size.pools)
    # Sites and contracts are made for the largest demand that anybody counts on.
    most = BOOM_RATIO if Switch.SCENARIOS in setting.switches else 1.0
    foreseen = {key: most * each for key, each in need.items()}
    horizon: dict[str, Any] = {"periods": list(setting.periods)}
    parts = slice_count(setting.switches)
    if parts > 1:
        horizon["slices"] = slices_of(parts)
    document: dict[str, Any] = {
        "version": 1,
        "name": "",
        "horizon": horizon,
        "regions": _regions(setting, foreseen, standing),
        "hardware": {"L40S": {"all_in_w": L40S_ALL_IN_W}},
        "pools": standing,
        "offers": offers(rng, foreseen, setting.periods, setting.size.offers),
        "services": [each.spec for each in asked],
        "policy": _policy(rng, setting, asked),
        "budget": {"capex_usd": _capital(need, setting)},
        "finance": {
            "method": rng.choice(("straight-line", "straight-line", "annuity")),
            "discount_rate": rng.choice((0.07, 0.08, 0.09)),
            "per_host_usd_per_quarter": {"network": 900, "software": 1100, "staff": 700},
        },
    }
    if Switch.SCENARIOS in setting.switches:
        document["uncertainty"] = _uncertainty(asked)
    return document


def _regions(
    setting: Setting, need: Mapping[tuple[str, str], float], standing: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Sites whose power holds what stands there and what demand grows by, with steps in mid-year."""
    found: dict[str, Any] = {}
    for index, region in enumerate(setting.regions):
        place = PLACES[region]
        here = [pool for pool in standing if pool["region"] == region]
        cards = {pool["name"]: pool["hosts"] * PARTS[pool["hardware"]].accelerators_per_host for pool in here}
        kw = sum(cards[pool["name"]] * PARTS[pool["hardware"]].kw for pool in here)
        capacity = sum(cards[pool["name"]] * PARTS[pool["hardware"]].speed for pool in here)
        steps = {
            period: setting.periods[min(len(setting.periods) - 1, q // 2 * 2 + 1)]
            for q, period in enumerate(setting.periods)
        }
        power = {
            # Half as much again as what is lacking: replicas and hosts come in whole numbers.
            period: kw + 1.5 * max(0.0, need[region, step] - capacity) * PARTS["H100-SXM"].kw
            for period, step in steps.items()
        }
        others = setting.regions[index + 1 :]
        found[region] = {
            "power_kw": {p: int(round(each * place.pue * POWER_SLACK + 20, -1)) for p, each in power.items()},
            "pue": place.pue,
            "energy_usd_per_kwh": place.energy_usd_per_kwh,
            "grid_kg_co2_per_kwh": place.grid_kg_co2_per_kwh,
        }
        if others:
            found[region]["round_trip_ms"] = {other: round_trip_ms(region, other) for other in others}
            found[region]["network_usd_per_gb"] = dict.fromkeys(others, NETWORK_USD_PER_GB)
    return found


def _policy(rng: random.Random, setting: Setting, asked: Sequence[ServiceDemand]) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "reserve_hosts_per_pool": setting.size.reserve_hosts,
        "max_configs_per_service_region": rng.choice((3, 4, 4)),
        "transition_usd_per_accelerator": rng.choice((5, 10, 20)),
        "unmet": "forbid",
    }
    if Switch.REGION_LOSS in setting.switches:
        policy["survive_region_loss"] = [each.name for each in asked if KINDS[each.kind].protected]
    if Switch.TIDAL in setting.switches:
        policy["tidal"] = {"usd_per_accelerator": 0.05, "max_share_per_pool": 0.5}
    return policy


def _capital(need: Mapping[tuple[str, str], float], setting: Setting) -> dict[str, int]:
    """What may be spent on purchases in each quarter, in whole millions."""
    total = sum(need[region, setting.periods[-1]] for region in setting.regions)
    part = PARTS["B200-SXM"]
    usd = CAPITAL_SHARE * total / part.speed / part.accelerators_per_host * part.capex_usd_per_host
    return dict.fromkeys(setting.periods, max(1_000_000, int(round(usd, -6))))


def _uncertainty(asked: Sequence[ServiceDemand]) -> dict[str, Any]:
    """Three ways in which demand may turn out; a boom is one of the services that people use."""
    boom = {
        each.name: BOOM_RATIO for each in asked if KINDS[each.kind].priority == 1 and "demand" in each.spec
    }
    return {
        "objective": "expected-cost",
        "scenarios": [
            {"name": "slow", "probability": 0.25, "demand_ratio": 0.85},
            {"name": "planned", "probability": 0.5},
            {"name": "boom", "probability": 0.25, "demand_ratio": boom},
        ],
    }


def _text(document: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """The document as YAML: inner mappings on a line each, and a comment above every service."""
    blocks = []
    for key, block in document.items():
        if key in ("pools", "offers", "services"):
            blocks.append(f"\n{key}:\n" + "".join(_item(each, key, kinds) for each in block))
        else:
            blocks.append(f"\n{_dumped({key: block})}" if isinstance(block, dict) else f"{key}: {block}\n")
    return "".join(blocks)


def _item(item: Mapping[str, Any], key: str, kinds: Mapping[str, str]) -> str:
    lines = _dumped([item]).splitlines()
    if key == "services":
        lines.insert(0, f"\n# {kinds[item['name']]}: {KINDS[kinds[item['name']]].about}")
    return "".join(f"  {line}\n" if line and line[0] != "\n" else f"\n  {line[1:]}\n" for line in lines)


def _dumped(value: object) -> str:
    return yaml_text(value, default_flow_style=None, width=LINE_WIDTH)
