"""Candidates of services that bring their own rates."""

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
"""Rows of an engine table by phase, hardware, configuration and size: one for each class, or for all."""


def engine_rows(table: pd.DataFrame) -> EngineRows:
    """Rows of an engine table by what they are of."""
    keys = ["phase", "hardware", "config", "accelerators_per_replica"]
    groups: dict[tuple[object, ...], list[Row]] = {}
    # Fleets have thousands of tables of a few rows, each of which pandas takes milliseconds to group.
    for row in table_rows(table, list(table.columns)):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def engine_candidates(fleet: Fleet, service: Service, rows: EngineRows, log: RejectionLog) -> list[Candidate]:
    """Candidates of a service that brings its own rates.

    Parameters
    ----------
    fleet : Fleet
        Whose hardware gives the power where the table does not.
    service : Service
        With `engines`.
    rows : EngineRows
        Its table, as `engine_rows` returns it.
    log : RejectionLog
        Receives what is left out.

    Returns
    -------
    list[Candidate]
        One for each (phase, hardware, config), its rows of request classes joined. A row of `all`
        classes stands for each that has no row of its own.
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
                # The power of the table is that of the work, with the cap that it was measured under.
                uncapped_kw=None if power else replica_uncapped_kw(fleet.hardware[hardware], accelerators),
                provenance=ProvenanceShares(given=1.0),
                kv_gb=tuple(caches) if any(cache is not None for cache in caches) else (),
            )
        )
    return found


def _may_run(
    service: Service, phase: Phase, hardware: str, supplied: set[str], log: RejectionLog, count: int = 1
) -> bool:
    """Whether the fleet and the service allow a phase on a hardware."""
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
    """The row of a class, or the one of all classes, whose label is `all` or missing."""
    general = None
    for row in rows:
        label = row.get("class")
        if label == name:
            return row
        # A table that was made in Python need not have the column.
        if label in (None, "", SINGLE_CLASS) or isinstance(label, float):
            general = row
    return general


def _too_late(service: Service, phase: Phase, row: Row) -> str | None:
    """Which target an engine row states that it misses."""
    ttft = None if phase is Phase.DECODE else optional_figure(row, "ttft_ms")
    tpot = None if phase is Phase.PREFILL else optional_figure(row, "tpot_ms")
    if _exceeds(ttft, service.ttft_ms, service.outside_ms.total_ms):
        return "ttft"
    return "tpot" if _exceeds(tpot, service.tpot_ms, 0.0) else None


def _exceeds(latency_ms: float | None, limit_ms: float | None, outside_ms: float) -> bool:
    """Whether a known latency, with the time outside inference, is above a limit that is set."""
    return latency_ms is not None and limit_ms is not None and latency_ms + outside_ms > limit_ms
