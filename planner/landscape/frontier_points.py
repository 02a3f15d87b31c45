"""Pareto frontier of each service on each hardware: the choices of the plan."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import read_bytes
from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.landscape import AGGREGATED, PREFILL, LatencyTarget, Points, SearchSpace, pareto_mask
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.cells import as_text, from_text
from fleetplan.planner.landscape.answer import answer
from fleetplan.planner.landscape.question import question_of_service

FRONTIER_FILE: Final = "frontiers.csv"
"""File next to plan.json."""

MOST_POINTS: Final = 40
"""Largest number of points per line; longer lines are thinned evenly, keeping both ends."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Configuration that no other on its hardware beats in both latency and rate.

    Attributes
    ----------
    service, phase, hardware, config : str
        Identity of the configuration; a variant's name precedes its hardware.
    request_class : str
        Request class that it serves, the first of the service.
    latency_ms : float
        TTFT of prefill and of requests with one token, TPOT of decode and aggregated. [ms]
    requests_per_s_per_accelerator : float
        Rate of one accelerator. [1/s]
    """

    service: str
    phase: str
    hardware: str
    config: str
    request_class: str
    latency_ms: float
    requests_per_s_per_accelerator: float


def frontier_points(fleet: Fleet, services: Collection[str]) -> tuple[FrontierPoint, ...]:
    """Return the frontiers of services, ignoring latency limits.

    Services with their own rates, without hardware that has figures, or with variants of different lengths
    have none.

    Parameters
    ----------
    fleet : Fleet
        Resolved fleet.
    services : Collection[str]
        Names of the services.
    """
    found: list[FrontierPoint] = []
    for service in fleet.services:
        if service.name not in services or service.engines is not None:
            continue
        try:
            question = question_of_service(fleet, service.name, SearchSpace())
        except InputError:
            # The landscape reports what it cannot compare; the plan of the service is valid anyway.
            continue
        free = replace(question, space=replace(question.space, target=LatencyTarget(None, None)))
        # Servers of prompts only are prefill replicas that count as aggregated.
        alone = service.ends_with_prompts and "aggregated" in service.runtimes
        for phase, points in answer(free).phase_points.items():
            if alone and phase != PREFILL:
                continue
            first = points.take(points.request == 0)
            for position, option in enumerate(free.space.options):
                own = _best(first.take(first.option == position), phase)
                found += [
                    FrontierPoint(
                        service.name,
                        AGGREGATED if alone else phase,
                        option.hardware,
                        Configuration(own.layout[row], int(own.batch[row])).label,
                        free.request_names[0],
                        float(_latency_ms(own, phase)[row]),
                        float(own.requests_per_s_per_accelerator[row]),
                    )
                    for row in range(own.count)
                ]
    return tuple(found)


def _latency_ms(points: Points, phase: str) -> np.ndarray:
    return points.ttft_ms if phase == PREFILL else points.tpot_ms


def _best(points: Points, phase: str) -> Points:
    """Return the Pareto frontier by latency, at most `MOST_POINTS`."""
    if not points.count:
        return points
    kept = points.take(pareto_mask([-points.requests_per_s_per_accelerator, _latency_ms(points, phase)]))
    kept = kept.take(np.argsort(_latency_ms(kept, phase)))
    chosen = np.unique(np.linspace(0, kept.count - 1, min(kept.count, MOST_POINTS)).round().astype(np.int64))
    return kept.take(chosen)


def frontier_table(points: Sequence[FrontierPoint]) -> pd.DataFrame:
    """Return points as a table, one row each."""
    names = [each.name for each in fields(FrontierPoint)]
    cells = [{name: as_text(value) for name, value in asdict(point).items()} for point in points]
    return pd.DataFrame(cells, columns=names)


def read_frontier(path: Path) -> tuple[FrontierPoint, ...]:
    """Read the frontiers of a plan; empty if there is no file.

    Raises
    ------
    InputError
        If the file is not a table of frontiers.
    """
    if not path.exists():
        return ()
    names = [each.name for each in fields(FrontierPoint)]
    try:
        table = pd.read_csv(
            io.BytesIO(read_bytes(path)), dtype=dict.fromkeys(names[:5], str), keep_default_na=False
        )
        for name in names[:5]:
            table[name] = table[name].map(from_text)
        rows = table[names].astype(dict.fromkeys(names[5:], float))
    except (ValueError, KeyError, OSError) as error:
        raise InputError([Issue(str(path), 1, 1, "", f"is not a table of frontiers: {error}")]) from error
    return tuple(FrontierPoint(*row) for row in rows.itertuples(index=False))
