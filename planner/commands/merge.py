"""`plan merge`: merge two changed versions of a fleet file, and name the conflicts."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.terminal import console


class PreferredSide(enum.StrEnum):
    """Version that wins a conflict."""

    MINE = "mine"
    THEIRS = "theirs"


def merge(
    base: Annotated[Path, typer.Argument(help="common base of both versions", metavar="BASE.yaml")],
    mine: Annotated[Path, typer.Argument(help="one version; its comments are kept", metavar="MINE.yaml")],
    theirs: Annotated[Path, typer.Argument(help="the other version", metavar="THEIRS.yaml")],
    out: Annotated[Path, typer.Option(help="fleet file to write", metavar="FLEET.yaml")],
    prefer: Annotated[PreferredSide | None, typer.Option(help="version that wins conflicts")] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite an existing file")] = False,
) -> None:
    """Merge two versions of a fleet file, key by key.

    Items of lists are matched by name.

    A value changed differently in both is a conflict: nothing is written, and every conflict is named.
    Example: plan merge base.yaml mine.yaml theirs.yaml --out fleet.yaml
    """
    from fleetplan.planner.commands.run_merge import run_merge

    chosen = None if prefer is None else prefer.value
    run_merge((base, mine, theirs), out, chosen, force=force, errors=console(stderr=True))
