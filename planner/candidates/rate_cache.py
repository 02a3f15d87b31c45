"""Cache of simulated rates in the user's cache folder, like that of landscapes.

A simulation depends only on the iterations of an engine, its limits, the traffic and its seed. A file is
named by the SHA-256 of these and of the program; it also contains its key.
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

CACHED_RATES: Final = 8192
"""Largest number of cached rates; the least recently used are deleted first. About 200 bytes each."""


def rates_folder() -> Path:
    """Return the folder of this user's rates."""
    return user_cache("rates")


def cached_rate_per_s(pool: EnginePool, target: LoadTarget, most_per_s: float) -> float:
    """Return the result of `sustained_rate_per_s`, from the cache if present. [1/s]"""
    if not is_cache_on():
        return sustained_rate_per_s(pool, target, most_per_s)
    # Equal frozen dataclasses of numbers and names have equal text.
    parts = [*program_parts(), repr(pool), repr(target), repr(most_per_s)]
    key = cache_key(parts)
    path = rates_folder() / f"{key}.json"
    rate = _read(path)
    if rate is None:
        # Earlier results stay cached if this one is interrupted.
        checkpoint()
        rate = sustained_rate_per_s(pool, target, most_per_s)
        # A full disk or a read-only folder costs time, not the answer.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps({"key": key, "requests_per_s": rate}))
            forget_oldest(path.parent, "*.json", CACHED_RATES)
    return rate


def _read(path: Path) -> float | None:
    """Return the rate of a file; None if it is missing or has another key."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        rate = float(held["requests_per_s"])
        if held["key"] != path.stem or not (math.isfinite(rate) and rate >= 0):
            return None
        # The least recently used files are deleted first.
        os.utime(path)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return rate
