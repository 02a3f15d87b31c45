"""Rates that simulations found before, kept in the user's cache folder beside the landscapes.

A simulation depends on the iterations of an engine, its limits, the traffic and its seed alone. The name of a
file is the SHA-256 of all of them and of the program; a file says what it is for, as those of landscapes do.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Final

from fleetplan.fleet.files import cache_key, forget_oldest, is_cache_on, user_cache, write_whole
from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.landscape.cache import program_parts
from fleetplan.perfmodel.replay import EnginePool, LoadTarget, sustained_rate_per_s

KEPT_RATES: Final = 8192
"""Most rates that are kept; the ones that were used longest ago go first. About 200 bytes each."""


def rates_folder() -> Path:
    """Folder of the rates of this user."""
    return user_cache("rates")


def kept_rate_per_s(pool: EnginePool, target: LoadTarget, most_per_s: float) -> float:
    """Return what `sustained_rate_per_s` returns, from the cache where it is there. [1/s]"""
    if not is_cache_on():
        return sustained_rate_per_s(pool, target, most_per_s)
    # Frozen dataclasses of numbers and names: equal ones are written alike.
    parts = [*program_parts(), repr(pool), repr(target), repr(most_per_s)]
    key = cache_key(parts)
    path = rates_folder() / f"{key}.json"
    rate = _read(path)
    if rate is None:
        # What was found before is kept, whatever the next one takes.
        checkpoint()
        rate = sustained_rate_per_s(pool, target, most_per_s)
        # A full disk or a folder that cannot be written costs time, not the answer.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps({"key": key, "requests_per_s": rate}))
            forget_oldest(path.parent, "*.json", KEPT_RATES)
    return rate


def _read(path: Path) -> float | None:
    """The rate of a file; None where there is none that is for this question."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        rate = float(held["requests_per_s"])
        if held["key"] != path.stem or not (math.isfinite(rate) and rate >= 0):
            return None
        # The time of use decides what is forgotten first.
        os.utime(path)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return rate
