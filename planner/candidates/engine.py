"""Candidates of services with a table of their own rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.fleet.tables import SINGLE_CLASS
from fleetplan.planner.candidates.figures import (
    Row,
    optional_figure,
    replica_power_kw,
    replica_uncapped_kw,
    supplied_hardware,
    table_rows,
)
from fleetplan.planner.candidates.rejections import NO_SUPPLY, NOT_ALLOWED, RejectionLog
from fleetplan.planner.problem import Candidate, Phase, ProvenanceShares

if TYPE_CHECKING:
    import pandas as pd


EngineRows: TypeAlias = Mapping[tuple[object, ...], Sequence[Row]]
"""Rows of an engine table by phase, hardware, configuration and size: one per class, or one for all."""


def engine_rows(table: pd.DataFrame) -> EngineRows:
    """Group the rows of an engine table by deployment."""
    keys = ["phase", "hardware", "config", "accelerators_per_replica"]
    groups: dict[tuple[object, ...], list[Row]] = {}
    # Fleets have thousands of tables with a few rows, each of which pandas takes milliseconds to group.
    for row in table_rows(table, list(table.columns)):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def engine_candidates(fleet: Fleet, service: Service, rows: EngineRows, log: RejectionLog) -> list[Candidate]:
    """Return the candidates of a service with its own rates.

    Parameters
    ----------
    fleet : Fleet
        Fleet whose hardware gives the power if the table does not.
    service : Service
        Service with `engines`.
    rows : EngineRows
        Its table, from `engine_rows`.
    log : RejectionLog
        Receives the rejections.

    Returns
    -------
    list[Candidate]
        One per (phase, hardware, config), with the rows of all request classes. A row for `all` classes
        applies to those without a row.
    """
    names = [request_class.name for request_class in service.classes]
    supplied = set(supplied_hardware(fleet))
    found = []
    for group, records in rows.items():
        phase, hardware, config = str(group[0]), str(group[1]), str(group[2])
        accelerators = int(str(group[3]))
        if not _may_run(service, Phase(phase), hardware, supplied, log):
            continue
        rates, ttft, tpot, caches, power = [], [], [], [], 0.0
        for name in names:
            stated = _row_of_class(records, name)
            rate = 0.0 if stated is None else float(stated["requests_per_s"])
            late = None if stated is None else _too_late(service, Phase(phase), stated)
            if late:
                log.add(service.name, hardware, late)
                rate = 0.0
            rates.append(rate)
            ttft.append(optional_figure(stated, "ttft_ms"))
            tpot.append(optional_figure(stated, "tpot_ms"))
            caches.append(optional_figure(stated, "kv_gb_per_request"))
            power = max(power, optional_figure(stated, "power_kw") or 0.0)
        if not any(rates):
            continue
        found.append(
            Candidate(
                service=service.name,
                phase=Phase(phase),
                hardware=hardware,
                config=config,
                accelerators=accelerators,
                requests_per_s=tuple(rates),
                ttft_ms=tuple(ttft),
                tpot_ms=tuple(tpot),
                power_kw=power or replica_power_kw(fleet.hardware[hardware], accelerators),
                # The power in the table is that of the workload, under the cap it was measured with.
                uncapped_kw=None if power else replica_uncapped_kw(fleet.hardware[hardware], accelerators),
                provenance=ProvenanceShares(given=1.0),
                kv_gb=tuple(caches) if any(cache is not None for cache in caches) else (),
            )
        )
    return found


def _may_run(
    service: Service, phase: Phase, hardware: str, supplied: set[str], log: RejectionLog, count: int = 1
) -> bool:
    """Return whether the fleet and the service allow a phase on a hardware."""
    if hardware not in supplied:
        log.add(service.name, hardware, NO_SUPPLY, count)
        return False
    if service.allowed_hardware is not None and hardware not in service.allowed_hardware:
        log.add(service.name, hardware, NOT_ALLOWED, count)
        return False
    runtime = "aggregated" if phase is Phase.AGGREGATED else "disaggregated"
    if runtime not in service.runtimes:
        log.add(service.name, hardware, f"runtime {runtime} not allowed", count)
        return False
    return True


def _row_of_class(rows: Sequence[Row], name: str) -> Row | None:
    """Return the row of a class, or the row for all classes, whose label is `all` or missing."""
    general = None
    for row in rows:
        label = row.get("class")
        if label == name:
            return row
        # A table made in Python may lack the column.
        if label in (None, "", SINGLE_CLASS) or isinstance(label, float):
            general = row
    return general


def _too_late(service: Service, phase: Phase, row: Row) -> str | None:
    """Return the latency target that an engine row states it misses; None if none."""
    ttft = None if phase is Phase.DECODE else optional_figure(row, "ttft_ms")
    tpot = None if phase is Phase.PREFILL else optional_figure(row, "tpot_ms")
    if _exceeds(ttft, service.ttft_ms, service.outside_ms.total_ms):
        return "ttft"
    return "tpot" if _exceeds(tpot, service.tpot_ms, 0.0) else None


def _exceeds(latency_ms: float | None, limit_ms: float | None, outside_ms: float) -> bool:
    """Return whether a known latency, plus time outside inference, exceeds a limit."""
    return latency_ms is not None and limit_ms is not None and latency_ms + outside_ms > limit_ms
