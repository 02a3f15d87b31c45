"""`plan merge`: two changed versions of a fleet file in one, with conflicts named."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.terminal import console


class Preferred(enum.StrEnum):
    """Whose value is taken where both versions changed it."""

    MINE = "mine"
    THEIRS = "theirs"


def merge(
    base: Annotated[Path, typer.Argument(help="fleet file that both come from", metavar="BASE.yaml")],
    mine: Annotated[Path, typer.Argument(help="one version; its comments stay", metavar="MINE.yaml")],
    theirs: Annotated[Path, typer.Argument(help="the other version", metavar="THEIRS.yaml")],
    out: Annotated[Path, typer.Option(help="fleet file to write", metavar="FLEET.yaml")],
    prefer: Annotated[Preferred | None, typer.Option(help="whose value is taken at a conflict")] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite an existing file")] = False,
) -> None:
    """Merge two versions of a fleet file, key by key.

    Lists are merged by the names of their items.

    What both changed, each in another way, is a conflict: nothing is written, and every conflict is named.
    Example: plan merge base.yaml mine.yaml theirs.yaml --out fleet.yaml
    """
    from fleetplan.planner.commands.run_merge import run_merge

    chosen = None if prefer is None else prefer.value
    run_merge((base, mine, theirs), out, chosen, force=force, errors=console(stderr=True))
