"""Supply of random fleets: regions, hardware, pools and offers."""

from __future__ import annotations

from typing import Any

from tests.fuzz.fleets.made import ONE_REGION, Made

LIKE = ("GPU-A", "MI300X", "TPU-v6e")
"""Parts of the catalogue without measured tables: their landscapes take hundredths of a second."""

MEASURED = "L40S"
"""A part of the catalogue with measured tables, whose landscapes are as fast where hosts have one card."""

CATALOGUE_W = 750
"""Board power of parts that have none in the catalogue. [W]"""

OWN_COLUMN = "own_contract"
"""Column of prices that a fleet file adds to the price book."""

OWN_TABLE = "operator,dtype,m,n,k,latency_us\ngemm,bf16,1,1024,1024,9\ngemm,bf16,64,1024,1024,12\n"
"""Measured operators of one's own, two of them."""


def regions(made: Made) -> dict[str, Any]:
    """Places; none where the one region needs no name."""
    if made.regions == (ONE_REGION,):
        return {}
    found: dict[str, Any] = {}
    for n, name in enumerate(made.regions):
        made.begin_block()
        node: dict[str, Any] = {}
        if made.wants("regions.energy_usd_per_kwh", max(made.density, 0.3)):
            node["energy_usd_per_kwh"] = made.by_period(0.05, 0.3, 3)
        if made.wants("regions.power_kw"):
            node["power_kw"] = made.by_period(20, 120, 1)
        if made.wants("regions.hosting_usd_per_kw_month"):
            node["hosting_usd_per_kw_month"] = made.figure(50, 200, 0)
        carbon = made.allows("regions.grid_kg_co2_per_kwh")
        if carbon and (made.objective == "carbon" or made.chance(made.density)):
            node["grid_kg_co2_per_kwh"] = made.by_period(0.05, 0.7)
        # The reader wants it as soon as power, energy or carbon counts.
        node["pue"] = made.figure(1.05, 1.5)
        if n:
            node["round_trip_ms"] = {other: made.figure(20, 120, 1) for other in made.regions[:n]}
            if made.wants("regions.network_usd_per_gb", 0.5):
                node["network_usd_per_gb"] = {other: made.figure(0.01, 0.1, 3) for other in made.regions[:n]}
        found[name] = node
    return found


def hardware(made: Made) -> dict[str, Any]:
    """Parts that engine tables name, and now and then one with the figures that a model needs."""
    found: dict[str, Any] = {}
    figured = []
    for name in made.parts:
        made.begin_block()
        node: dict[str, Any] = {
            "accelerators_per_host": made.dice.choice((1, 2, 4, 8, 8)),
            "all_in_w": made.figure(200, 1500, 0),
        }
        kind = made.dice.choice(("bare", "bare", "bare", "own", "own", "like", "like", MEASURED))
        if kind == "own" and made.wants("hardware.bf16_tflops", 1):
            figured.append(name)
            _own_figures(made, node)
        elif kind == "like" and made.wants("hardware.like", 1):
            figured.append(name)
            _changed_part(made, node)
        elif kind == MEASURED and made.wants("hardware.like", 1):
            figured.append(name)
            node |= {"like": MEASURED, "accelerators_per_host": 1}
            _price(made, node)
        else:
            if made.wants("hardware.vendor"):
                node["vendor"] = made.dice.choice(("north", "south"))
            _price(made, node)
        found[name] = node
    made.figured = tuple(figured)
    return found


def _own_figures(made: Made, node: dict[str, Any]) -> None:
    node["accelerators_per_host"] = made.dice.choice((1, 1, 2))
    node["bf16_tflops"] = made.figure(100, 800, 0)
    node["hbm_gib"] = made.figure(24, 100, 0)
    node["hbm_gb_per_s"] = made.figure(800, 4000, 0)
    node["scale_up_gb_per_s"] = made.figure(50, 450, 0)
    _optional_figures(made, node)


def _changed_part(made: Made, node: dict[str, Any]) -> None:
    node["like"] = made.dice.choice(LIKE)
    node["accelerators_per_host"] = made.dice.choice((1, 2))
    node["scale_up_accelerators"] = 2
    _optional_figures(made, node)
    if made.wants("hardware.power_cap_w"):
        # The clock follows a cap from half of the board power on.
        node["tdp_w"] = node.get("tdp_w", CATALOGUE_W)
        node["power_cap_w"] = round(node["tdp_w"] * made.figure(0.6, 1.0), 1)


def _optional_figures(made: Made, node: dict[str, Any]) -> None:
    for key, low, high in (
        ("fp8_tflops", 200, 1600), ("fp4_tflops", 400, 3200), ("int8_tops", 200, 1600),
        ("scale_out_gb_per_s", 5, 50), ("tdp_w", 300, 1000),
    ):  # fmt: skip
        if made.wants(f"hardware.{key}"):
            node[key] = made.figure(low, high, 0)
    if "like" in node:
        for key, low, high in (
            ("bf16_tflops", 100, 800), ("hbm_gib", 24, 100), ("hbm_gb_per_s", 800, 4000),
            ("scale_up_gb_per_s", 50, 450),
        ):  # fmt: skip
            if made.wants(f"hardware.{key}"):
                node[key] = made.figure(low, high, 0)
    elif made.wants("hardware.scale_up_accelerators"):
        node["scale_up_accelerators"] = made.dice.choice((1, 2))
    if made.wants("hardware.vendor"):
        node["vendor"] = made.dice.choice(("north", "south"))
    if made.wants("hardware.profile"):
        node["profile"] = "carried-over"
    if made.wants("hardware.optables"):
        node["optables"] = "operators.csv"
        made.tables["operators.csv"] = OWN_TABLE
    _price(made, node)


def _price(made: Made, node: dict[str, Any]) -> None:
    if made.wants("hardware.price_usd_per_accelerator_hour"):
        node["price_usd_per_accelerator_hour"] = {OWN_COLUMN: made.figure(0.5, 5)}


def _has_column(made: Made, part: str) -> bool:
    return "price_usd_per_accelerator_hour" in made.file["hardware"][part]


def pools(made: Made) -> list[dict[str, Any]]:
    """Return the existing pools: owned, or rented by host or accelerator."""
    return [_pool(made, n) for n in range(made.dice.choice((0, 1, 1, 2)))]


def _pool(made: Made, n: int) -> dict[str, Any]:
    made.begin_block()
    dice = made.dice
    node: dict[str, Any] = {"name": f"p{n}", "hardware": dice.choice(made.parts)}
    if len(made.regions) > 1 or made.wants("pools.region"):
        node["region"] = dice.choice(made.regions)
    owned = made.chance(0.5)
    by_host = owned or made.chance(0.5)
    units = dice.randint(1, 6) if by_host else dice.randint(2, 24)
    node["hosts" if by_host else "accelerators"] = units
    if owned:
        node["owned"] = _owned(made)
    else:
        node["rented"] = _rented(made, node["hardware"])
    if by_host and made.wants("pools.reserve_hosts"):
        node["reserve_hosts"] = dice.randint(0, min(units, 2))
    may_retire = {"resale_usd_per_host", "end_of_life"} & set(node.get("owned", {}))
    if not may_retire and made.wants("pools.maintenance_hosts"):
        node["maintenance_hosts"] = {dice.choice(made.periods): dice.randint(0, min(units, 2))}
    return node


def _rented(made: Made, part: str) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if _has_column(made, part) and made.wants("pools.rented.price_book", 0.6):
        node["price_book"] = OWN_COLUMN
    else:
        node["usd_per_accelerator_hour"] = made.by_period(0.5, 4)
        _dated(made, node, "pools.rented.price_as_of")
    if made.wants("pools.rented.energy_included"):
        node["energy_included"] = made.chance(0.7)
    return node


def _dated(made: Made, node: dict[str, Any], key: str) -> None:
    if made.wants(key):
        node["price_as_of"] = made.dice.choice(("2026", "2026-08", "2026-08-14"))


def _owned(made: Made) -> dict[str, Any]:
    owned: dict[str, Any] = {"capex_usd_per_host": made.figure(40_000, 300_000, -3)}
    _life(made, owned, "pools.owned")
    _dated(made, owned, "pools.owned.price_as_of")
    if not isinstance(owned.get("residual_ratio"), dict) and made.chance(0.3):
        return owned
    owned["in_service"] = made.dice.choice(("2023Q2", "2025Q1", "2026Q4", "2027Q1"))
    if made.quarters and made.wants("pools.owned.resale_usd_per_host"):
        owned["resale_usd_per_host"] = made.by_period(0, 60_000, -3)
    if made.quarters and made.wants("pools.owned.end_of_life"):
        owned["end_of_life"] = made.dice.choice(("2027Q2", "2027Q3", "2028Q1"))
    return owned


def _life(made: Made, node: dict[str, Any], above: str) -> None:
    """Write-off, residual value and maintenance of a purchase."""
    if made.wants(f"{above}.life_quarters"):
        node["life_quarters"] = made.dice.choice((1, 2, 8, 12, 20))
    if made.wants(f"{above}.residual_ratio"):
        node["residual_ratio"] = made.figure(0.05, 0.4)
        if made.chance(0.5):
            life = node.get("life_quarters", 16)
            ages = {"1": 0.8, str(life // 2): 0.45} if life > 3 else {"1": 0.7}
            node["residual_ratio"] = ages | ({str(life): 0.1} if made.chance(0.5) else {})
    if made.wants(f"{above}.maintenance_ratio_per_year"):
        node["maintenance_ratio_per_year"] = made.figure(0.01, 0.1)


def offers(made: Made) -> list[dict[str, Any]]:
    """Return the offers; most fleets can rent everything at a high price, so that a plan exists."""
    found = [_offer(made, n) for n in range(made.dice.choice((1, 2, 2, 3)))]
    if made.chance(0.7):
        for part in made.parts:
            last: dict[str, Any] = {"name": f"last-{part}", "hardware": part}
            if len(made.regions) > 1:
                last["regions"] = list(made.regions)
            found.append(last | {"rent_usd_per_accelerator_hour": made.figure(5, 9)})
    return found


def _offer(made: Made, n: int) -> dict[str, Any]:
    made.begin_block()
    dice = made.dice
    node: dict[str, Any] = {"name": f"o{n}", "hardware": dice.choice(made.parts)}
    if len(made.regions) > 1 or made.wants("offers.regions"):
        node["regions"] = [name for name in made.regions if made.chance(0.7)] or [dice.choice(made.regions)]
    counted = "hosts"
    if made.chance(0.35):
        node["capex_usd_per_host"] = made.figure(40_000, 300_000, -3)
        if made.wants("offers.per"):
            node["per"] = "host"
        _life(made, node, "offers")
    else:
        if made.wants("offers.per", 0.4):
            node["per"] = dice.choice(("accelerator", "accelerator", "host"))
            counted = f"{node['per']}s"
        _rent(made, node)
    if node.get("price_book") is None:
        _dated(made, node, "offers.price_as_of")
    if made.wants("offers.lead_time_quarters"):
        node["lead_time_quarters"] = dice.choice((0, 1, 1, 2))
    if made.wants(f"offers.max_{counted}", max(made.density, 0.3)):
        node[f"max_{counted}"] = _most(made, dice.choice((2, 4, 8, 20)))
    if made.wants(f"offers.lot_{counted}"):
        node[f"lot_{counted}"] = dice.choice((1, 2, 3, 4, 8))
    return node


def _rent(made: Made, node: dict[str, Any]) -> None:
    if _has_column(made, node["hardware"]) and made.wants("offers.price_book", 0.6):
        node["price_book"] = OWN_COLUMN
    else:
        node["rent_usd_per_accelerator_hour"] = made.by_period(0.5, 5)
    if made.wants("offers.energy_included"):
        node["energy_included"] = made.chance(0.7)
    if made.wants("offers.spot"):
        node["spot"], node["max_share"] = True, made.figure(0.2, 0.9)
    elif made.wants("offers.term_quarters"):
        node["term_quarters"] = made.dice.choice((1, 2, 4))
    # Of rent nothing is written off; the reader takes both all the same.
    if made.wants("offers.life_quarters", made.density / 3):
        node["life_quarters"] = made.dice.choice((4, 12))
    if made.wants("offers.maintenance_ratio_per_year", made.density / 3):
        node["maintenance_ratio_per_year"] = made.figure(0.01, 0.1)


def _most(made: Made, most: int) -> Any:
    if len(made.periods) > 1 and made.chance(0.4):
        named = [name for name in made.periods if made.chance(0.8)] or [made.periods[0]]
        return {name: most + n for n, name in enumerate(named)}
    return most
