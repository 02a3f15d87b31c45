"""Parts on which predictions were far off: said before anything that rests on them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.predict import BLIND_ERROR, WEAK_RATIO
from fleetplan.planner.plan import ModelError


def blind_error_text() -> str:
    """Say how far predictions are from published figures that nothing was chosen with, on any part."""
    return (
        f"{BLIND_ERROR.median_ratio:.0%} / {BLIND_ERROR.p90_ratio:.0%} on any hardware, against "
        f"{BLIND_ERROR.rows} figures of users and vendors that were not used to build the model"
    )


def print_weak_parts(errors: Iterable[ModelError], console: Console) -> None:
    """Print a line for the parts whose published error is above `WEAK_RATIO`; none where there are none.

    Parameters
    ----------
    errors : Iterable[ModelError]
        Of the parts whose rates the performance model gave.
    console : Console
        Where to.
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
