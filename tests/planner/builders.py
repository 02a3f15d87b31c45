"""Small fleets built in code, so that a test shows every figure that it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fleetplan.fleet.inventory import (
    Budget,
    Demand,
    DemandCase,
    DemandRates,
    Fleet,
    Hardware,
    Offer,
    Owned,
    Policy,
    Pool,
    Precision,
    Region,
    Rented,
    RequestClass,
    Service,
    Slice,
)
from fleetplan.planner.problem import Candidate, Phase, ProvenanceShares

ONE_PERIOD = ("now",)
HOURS_PER_QUARTER = 2190


def hardware(name: str, per_host: int = 8, power_w: float | None = None, idle_w: float = 0.0) -> Hardware:
    return Hardware(name, per_host, None, power_w, idle_w)


def region(name: str = "here", **changes: object) -> Region:
    fields: dict[str, object] = {
        "name": name,
        "power_kw": None,
        "pue": 1.0,
        "energy_usd_per_kwh": None,
        "hosting_usd_per_kw_month": 0.0,
    }
    return Region(**{**fields, **changes})  # type: ignore[arg-type]


def rent_offer(
    name: str,
    usd_per_hour: float,
    *,
    hardware: str | None = None,
    regions: Sequence[str] = ("here",),
    maximum: int | None = None,
    unit: str = "accelerator",
    per_unit: int = 1,
    periods: Sequence[str] = ONE_PERIOD,
    energy_included: bool = False,
) -> Offer:
    return Offer(
        name=name,
        hardware=hardware or name,
        regions=tuple(regions),
        unit=unit,
        accelerators_per_unit=per_unit,
        capex_usd_per_host=None,
        rent_usd_per_accelerator_hour=tuple(usd_per_hour for _ in periods),
        energy_included=energy_included,
        lead_time_periods=0,
        max_units=tuple(maximum for _ in periods),
        life_periods=16,
        maintenance_ratio_per_year=0.0,
        price_source="test",
    )


def buy_offer(
    name: str,
    capex_usd: float,
    *,
    hardware: str | None = None,
    regions: Sequence[str] = ("here",),
    maximum: int | None = None,
    per_unit: int = 8,
    lead: int = 0,
    life: int = 16,
    periods: Sequence[str] = ONE_PERIOD,
) -> Offer:
    return Offer(
        name=name,
        hardware=hardware or name,
        regions=tuple(regions),
        unit="host",
        accelerators_per_unit=per_unit,
        capex_usd_per_host=capex_usd,
        rent_usd_per_accelerator_hour=None,
        energy_included=False,
        lead_time_periods=lead,
        max_units=tuple(maximum for _ in periods),
        life_periods=life,
        maintenance_ratio_per_year=0.0,
        price_source="test",
    )


def rented_pool(
    name: str,
    hosts: int,
    usd_per_hour: float,
    *,
    hardware: str | None = None,
    per_host: int = 8,
    region: str = "here",
    periods: Sequence[str] = ONE_PERIOD,
) -> Pool:
    rent = Rented(tuple(usd_per_hour for _ in periods), False, "test")
    return Pool(name, region, hardware or name, hosts, per_host, None, rent)


def owned_pool(
    name: str,
    hosts: int,
    capex_usd: float,
    *,
    hardware: str | None = None,
    per_host: int = 8,
    region: str = "here",
) -> Pool:
    return Pool(name, region, hardware or name, hosts, per_host, Owned(capex_usd, None, 16, 0.0), None)


def by_case(demand: DemandRates, ratios: Mapping[DemandCase, DemandRates] | None = None) -> Demand:
    """Return the demand by case from ratios to the base case; missing ratios are 1. [requests/s]"""
    cases = {
        case: {key: float(f"{rate * own.get(key, 1.0):.12g}") for key, rate in demand.items()}
        for case, own in (ratios or {}).items()
    }
    return Demand({(None, None): demand, **cases})


def service(
    name: str,
    demand: float | Mapping[str, float] | Mapping[tuple[str, str, str], float],
    *,
    classes: Mapping[str, float] | None = None,
    regions: Sequence[str] = ("here",),
    periods: Sequence[str] = ONE_PERIOD,
    ratios: Mapping[DemandCase, DemandRates] | None = None,
    **changes: object,
) -> Service:
    """A service; `demand` is a rate everywhere, rates by class, or the full mapping; ratios are of cases."""
    names = list(classes or {"all": 1.0})
    if isinstance(demand, Mapping):
        full = {
            (r, q, k): demand.get((r, q, k), demand.get(k, 0.0))  # type: ignore[call-overload]
            for r in regions
            for q in periods
            for k in names
        }
    else:
        shares = classes or {"all": 1.0}
        full = {(r, q, k): demand * shares[k] for r in regions for q in periods for k in names}
    fields: dict[str, object] = {
        "name": name,
        "model": None,
        "engines": pd.DataFrame(),
        "precision": Precision("bf16", "bf16"),
        "classes": tuple(RequestClass(k, (classes or {"all": 1.0})[k], None, None, None) for k in names),
        "ttft_ms": None,
        "tpot_ms": None,
        "demand": by_case(full, ratios or {}),
        "headroom": 0.0,
        "priority": 1,
        "runtimes": ("disaggregated", "aggregated"),
        "framework": "vllm",
        "allowed_hardware": None,
    }
    return Service(**{**fields, **changes})  # type: ignore[arg-type]


def candidate(
    service: str,
    hardware: str,
    rates: float | Sequence[float],
    *,
    phase: str = "aggregated",
    accelerators: int = 1,
    config: str | None = None,
    power_kw: float | None = None,
) -> Candidate:
    by_class = (rates,) if isinstance(rates, int | float) else tuple(rates)
    none = tuple(None for _ in by_class)
    return Candidate(
        service=service,
        phase=Phase(phase),
        hardware=hardware,
        config=config or f"x{accelerators}",
        accelerators=accelerators,
        requests_per_s=tuple(float(rate) for rate in by_class),
        ttft_ms=none,
        tpot_ms=none,
        power_kw=power_kw,
        provenance=ProvenanceShares(given=1.0),
    )


def fleet(
    *,
    services: Sequence[Service],
    hardware: Sequence[Hardware],
    pools: Sequence[Pool] = (),
    offers: Sequence[Offer] = (),
    regions: Sequence[Region] | None = None,
    periods: Sequence[str] = ONE_PERIOD,
    policy: Mapping[str, object] | None = None,
    budget: Mapping[str, object] | None = None,
    slices: Sequence[Slice] = (),
) -> Fleet:
    rules: dict[str, object] = {
        "reserve_hosts_per_pool": 0,
        "max_configs_per_service_region": None,
        "kv_transfer": "same-region",
        "transition_usd_per_accelerator": 0.0,
        "unmet": "forbid",
    }
    limits: dict[str, object] = {
        "capex_usd_by_period": tuple(None for _ in periods),
        "capex_usd": None,
        "opex_usd": None,
        "tco_usd": None,
    }
    return Fleet(
        name="test",
        path=Path("test.yaml"),
        periods=tuple(periods),
        regions=tuple(regions or (region(),)),
        hardware={kind.name: kind for kind in hardware},
        pools=tuple(pools),
        offers=tuple(offers),
        services=tuple(services),
        policy=Policy(**{**rules, **(policy or {})}),  # type: ignore[arg-type]
        budget=Budget(**{**limits, **(budget or {})}),  # type: ignore[arg-type]
        objective="tco",
        warnings=(),
        input_hashes={},
        slices=tuple(slices),
    )
