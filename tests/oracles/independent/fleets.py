"""Random small fleets of the fuzzer, with no key but those that the second formulation reads."""

from __future__ import annotations

from tests.fuzz.fleets import Made
from tests.fuzz.fleets import random_fleet as fuzzed

MOST_CELLS = 6
"""Regions, periods, slices and scenarios together: beyond, HiGHS needs minutes rather than seconds."""

BELOW = {
    "budget": "capex_usd opex_usd tco_usd",
    "finance": (
        "discount_rate method per_host_usd_per_quarter per_host_usd_per_quarter.network "
        "per_host_usd_per_quarter.software per_host_usd_per_quarter.staff"
    ),
    "hardware": "accelerators_per_host all_in_w idle_w",
    "horizon": (
        "fiscal_year fiscal_year.first_month fiscal_year.named_after period periods slices slices.hours "
        "slices.name"
    ),
    "name": "",
    "objective": "",
    "offers": (
        "capex_usd_per_host energy_included hardware lead_time_months lead_time_quarters life_quarters "
        "lot_accelerators lot_hosts maintenance_ratio_per_year max_accelerators max_hosts max_share "
        "name per regions rent_usd_per_accelerator_hour residual_ratio spot term_months term_quarters"
    ),
    "policy": (
        "kv_pairs kv_pairs.decode kv_pairs.prefill kv_transfer max_configs_per_service_region "
        "max_share_per_pool reserve_hosts_per_pool reserve_percent_per_pool tidal tidal.max_share_per_pool "
        "tidal.usd_per_accelerator transition_usd_per_accelerator unmet"
    ),
    "pools": (
        "accelerators hardware hosts maintenance_hosts name owned owned.capex_usd_per_host "
        "owned.end_of_life owned.in_service owned.life_quarters owned.maintenance_ratio_per_year "
        "owned.resale_usd_per_host owned.residual_ratio region rented rented.energy_included "
        "rented.usd_per_accelerator_hour reserve_hosts reserve_percent"
    ),
    "regions": ("energy_usd_per_kwh hosting_usd_per_kw_month network_usd_per_gb power_kw pue round_trip_ms"),
    "services": (
        "demand engines hardware headroom mb_per_request name network_latency_ms priority rate_ratio regions "
        "runtimes serve_from served_weight slo slo.tpot_ms slo.ttft_ms"
    ),
    "uncertainty": (
        "objective scenarios scenarios.demand_ratio scenarios.estimate scenarios.name scenarios.probability"
    ),
    "version": "",
}
"""Keys by the block of the file that they stand in."""

KEYS = frozenset({*BELOW, *(f"{block}.{key}" for block, keys in BELOW.items() for key in keys.split())})


def random_fleet(seed: int, most_cells: int = MOST_CELLS) -> Made:
    """Return the fleet of a seed with at most `most_cells` regions, periods, slices and scenarios."""
    return fuzzed(seed, most_cells, KEYS)
