"""`plan calibrate`: fit the performance model to your own benchmark results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.fleet.figures import counted
from fleetplan.planner.commands.terminal import echo

if TYPE_CHECKING:
    from fleetplan.perfmodel.evaluator import ScopeCalibration

CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", help="calibration file; overrides that of the fleet file", metavar="FILE"),
]


def calibrate_measurements(
    measurements: Annotated[Path, typer.Option(help="CSV of benchmark results", metavar="FILE")],
    out: Annotated[
        Path,
        typer.Option(
            help="calibration file to write; a JSON file with the same name is also written",
            metavar="CALIBRATION.yaml",
        ),
    ],
) -> None:
    """Fit the predictions to your own benchmark results.

    Writes one ratio per phase, by hardware, framework, version and checkpoint.

    The columns are those of `plan predict` plus framework, framework_version, and ttft_ms, tpot_ms or both.
    Example: plan calibrate --measurements bench.csv --out calibration.yaml
    """
    from fleetplan.perfmodel.calibrate import beside, calibrate, write_calibration
    from fleetplan.perfmodel.predict import read_cases

    fit = calibrate(read_cases(measurements, keep_broken=True), measurements.parent, str(measurements))
    for issue in fit.refused:
        echo(str(issue), err=True)
    for each in fit.scopes:
        echo(_summary(each))
    write_calibration(fit, measurements, out)
    echo(f"{fit.n_used} of {counted(fit.n_rows, 'row')} used; written to {out} and {beside(out)}", err=True)


def calibration_assignment(file: Path | None) -> list[str]:
    """Return the assignment to the fleet file that is equivalent to the option."""
    return [] if file is None else [f"calibration={json.dumps(str(file.resolve()))}"]


def _summary(each: ScopeCalibration) -> str:
    return (
        f"{each.scope.label}: prefill x {each.prefill.ratio:.3f}, decode x {each.decode.ratio:.3f} from "
        f"{counted(each.n_rows, 'row')}; median error {each.error_before_ratio:.1%} before, "
        f"{each.error_after_ratio:.1%} after"
    )
