"""Kinds of days, and other lengths and names of periods; with dice of their own, so that all else stays."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.fleets.made import Made

MONTHS = 0.4
"""Share of the fleets with quarters whose periods are months instead."""

FISCAL = 0.2
"""Share of them whose quarters are fiscal ones."""

MONTH_NAMES = {f"2027Q{n}": f"2027-{n:02}" for n in (1, 2, 3)}
FISCAL_NAMES = {"2027Q1": "FY27-Q4", "2027Q2": "FY28-Q1", "2027Q3": "FY28-Q2"}
"""Of a fiscal year from April, named after the year that it ends in."""


EXTENDED = 0.5
"""Share of the fleets that are small enough whose horizon is extended."""

DAY_KINDS = 0.5
"""Share of the fleets without slices whose weekends are not like other days."""


def state_day_kinds(made: Made) -> None:
    """Let weekends differ, by name or by a shape of the day."""
    dice = made.dice_of("kinds of days")
    cells = len(made.regions) * len(made.periods) * max(len(made.scenarios), 1)
    drawn = dice.random()
    stated = any("slices" in str(each) for each in (made.file.get("horizon"), made.file.get("day_shapes")))
    fits = made.quarters and not stated and 2 * cells <= made.most_cells
    if drawn >= DAY_KINDS or not fits or not made.allows("horizon.day_kinds"):
        return
    kinds = {"weekday": 5, "weekend": 2} if dice.random() < 0.7 else {"open": 1, "closed": 1}
    made.file["horizon"]["day_kinds"] = kinds
    usual, quiet = kinds
    shapes = made.file.get("day_shapes", {})
    if made.allows("day_shapes.by_day_kind") and dice.random() < 0.8:
        shapes |= {
            "usual": {"by_slice": {usual: 1.0}},
            "quiet": {"by_slice": {quiet: 0.3}},
            "week": {"by_day_kind": {usual: "usual", quiet: "quiet"}},
        }
        made.file["day_shapes"] = shapes
    for service in made.file["services"]:
        plain = "demand" in service and not {"demand_by_slice"} & set(service)
        if plain and dice.random() < 0.7 and "service_defaults" not in made.file:
            service["demand_by_slice"] = "week" if "week" in shapes else {quiet: 0.4}


def state_extension(made: Made) -> None:
    """Let the last period be repeated, where the fleet is small enough and no budget is of the whole."""
    dice = made.dice_of("extension")
    drawn, until_terms = dice.random(), dice.random() < 0.5
    if drawn >= EXTENDED or not made.quarters or not made.allows("horizon.extend_quarters"):
        return
    file = str(made.file)
    moments = len(made.regions) * max(len(made.slices), 1) * max(len(made.scenarios), 1)
    budget = made.file.get("budget", {})
    whole = {"opex_usd", "tco_usd"} & set(budget) or not isinstance(budget.get("capex_usd", {}), dict)
    laid_on = any(key in str(made.file.get("scenarios", "")) for key in ("budget", "horizon"))
    longest = max((each.get("term_quarters", 1) for each in made.file.get("offers", [])), default=1)
    added = longest - 1 if until_terms and longest > 1 else 1
    if "day_kinds" in file or whole or laid_on or moments * (len(made.periods) + added) > made.most_cells:
        return
    made.file["horizon"]["extend_quarters"] = "terms" if until_terms and longest > 1 else 1


def state_periods(made: Made) -> None:
    """Let the periods be months, or name quarters by a fiscal year."""
    dice = made.dice_of("periods")
    drawn = dice.random()
    if not made.quarters:
        return
    if drawn < MONTHS and made.allows("horizon.period"):
        _rename(made, MONTH_NAMES)
        if dice.random() < 0.5:
            made.file["horizon"]["period"] = "month"
        _durations_in_months(made, dice)
    elif drawn < MONTHS + FISCAL and made.allows("horizon.fiscal_year"):
        _rename(made, FISCAL_NAMES)
        made.file["horizon"]["fiscal_year"] = {"first_month": 4}
        if dice.random() < 0.5:
            made.file["horizon"]["fiscal_year"]["named_after"] = "end"
        if dice.random() < 0.3:
            made.file["horizon"]["period"] = "quarter"


def _rename(made: Made, names: dict[str, str]) -> None:
    made.file = _renamed(made.file, names)
    made.periods = tuple(names[period] for period in made.periods)


def _renamed(node: Any, names: dict[str, str]) -> Any:
    if isinstance(node, dict):
        return {names.get(key, key): _renamed(value, names) for key, value in node.items()}
    if isinstance(node, list):
        return [_renamed(each, names) for each in node]
    return names.get(node, node) if isinstance(node, str) else node


def _durations_in_months(made: Made, dice: random.Random) -> None:
    """State some lead times and terms by the month."""
    for offer in made.file.get("offers", []):
        for key in ("lead_time", "term"):
            if f"{key}_quarters" in offer and made.allows(f"offers.{key}_months") and dice.random() < 0.9:
                offer[f"{key}_months"] = offer.pop(f"{key}_quarters")
