"""Resolve the rules and budgets of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Budget, Policy, Tidal
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.demand import TidalSpec
from fleetplan.fleet.schema.fleet import BudgetSpec, PolicySpec


def resolve_policy(context: Context, spec: PolicySpec, service_names: Sequence[str]) -> Policy:
    """Return the rules of the policy.

    Parameters
    ----------
    context : Context
        Receives issues.
    spec : PolicySpec
        Its block in the file.
    service_names : Sequence[str]
        All services, those with mistakes included.
    """
    here: KeyPath = ("policy", "survive_region_loss")
    for i, name in enumerate(spec.survive_region_loss):
        context.check_name((*here, i), "service", name, service_names)
    if spec.survive_region_loss and len(context.region_names) < 2:
        context.error(here, "with a single region, nothing is left after its loss", "name no service here")
    resolved: dict[str, Any] = {
        "survive_region_loss": tuple(dict.fromkeys(spec.survive_region_loss)),
        "tidal": _tidal(context, spec.tidal),
        # Depends on the hardware, which is resolved later.
        "kv_pairs": None,
    }
    if spec.reserve_hosts_per_pool and spec.reserve_percent_per_pool:
        place: KeyPath = ("policy", "reserve_percent_per_pool")
        context.error(place, "cannot be combined with reserve_hosts_per_pool", "give one of the two")
    alike = {each.name for each in fields(Policy)} & PolicySpec.model_fields.keys() - resolved.keys()
    return Policy(**{name: getattr(spec, name) for name in alike}, **resolved)


def _tidal(context: Context, spec: TidalSpec) -> Tidal:
    tidal = Tidal(spec.usd_per_accelerator, spec.max_share_per_pool)
    if tidal.counts and len(context.slices) < 2:
        context.warn(("policy", "tidal"), "has no effect: the day has no slices")
    return tidal


def resolve_budget(context: Context, spec: BudgetSpec) -> Budget:
    """Return the spending limits of a plan.

    Parameters
    ----------
    context : Context
        Receives issues.
    spec : BudgetSpec
        Its block in the file.
    """
    capex = spec.capex_usd
    by_period: tuple[float | None, ...] = (None,) * len(context.periods)
    if isinstance(capex, Mapping):
        context.check_periods(("budget", "capex_usd"), capex)
        without = [period for period in context.stated if period not in capex]
        if without:
            context.warn(("budget", "capex_usd"), f"has no value for {', '.join(without)}: no limit there")
        by_period = context.extended([capex.get(period) for period in context.stated])
    whole = {
        "capex_usd": None if isinstance(capex, Mapping) else capex,
        "opex_usd": spec.opex_usd,
        "tco_usd": spec.tco_usd,
    }
    for key, limit in whole.items():
        if context.extended_by and limit is not None:
            message = "would limit the cost of the extension of the horizon too (horizon.extend_quarters)"
            context.error(("budget", key), message, "capex_usd by period")
    return Budget(
        capex_usd_by_period=by_period,
        **whole,
    )
