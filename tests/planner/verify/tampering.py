"""Every single-field change of a plan document: numbers, names, signs, missing and duplicate rows."""

from __future__ import annotations

import copy
import marshal
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from fleetplan.planner.plan import Plan

Path = tuple[str | int, ...]

ANNOTATIONS: Final[dict[str, str]] = {
    "format_version": "names the format; says nothing of the fleet",
    "provenance.fleetplan_version": "which program made the plan",
    "provenance.created": "when it was made",
    "provenance.versions.*": "which libraries it was made with",
    "provenance.seed": "how the search was started",
    "provenance.time_limit_s": "how long the search was allowed to take",
    "provenance.gap_limit": "what the search was asked for; what it reached is the gap",
    "provenance.warnings*": "sentences for the reader, some of which depend on the day",
    "provenance.fleet_file": "where the fleet file was; its hash is checked",
    "provenance.baseline_file": "where the plan in force was; its hash is checked",
    "solve.wall_s": "how long the search took",
    "solve.deterministic_time": "how much work the search was",
    "solve.bound_source": "which part of the search proved the bound",
}
"""Fields that change nothing of what a plan says to do and to cost, by their path, with the reason."""

CLAIMS: Final[dict[str, str]] = {
    "demand_scenarios[].best_unmet_requests_per_s": "of another plan, which is not in the document",
    "demand_scenarios[].best_unmet_gap": "what a search for another plan could not prove",
    "scenario_purchases[].*": "of another plan; which scenarios, periods and offers there are is checked",
    "scenario_purchases[]": "of another plan, which is not in the document",
    "wrong_forecasts[].bound_usd": "of another search; may be anything below the cost",
    "wrong_forecasts[].unmet_*": "of another plan, which is not in the document, and its search",
    "wrong_forecasts[]": "a search that is stopped leaves out the last pairs",
    "simplification.usd": "of another plan; may be anything that the policy allows and the bound leaves",
    "simplification.*s_before": "of another plan, which is not in the document",
    "simplification.home.usd": "of another plan; may be anything that the policy allows",
    "simplification.home.away_requests_per_s_before": "of another plan, which is not in the document",
    "unmet_gaps[].gap": "what a search could not prove",
    "model_unused_usd": "of the solver's solution; with `model_usd` it gives the cost but for rounding",
    "goal.model_value": "of the solver's solution, which may waste what the plan leaves out",
}
"""What only a search can know: no recomputation confirms it, and other figures bound it."""


@dataclass(frozen=True, slots=True)
class Tampering:
    """One change of a document.

    Attributes
    ----------
    path : tuple
        Where.
    kind : str
        What was done: scaled, negated, replaced, dropped, doubled.
    apply : callable
        Changes a copy of the document.
    """

    path: Path
    kind: str
    apply: Callable[[dict[str, Any]], None]

    @property
    def pattern(self) -> str:
        """The path without the positions of rows."""
        return pattern_of(self.path)

    def plan(self, document: dict[str, Any]) -> Plan | None:
        """The changed plan; None where it cannot be read any more."""
        # Of plain values: a tenth of the time of `deepcopy`.
        changed = marshal.loads(marshal.dumps(document))
        self.apply(changed)
        try:
            return Plan.model_validate(changed)
        except ValidationError:
            return None


def pattern_of(path: Path) -> str:
    """A path as text, rows without their positions."""
    text = ""
    for part in path:
        text += "[]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def is_listed(pattern: str, known: dict[str, str]) -> bool:
    """Return whether a path matches a list with the wildcard `*`."""
    return _any_of(tuple(known)).fullmatch(pattern) is not None


@lru_cache
def _any_of(known: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(each).replace(r"\*", ".*") for each in known) or "(?!)")


def tamperings(document: dict[str, Any]) -> Iterator[Tampering]:
    """Every change of every field and row of a document."""
    yield from _of(document, (), document)


def _of(value: object, path: Path, document: dict[str, Any]) -> Iterator[Tampering]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _of(inner, (*path, name), document)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield _change(path, position, "dropped", lambda rows, at: rows.pop(at))
            yield _change(
                path, position, "doubled", lambda rows, at: rows.insert(at, copy.deepcopy(rows[at]))
            )
            yield from _of(inner, (*path, position), document)
    elif path:
        for kind, changed in _leaves(value, path, document):
            yield _put(path, kind, changed)


def _leaves(value: object, path: Path, document: dict[str, Any]) -> Iterator[tuple[str, object]]:
    if isinstance(value, bool):
        yield "negated", not value
    elif isinstance(value, int):
        yield "scaled", value + 1
        if value:
            yield "negated", -value
    elif isinstance(value, float):
        yield "scaled", value * 1.01 if value else 1.0
        if value:
            yield "negated", -value
    elif isinstance(value, str):
        others = sorted({other for other in _siblings(path, document) if isinstance(other, str)} - {value})
        yield "replaced", others[0] if others else f"{value}x"
    elif value is None:
        yield "replaced", next((o for o in _siblings(path, document) if o is not None), 1.0)
    if value:
        # A share or a kind of cost of nothing may as well be left out.
        yield "dropped", None


def _siblings(path: Path, document: dict[str, Any]) -> Iterator[object]:
    """Values of the same field in other rows."""
    at = max((index for index, part in enumerate(path) if isinstance(part, int)), default=None)
    if at is None:
        return
    rows: Any = document
    for part in path[:at]:
        rows = rows[part]
    for row in rows:
        value: Any = row
        for part in path[at + 1 :]:
            value = value.get(part) if isinstance(value, dict) else None
        yield value


def _put(path: Path, kind: str, value: object) -> Tampering:
    def apply(document: dict[str, Any]) -> None:
        holder: Any = document
        for part in path[:-1]:
            holder = holder[part]
        if value is None and not isinstance(path[-1], int):
            del holder[path[-1]]
        else:
            holder[path[-1]] = value

    return Tampering(path, kind, apply)


def _change(path: Path, position: int, kind: str, change: Callable[[list[Any], int], object]) -> Tampering:
    def apply(document: dict[str, Any]) -> None:
        rows: Any = document
        for part in path:
            rows = rows[part]
        change(rows, position)

    return Tampering((*path, position), kind, apply)
