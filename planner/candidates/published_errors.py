"""Published errors of the performance model, by hardware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.perfmodel.predict import TPOT_ERROR
from fleetplan.planner.plan import ModelError

SHARE_FLOAT: Final = 1e-9
"""Float tolerance of a share of 1."""


def model_errors(rows: Iterable[tuple[str, Mapping[str, float]]]) -> tuple[ModelError, ...]:
    """Return the published errors of hardware evaluated by the performance model.

    Errors of hardware with measured tables concern predictions from these tables; they are unknown if all its
    rates come from the roofline.

    Parameters
    ----------
    rows : Iterable of (str, Mapping[str, float])
        Hardware, and the shares of a row's latency by source of the number.
    """
    roofline: dict[str, float] = {}
    for name, shares in rows:
        if shares.get("given", 0.0) < 1:
            roofline[name] = min(shares.get("roofline", 0.0), roofline.get(name, 1.0))
    found = []
    for name in sorted(roofline):
        error = None if roofline[name] > 1 - SHARE_FLOAT and _has_tables(name) else TPOT_ERROR.get(name)
        known = (None, None, 0) if error is None else (error.median_ratio, error.p90_ratio, error.rows)
        found.append(ModelError(hardware=name, median_ratio=known[0], p90_ratio=known[1], rows=known[2]))
    return tuple(found)


def _has_tables(name: str) -> bool:
    part = accelerators().get(name)
    return part is not None and part.measured_system is not None
