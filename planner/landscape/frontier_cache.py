"""Cache of frontiers in the user's cache folder; independent of demand, prices and supply.

Each service has one file, named by the hash of everything its frontier depends on, like those of candidates
(planner/candidates/candidate_cache.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, write_whole
from fleetplan.fleet.input_files import input_sha256
from fleetplan.fleet.inventory import Budget, Demand, Finance, Fleet
from fleetplan.fleet.packages import source_sha256
from fleetplan.planner.candidates import supplied_hardware
from fleetplan.planner.candidates.candidate_cache import evaluation_key
from fleetplan.planner.landscape.frontier_points import FrontierPoint, frontier_points

CACHED_FILES: Final = 256
"""Largest number of cached frontiers; the least recently used are deleted first. About 30 kB each."""


class _KeptFrontier(BaseModel):
    """Cache file: points of one service, and the hash of their inputs."""

    key: str
    points: tuple[FrontierPoint, ...]


def kept_frontier_points(fleet: Fleet, services: Collection[str]) -> tuple[FrontierPoint, ...]:
    """Return the result of `frontier_points`, from the cache if present; parameters are the same."""
    if not is_cache_on():
        return frontier_points(fleet, services)
    found: list[FrontierPoint] = []
    for service in fleet.services:
        if service.name in services and service.engines is None:
            found += _of_service(fleet, service.name)
    return tuple(found)


def _of_service(fleet: Fleet, name: str) -> tuple[FrontierPoint, ...]:
    path: Path | None = None
    # A file that cannot be read is an error for the code that needs it, which reports where it is named.
    with contextlib.suppress(OSError):
        path = user_cache("frontiers") / f"{_key(fleet, name)}.json"
    if path is not None and (known := _read(path)) is not None:
        return known
    found = frontier_points(fleet, (name,))
    if path is not None:
        _write(found, path)
    return found


def _key(fleet: Fleet, name: str) -> str:
    """Return the hash of everything that a service's frontier depends on: not its load, nor supply costs."""
    (own,) = (service for service in fleet.services if service.name == name)
    swept = replace(
        fleet,
        name="",
        services=(replace(own, demand=Demand({}), headroom=0.0, priority=1, allowed_regions=None),),
        regions=(),
        pools=(),
        offers=(),
        budget=Budget((), None, None, None),
        finance=Finance(),
        objective="tco",
        warnings=(),
        input_hashes={},
        slices=(),
        demand_scenarios=(),
        scenarios=(),
        assignments=(),
    )
    calibration = "" if fleet.calibration is None else input_sha256(fleet.calibration)
    parts = [evaluation_key(swept), repr(tuple(supplied_hardware(fleet))), calibration]
    return cache_key([*parts, source_sha256("planner/landscape")])


def _read(path: Path) -> tuple[FrontierPoint, ...] | None:
    try:
        held = _KeptFrontier.model_validate_json(path.read_bytes())
        # The least recently used files are deleted first.
        os.utime(path)
    except (OSError, ValidationError):
        return None
    return held.points if held.key == path.stem else None


def _write(points: tuple[FrontierPoint, ...], path: Path) -> None:
    held = _KeptFrontier(key=path.stem, points=points)
    text = held.model_dump_json()
    # Values that do not survive a round trip, such as infinity, are not cached.
    with contextlib.suppress(OSError, ValidationError):
        if _KeptFrontier.model_validate_json(text) == held:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            forget_oldest(path.parent, "*.json", CACHED_FILES)
