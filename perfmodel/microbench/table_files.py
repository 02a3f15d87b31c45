"""Measurements as an operator table, with their provenance on every row."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Final

from fleetplan.fleet.files import write_whole
from fleetplan.perfmodel.microbench.control import calm_control_us, control_ratio
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.operators import DIMENSIONS

TABLE_NAME: Final = "optable.csv"

_COLUMNS: Final = ("operator", "dtype", "latency_us", "hardware", "source")
_RECORD: Final = ("repeats", "power_w", "clock_mhz", "temperature_c", "control_ratio")


def write_table(journal: Journal, origin: Origin, day: str, folder: Path) -> Path:
    """Write the measurements of a journal as a table.

    Parameters
    ----------
    journal : Journal
        Measurements.
    origin : Origin
        On what.
    day : str
        Date: YYYY-MM-DD.
    folder : Path
        Target file.

    Returns
    -------
    Path
        The table, which `hardware.NAME.optables` of a fleet file and `plan optables import` read.
    """
    swept = {name for each in journal.measured for name, _ in each.dims}
    dimensions = [
        name for name in dict.fromkeys(n for each in DIMENSIONS.values() for n in each) if name in swept
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, (*_COLUMNS, *dimensions, *_RECORD), lineterminator="\n", restval="")
    writer.writeheader()
    calm_us = calm_control_us(journal.measured.values())
    source = f"plan optables measure, {origin.device}, {origin.software}, {day}"
    for each in journal.measured.values():
        writer.writerow(
            {
                "operator": each.point.kind.value,
                "dtype": each.point.dtype,
                "latency_us": f"{each.latency_us:.4g}",
                "hardware": origin.hardware,
                "source": source,
                **dict(each.point.dims),
                "repeats": each.repeats,
                "power_w": _shown(each.power_w),
                "clock_mhz": _shown(each.clock_mhz),
                "temperature_c": _shown(each.temperature_c),
                "control_ratio": _shown(control_ratio(each, calm_us)),
            }
        )
    write_whole(folder / TABLE_NAME, text.getvalue())
    return folder / TABLE_NAME


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
