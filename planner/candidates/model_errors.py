"""How far the performance model is from published measurements, part by part."""

from __future__ import annotations

from collections.abc import Iterable

from fleetplan.perfmodel.predict import TPOT_ERROR
from fleetplan.planner.plan import ModelError


def model_errors(hardware: Iterable[str]) -> tuple[ModelError, ...]:
    """Published errors of parts whose rates the performance model gives, by name."""
    found = []
    for name in sorted(hardware):
        error = TPOT_ERROR.get(name)
        known = (None, None, 0) if error is None else (error.median_ratio, error.p90_ratio, error.rows)
        found.append(ModelError(hardware=name, median_ratio=known[0], p90_ratio=known[1], rows=known[2]))
    return tuple(found)
