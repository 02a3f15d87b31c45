"""A law of plans: a changed fleet, and what holds between its best plan and the first one's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fleetplan.planner.plan import Plan


@dataclass(frozen=True)
class Law:
    """A changed fleet, and the relation between its best plan and that of the original.

    Attributes
    ----------
    name : str
        What was changed.
    file, tables : Mapping
        The changed fleet.
    factor : float
        What one figure of the first fleet is worth in the changed one.
    at_most, at_least : bool
        Whether the changed fleet's best plan is no worse, and whether it is no better, than `factor` times
        the first one's.
    baseline : Plan or None
        The plan in force of the changed fleet.
    only_usd : bool
        Whether the factor holds for the cost alone, and not for what is served, energy or hardware.
    means_stay : bool
        Whether goals that are means of the periods (what is served, accelerators) keep their figure.
    law : str
        Which of the laws it is.
    """

    name: str
    file: dict[str, Any]
    tables: dict[str, str]
    factor: float = 1.0
    at_most: bool = True
    at_least: bool = False
    baseline: Plan | None = None
    only_usd: bool = False
    means_stay: bool = False
    law: str = ""


Tables = Mapping[str, str]
LawMaker = Callable[[dict[str, Any], dict[str, str], Plan, random.Random], Law | None]
