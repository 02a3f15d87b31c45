"""Warn about hardware whose predictions differ strongly from published figures."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.predict import BLIND_ERROR, WEAK_RATIO
from fleetplan.planner.plan import ModelError


def blind_error_text() -> str:
    """Return the prediction error against published figures that were not used to build the model."""
    return (
        f"{BLIND_ERROR.median_ratio:.0%} / {BLIND_ERROR.p90_ratio:.0%} on any hardware, against "
        f"{BLIND_ERROR.rows} figures of users and vendors that were not used to build the model"
    )


def print_weak_parts(errors: Iterable[ModelError], console: Console) -> None:
    """Print a line for hardware whose published error exceeds `WEAK_RATIO`, if there is any.

    Parameters
    ----------
    errors : Iterable[ModelError]
        Errors of the hardware whose rates come from the performance model.
    console : Console
        Output console.
    """
    weak = [
        f"{escape(error.hardware)} {error.median_ratio:.0%} (median of {counted(error.rows, 'row')})"
        for error in errors
        if error.median_ratio is not None and error.median_ratio > WEAK_RATIO
    ]
    if weak:
        console.print(
            f"[bold red]Weak predictions[/]: published TPOT differs by {', '.join(weak)}; measure your own "
            "(`plan calibrate`) before you buy"
        )
