"""Provenance of a plan: versions, files, prices, sources of its spend, and published errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.packages import installed_versions
from fleetplan.fleet.resolve import stale_prices
from fleetplan.planner.candidates import CandidateSet, model_errors
from fleetplan.planner.plan import Placement, PlanProvenance, Solve
from fleetplan.planner.search import SearchLimits, SearchResult


def provenance(fleet: Fleet, candidates: CandidateSet, limits: SearchLimits) -> PlanProvenance:
    """Return the provenance of a plan, except for the evidence behind its spend."""
    versions = installed_versions()
    prices = {offer.price_source for offer in fleet.offers}
    prices |= {pool.rented.price_source for pool in fleet.pools if pool.rented is not None}
    return PlanProvenance(
        fleetplan_version=versions["fleetplan"],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        fleet_file=str(fleet.path),
        scenarios=fleet.scenarios,
        assignments=fleet.assignments,
        inputs_sha256=dict(fleet.input_hashes),
        # Processes read tables in varying order, so sort them.
        table_sources=tuple(sorted(candidates.table_sources, key=lambda each: (each.package, each.path))),
        price_sources=tuple(sorted(prices)),
        versions=versions,
        seed=limits.seed,
        time_limit_s=limits.time_limit_s,
        gap_limit=limits.gap_ratio,
        spend_share={},
        warnings=(
            *fleet.warnings,
            *stale_prices(fleet, datetime.now(UTC).date()),
            *candidates.warnings,
        ),
        calibrations=candidates.calibrations,
    )


def solve_record(result: SearchResult) -> Solve:
    """Return the record of the search for the plan."""
    return Solve(
        wall_s=result.wall_s,
        deterministic_time=result.deterministic_time,
        status=result.status.value,
        bound_source=result.bound_source,
    )


def with_evidence(known: PlanProvenance, rows: Sequence[Placement]) -> PlanProvenance:
    """Add the sources of the rates that the plan pays for, and their published errors."""
    errors = model_errors((row.hardware, row.provenance) for row in rows)
    return known.model_copy(update={"spend_share": _spend_share(rows), "model_errors": errors})


def _spend_share(rows: Sequence[Placement]) -> dict[str, float]:
    """Return the share of the placements' spend by source of their rates."""
    spend: dict[str, float] = defaultdict(float)
    total = sum(row.usd for row in rows)
    for row in rows:
        for kind, share in row.provenance.items():
            spend[kind] += share * row.usd
    return {kind: usd / total for kind, usd in spend.items()} if total > 0 else {}
