"""The command that prices explicit configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.calibrate import CalibrationFile
from fleetplan.planner.commands.terminal import console


def predict(
    cases: Annotated[Path, typer.Argument(help="CSV of configurations", metavar="CASES.csv")],
    out: Annotated[Path, typer.Option(help="CSV to write", metavar="PRED.csv")],
    calibration: CalibrationFile = None,
) -> None:
    """Latency and throughput of explicit configurations, one output row for each input row.

    Example: plan predict cases.csv --out predictions.csv
    """
    from fleetplan.fleet.printable import printable
    from fleetplan.perfmodel.calibrate import read_calibration
    from fleetplan.perfmodel.predict import predict as predict_frame
    from fleetplan.perfmodel.predict import read_cases
    from fleetplan.planner.files import write_text

    calibrated = None if calibration is None else read_calibration(calibration)
    frame = predict_frame(read_cases(cases, keep_broken=True), cases.parent, str(cases), calibrated)
    write_text(out, printable(frame.to_csv(index=False)))
    counts = frame["status"].value_counts()
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    console(stderr=True).print(f"{len(frame)} rows: {summary}", markup=False)
