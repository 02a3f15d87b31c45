"""Purchases, rentals and retirements in the JSON format of a Terraform plan, for policy engines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from fleetplan.fleet.inventory import Currency
from fleetplan.planner.export.launch.deployments import dns_names
from fleetplan.planner.plan import Plan, Purchase, Retired, currency_of, in_currency, titled

FORMAT_VERSION: Final = "1.2"
"""Version of Terraform's JSON output format (developer.hashicorp.com/terraform/internals/json-format)."""

PROVIDER: Final = "fleetplan"
"""Name in place of a provider's address; this plan cannot be applied."""

_BOUGHT: Final = {
    "period", "offer", "region", "pool", "hardware", "units", "unit", "accelerators", "capex_usd", "usd",
    "price_source", "price_as_of",
}  # fmt: skip
_RETIRED: Final = {"period", "pool", "region", "hardware", "hosts", "unit", "usd", "resale_usd"}


def purchase_changes(plan: Plan) -> str:
    """Return purchases, rentals and retirements in the format of `terraform show -json`.

    OPA and conftest read its `resource_changes` and `planned_values`. The keys `fleet`, `plan_format_version`
    and `currency` are extensions, which readers of Terraform's format ignore. Amounts are in the currency of
    the plan's report, with its code in their names: `capex_eur`.
    """
    currency = currency_of(plan)
    if currency is not None:
        plan = in_currency(plan, currency)
    orders = [row for row in plan.purchases if not row.assumed]
    names = dns_names({_key(row): f"{row.offer}-{row.region}-{row.period}" for row in orders})
    bought = [
        (f"fleetplan_{row.kind}", names[_key(row)], _named(row.model_dump(include=_BOUGHT), currency))
        for row in orders
    ]
    changes = [{**_resource(kind, name), "change": _change(after=values)} for kind, name, values in bought]
    leaving = [row for row in plan.retirements if not row.assumed]
    leavers = dns_names({(row.pool, row.period): f"{row.pool}-{row.period}" for row in leaving})
    changes += [
        {
            **_resource(_left_as(row), leavers[row.pool, row.period]),
            "change": _change(before=_named(row.model_dump(include=_RETIRED), currency)),
        }
        for row in leaving
    ]
    planned = [
        {**_resource(kind, name), "schema_version": 0, "values": values} for kind, name, values in bought
    ]
    document = {
        "format_version": FORMAT_VERSION,
        "fleet": plan.fleet,
        "plan_format_version": plan.format_version,
        "timestamp": plan.provenance.created,
        **({} if currency is None else {"currency": asdict(currency)}),
        "planned_values": {"root_module": {"resources": planned}},
        "resource_changes": changes,
        "configuration": {"root_module": {}},
        "complete": True,
        "errored": False,
    }
    return json.dumps(document, indent=2) + "\n"


def _left_as(row: Retired) -> str:
    return "fleetplan_leased" if row.kind == "return" else "fleetplan_owned"


def _named(values: Mapping[str, object], currency: Currency | None) -> dict[str, object]:
    """Return values with the code of a currency in the names of amounts; None keeps USD."""
    return dict(values) if currency is None else {titled(n, currency.code): v for n, v in values.items()}


def _key(row: Purchase) -> tuple[str, str, str]:
    return row.offer, row.pool, row.period


def _resource(kind: str, name: str) -> dict[str, object]:
    return {
        "address": f"{kind}.{name}",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider_name": PROVIDER,
    }


def _change(
    before: dict[str, object] | None = None, after: dict[str, object] | None = None
) -> dict[str, object]:
    """Return a creation (no `before`) or a deletion (no `after`)."""
    return {
        "actions": ["create" if before is None else "delete"],
        "before": before,
        "after": after,
        "after_unknown": {},
        "before_sensitive": {} if before else False,
        "after_sensitive": {} if after else False,
    }
