"""Workbook sheets without prices: purchases, and inputs of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from fleetplan.planner.export.sheets import Cell, Sheet, head
from fleetplan.planner.plan import Plan, Purchase, Retired
from fleetplan.planner.plan.inputs import PlanInputs


def purchases_sheet(plan: Plan) -> Sheet:
    """Return the sheet of purchases, rentals and retirements."""
    rows: list[Sequence[Cell]] = [
        (
            row.period, row.kind + _assumed(row), row.offer, row.region, row.pool, row.hardware, row.units,
            row.unit, row.accelerators, row.capex_usd, row.usd, row.price_source, row.price_as_of,
        )
        for row in plan.purchases
    ]  # fmt: skip
    rows += [
        (
            row.period,
            row.kind + _assumed(row),
            "",
            row.region,
            row.pool,
            row.hardware,
            row.hosts,
            row.unit,
            None,
            None,
            row.usd,
            "",
            None,
        )
        for row in plan.retirements
    ]
    names = head(
        "period, kind, offer, region, pool, hardware, units, unit, accelerators, capex USD, "
        "planned USD over the horizon, source, as of"
    )
    return Sheet("Purchases", names, rows, widths=(10, 10, 22, 14, 24, 18, 8, 12, 13, 14, 30, 60, 12))


def _assumed(row: Purchase | Retired) -> str:
    """Return a mark for orders assumed in the extension of the horizon."""
    return " (assumed)" if row.assumed else ""


def inputs_sheet(inputs: PlanInputs) -> Sheet:
    """Return the sheet of services as planned."""
    rows: list[Sequence[Cell]] = [
        (
            each.name,
            "; ".join(f"{variant.model} ({variant.weights}, KV {variant.kv})" for variant in each.variants),
            each.framework,
            "; ".join(
                f"{kind.name}: {kind.input_tokens} in, {kind.output_tokens} out" for kind in each.classes
            ),
            each.ttft_ms,
            each.tpot_ms,
            each.outside_ms,
            each.headroom,
            each.priority,
        )
        for each in inputs.services
    ]
    names = head(
        "service, model, framework, requests [tokens], TTFT ms, TPOT ms, outside inference ms, "
        "headroom, priority"
    )
    return Sheet("Inputs", names, rows, widths=(24, 50, 12, 50, 10, 10, 20, 10, 10))


def demand_sheet(inputs: PlanInputs) -> Sheet:
    """Return the sheet of every service's demand by region and moment."""
    rows = [
        (
            each.service,
            each.region,
            each.period,
            each.slice,
            each.scenario,
            each.request_class,
            each.requests_per_s,
        )
        for each in inputs.demand
    ]
    names = head("service, region, period, slice, scenario, class, peak requests/s")
    return Sheet("Demand", names, rows, widths=(24, 14, 12, 12, 12, 16, 16))


def sources_sheet(plan: Plan) -> Sheet:
    """Return the sheet of sources of prices, operator times and inputs."""
    provenance = plan.provenance
    rows: list[Sequence[Cell]] = [("price", source, "") for source in provenance.price_sources]
    rows += [
        ("operator table", f"{each.package} {each.package_version}: {each.path}", each.sha256)
        for each in provenance.table_sources
    ]
    rows += [("calibration", each.path, each.sha256) for each in provenance.calibrations]
    rows += [("input", name, digest) for name, digest in provenance.inputs_sha256.items()]
    rows += [("version", name, number) for name, number in provenance.versions.items()]
    rows += [("warning", text, "") for text in provenance.warnings]
    return Sheet("Sources", ("kind", "what", "SHA-256 or version"), rows, widths=(16, 90, 68))
