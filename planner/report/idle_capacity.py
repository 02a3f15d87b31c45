"""Idle capacity by cause (reserve, out of service, unused, sold), and why unused hosts are not sold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.figures import LEAST_USD, money
from fleetplan.planner.plan import Plan, PoolUse, SupplyOption

STANDING: Final = "standing hosts"
"""Bill item of installed hosts from the fleet file."""


@dataclass(frozen=True, slots=True)
class IdleCost:
    """Cost of idle capacity by cause. [USD]

    Attributes
    ----------
    reserve_usd, out_usd, unused_usd : float
        Cost of accelerators kept free for failures, out of service, and unused.
    """

    reserve_usd: float = 0.0
    out_usd: float = 0.0
    unused_usd: float = 0.0

    def plus(self, other: IdleCost) -> IdleCost:
        """Return the sum of both costs."""
        return IdleCost(
            self.reserve_usd + other.reserve_usd,
            self.out_usd + other.out_usd,
            self.unused_usd + other.unused_usd,
        )

    def parts(self) -> dict[str, float]:
        """Return the causes by name, without those that cost nothing."""
        named = {
            "reserve": self.reserve_usd,
            "out of service": self.out_usd,
            "unused": self.unused_usd,
        }
        return {name: usd for name, usd in named.items() if usd >= LEAST_USD}


@dataclass(frozen=True, slots=True)
class IdlePool:
    """A pool with idle capacity or with departing hosts.

    Attributes
    ----------
    pool, hardware : str
        Names of the pool and its hardware.
    unused_accelerators : int
        Minimum over moments of the accelerators that are neither used, in reserve nor out of service.
    cost : IdleCost
        Cost of idle capacity over the horizon.
    hosts_sold : int
        Number of departing hosts.
    sold_usd : float
        Book value of departing hosts less their sale; negative if they sell for more. [USD]
    why_kept : str
        Why unused hosts are not sold; empty if no host is unused.
    """

    pool: str
    hardware: str
    unused_accelerators: int
    cost: IdleCost
    hosts_sold: int
    sold_usd: float
    why_kept: str


def idle_pools(plan: Plan) -> tuple[IdlePool, ...]:
    """Return the pools with idle capacity or departing hosts, the highest idle cost first."""
    by_pool: dict[str, list[PoolUse]] = defaultdict(list)
    for use in plan.pools:
        by_pool[use.pool].append(use)
    found = []
    for name, uses in by_pool.items():
        cost = IdleCost()
        for use in uses:
            cost = cost.plus(idle_cost(use))
        sold = sum(row.hosts for row in plan.retirements if row.pool == name)
        if not cost.parts() and not sold:
            continue
        unused = min(map(_unused, uses))
        found.append(
            IdlePool(
                name,
                uses[0].hardware,
                unused,
                cost,
                sold,
                sum(use.retirement_usd for use in uses),
                _why_kept(plan, name, uses) if cost.unused_usd >= LEAST_USD else "",
            )
        )
    return tuple(sorted(found, key=lambda row: -sum(row.cost.parts().values())))


def idle_cost(use: PoolUse) -> IdleCost:
    """Return the cost of a pool's idle capacity in a moment, divided between causes by accelerators."""
    idle = use.accelerators - use.used_accelerators
    if idle <= 0:
        return IdleCost(unused_usd=use.idle_usd)
    reserve = use.idle_usd * use.reserve_accelerators / idle
    out = use.idle_usd * use.maintenance_accelerators / idle
    return IdleCost(reserve, out, use.idle_usd * _unused(use) / idle)


def all_idle(plan: Plan) -> IdleCost:
    """Return the cost of idle capacity of the whole plan."""
    total = IdleCost()
    for use in plan.pools:
        total = total.plus(idle_cost(use))
    return total


def _unused(use: PoolUse) -> int:
    """Return the accelerators without a replica that are neither in reserve nor out of service."""
    return use.accelerators - use.used_accelerators - use.reserve_accelerators - use.maintenance_accelerators


def _why_kept(plan: Plan, pool: str, uses: list[PoolUse]) -> str:
    options = [row for row in plan.supply_options if row.pool == pool]
    keep = next((row for row in options if row.option == "keep"), None)
    busiest = min(uses, key=_unused)
    if _unused(busiest) <= 0:
        return f"no accelerator is unused in {' '.join(part for part in busiest.moment_key if part)}"
    if keep is None:
        return "bought or rented in whole hosts"
    if 0 < _unused(busiest) < _accelerators_of_a_host(keep, uses):
        return "less than a host is unused"
    retire = next((row for row in options if row.option == "retire"), None)
    if retire is not None:
        return _why_not_retired(retire)
    return (
        "rented hosts are not sold"
        if _is_rented(plan, pool)
        else "the fleet file gives no resale_usd_per_host"
    )


def _accelerators_of_a_host(keep: SupplyOption, uses: list[PoolUse]) -> int:
    """Return the accelerators per host among hosts that stay for the whole horizon; 0 without such hosts."""
    return min(use.accelerators for use in uses) // keep.units if keep.units else 0


def _why_not_retired(retire: SupplyOption) -> str:
    least = retire.break_even_resale_usd
    if retire.usd_per_accelerator_hour > 0 or least is None:
        return "a sale saves less than the optimality gap, or a rule of the file needs the hosts"
    return f"a sale pays from {money(least)} a host"


def _is_rented(plan: Plan, pool: str) -> bool:
    lines = () if plan.inputs is None else plan.inputs.cost_lines
    return any((row.pool, row.item, row.kind) == (pool, STANDING, "rent") for row in lines)
