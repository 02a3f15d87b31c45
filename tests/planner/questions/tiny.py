"""Random tiny fleets with engine tables, for solving changed fleets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from tests.planner.random_fleets import PlanningCase

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.search.result import SearchLimits

ENGINE_COLUMNS = [
    "phase",
    "hardware",
    "accelerators_per_replica",
    "config",
    "class",
    "requests_per_s",
    "power_kw",
]
EXACT = SearchLimits(time_limit_s=20.0, gap_ratio=0.0, workers=1)


def with_engine_tables(case: PlanningCase) -> Fleet:
    """Return the fleet of a case, with the candidates of each service as its own rates."""
    services = []
    for service in case.fleet.services:
        rows = [
            {
                "phase": candidate.phase.value,
                "hardware": candidate.hardware,
                "accelerators_per_replica": candidate.accelerators,
                "config": candidate.config,
                "class": request_class.name,
                "requests_per_s": rate,
                "power_kw": candidate.power_kw,
            }
            for candidate in case.candidates
            if candidate.service == service.name
            for request_class, rate in zip(service.classes, candidate.requests_per_s, strict=True)
        ]
        services.append(replace(service, engines=pd.DataFrame(rows, columns=ENGINE_COLUMNS)))
    return replace(case.fleet, services=tuple(services))


def engine_table(rows: Sequence[tuple[str, str, int, float]], power_kw: float | None = None) -> pd.DataFrame:
    """Rates by (phase, hardware, accelerators of a replica, requests/s)."""
    return pd.DataFrame(
        [
            {
                "phase": phase,
                "hardware": kind,
                "accelerators_per_replica": accelerators,
                "config": f"x{accelerators}",
                "requests_per_s": rate,
                "power_kw": power_kw,
            }
            for phase, kind, accelerators, rate in rows
        ]
    )
