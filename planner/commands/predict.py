"""`plan predict`: predict the performance of explicit configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.fleet.figures import counted
from fleetplan.planner.commands.calibrate import CalibrationFile
from fleetplan.planner.commands.shared import load
from fleetplan.planner.commands.terminal import console


def predict(
    cases: Annotated[Path, typer.Argument(help="CSV of configurations", metavar="CASES.csv")],
    out: Annotated[Path, typer.Option(help="CSV to write", metavar="PRED.csv")],
    calibration: CalibrationFile = None,
    fleet: Annotated[
        Path | None,
        typer.Option(help="fleet file with further `hardware`", metavar="FLEET.yaml"),
    ] = None,
) -> None:
    """Predict latency and throughput of given configurations.

    Writes one row per row of the table.

    Example: plan predict cases.csv --out predictions.csv --fleet fleet.yaml
    """
    from fleetplan.fleet.files import write_whole
    from fleetplan.fleet.printable import printable
    from fleetplan.perfmodel.calibrate import read_calibration
    from fleetplan.perfmodel.predict import predict as predict_frame
    from fleetplan.perfmodel.predict import read_cases
    from fleetplan.planner.cells import csv_text

    calibrated = None if calibration is None else read_calibration(calibration)
    errors = console(stderr=True)
    parts = None
    if fleet is not None:
        hardware = load(fleet, None, None, errors).hardware
        parts = {name: each.accelerator for name, each in hardware.items() if each.accelerator is not None}
    rows = read_cases(cases, keep_broken=True)
    frame = predict_frame(rows, cases.parent, str(cases), calibrated, parts)
    write_whole(out, printable(csv_text(frame)))
    counts = frame["status"].value_counts()
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    errors.print(f"{counted(len(frame), 'row')}: {summary}", markup=False)
