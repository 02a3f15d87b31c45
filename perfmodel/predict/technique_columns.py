"""The columns of a table of cases that switch techniques on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.inventory import Techniques
from fleetplan.perfmodel.operators import ActivationScales, IntArray
from fleetplan.perfmodel.serving import SchedulingOverrides
from fleetplan.perfmodel.steps import TODAYS_SOFTWARE, Software
from fleetplan.perfmodel.techniques import TECHNIQUES, TechniqueColumn
from fleetplan.perfmodel.techniques.record import (
    ALL_MODES,
    LARGEST,
    LOOPS,
    SMALLEST,
    STEADY_LOOPS,
    choice,
    number,
)

_LIMITED: Final = LOOPS | {"disaggregated"}

ACTIVATION_SCALES: Final[tuple[ActivationScales, ...]] = ("static", "dynamic")

SLIP_RATIO: Final = 0.85
"""Likeness from which a column is a slip of another: one letter in eight, so total_tokens is none."""

COLUMNS: Final[dict[str, TechniqueColumn]] = {
    **{name: column for each in TECHNIQUES for name, column in each.columns.items()},
    "power_cap_w": number(SMALLEST, LARGEST),
    "max_sequences": number(1, 1e6, _LIMITED, whole=True),
    "max_batched_tokens": number(1, 1e8, _LIMITED, whole=True),
    "iterations_ahead": number(0, 1e3, ALL_MODES),
    "polled_iterations": number(1, 1e6, STEADY_LOOPS),
    "gathering_iterations": number(0, 1e6, STEADY_LOOPS),
    "prompts_aligned": number(0, 1, STEADY_LOOPS, whole=True),
    "front_end_ms": number(0, 1e6, _LIMITED),
    "front_end_token_us": number(0, 1e6, _LIMITED),
    "chat_requests": number(0, 1, LOOPS, whole=True),
    "length_variation": number(0, 100, frozenset({"offline", "closed_loop"})),
    "prefix_cache": number(0, 1, ALL_MODES, whole=True),
    "memory_ratio": number(0.01, 1, ALL_MODES),
    "software_date": TechniqueColumn(0, 0, False, ALL_MODES, is_month=True),
    "activation_scales": choice(ACTIVATION_SCALES),
}
"""Technique columns by name; units as in the fleet file's `techniques` block and `power_cap_w`.
`software_date` is the year and month of the framework, for parts whose software became faster
(`Efficiency.maturity`) and for software that is older than a kernel (`older_software`). `activation_scales`
says how activations are quantised for weights in FP8 (`optables.choice`). `max_sequences` to
`front_end_token_us` are what a server was started with (`serving.SchedulingOverrides`); `chat_requests` is 1
where requests are messages that it writes out by a template; `length_variation` is the squared coefficient of
variation of both lengths of the requests. `prefix_cache` is 0 for a server that keeps no prefixes, which
matters where states have slots (`steps.state_slots`); `memory_ratio` is the part of the memory that the
server was told to take."""

_MONTH: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class CaseTechniques:
    """Settings of the technique columns of a row.

    Attributes
    ----------
    techniques : Techniques
        Switches.
    power_cap_w : float or None
        Power cap of the accelerator. [W]
    software : Software
        Its date, and how it was started.
    scheduling : SchedulingOverrides
        Settings of the server.
    length_variation : float or None
        Squared coefficient of variation of prompt and output; 0 for equal requests, None if not stated.
    problem : str
        Reason why the columns cannot be used; '' if they can.
    """

    techniques: Techniques = field(default_factory=Techniques)
    power_cap_w: float | None = None
    software: Software = TODAYS_SOFTWARE
    scheduling: SchedulingOverrides = field(default_factory=SchedulingOverrides)
    length_variation: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TechniqueColumns:
    """Distinct settings of a table, and which of them each row has, shape (n_rows,)."""

    distinct: tuple[CaseTechniques, ...]
    codes: IntArray


def misspelt_columns(given: list[str]) -> dict[str, str]:
    """Return misspelt technique columns with their corrections.

    A table may have further columns, which are ignored; a misspelt technique must not be one.
    """
    near = {
        name: difflib.get_close_matches(name.lower(), COLUMNS, n=1, cutoff=SLIP_RATIO)
        for name in given
        if name not in COLUMNS
    }
    return {name: found[0] for name, found in near.items() if found}


def parse_technique_columns(frame: pd.DataFrame, mode: NDArray[np.object_]) -> TechniqueColumns:
    """Read the technique columns of a table; empty cells enable nothing."""
    present = [name for name in COLUMNS if name in frame.columns]
    if not present:
        return TechniqueColumns((CaseTechniques(),), np.zeros(len(frame), dtype=np.int64))
    # A prefix is not a technique, but some techniques are about it.
    given = [*present, "prefix_tokens"] if "prefix_tokens" in frame.columns else present
    texts = pd.DataFrame({name: _texts(frame[name]) for name in given}, dtype=object)
    texts["mode"] = mode
    codes = texts.groupby(list(texts.columns), sort=False, dropna=False).ngroup().to_numpy()
    first = texts.iloc[np.unique(codes, return_index=True)[1]] if len(texts) else texts
    distinct = tuple(
        _parse({str(name): str(value) for name, value in row.items() if value != ""})
        for row in first.to_dict("records")
    )
    return TechniqueColumns(distinct, codes.astype(np.int64))


def _texts(cells: pd.Series) -> list[str]:
    missing = cells.isna().tolist()
    return ["" if empty else str(value).strip() for value, empty in zip(cells, missing, strict=True)]


def _parse(cells: dict[str, str]) -> CaseTechniques:
    mode = cells.pop("mode", "")
    problems, numbers, names = [], dict[str, float](), dict[str, str]()
    for name in [name for name in COLUMNS if name in cells]:
        column, text = COLUMNS[name], cells[name]
        value = _value(name, column, text)
        if isinstance(value, str) and value:
            problems.append(value)
        elif mode in ALL_MODES and mode not in column.modes:
            problems.append(f"{name}: has no effect in {mode} mode")
        missing = [other for other in column.needs if other not in cells]
        problems += [f"{other}: missing, {name} needs it" for other in missing]
        if isinstance(value, float):
            numbers[name] = value
        else:
            names[name] = text.lower()
    problems += [problem for each in TECHNIQUES for problem in each.refused(cells)]
    if problems:
        return CaseTechniques(problem="; ".join(problems))
    scales = {str(each): each for each in ACTIVATION_SCALES}[names.get("activation_scales", "static")]
    software = Software(
        names.get("software_date", ""),
        scales,
        numbers.get("iterations_ahead"),
        bool(numbers.get("prefix_cache", 1.0)),
        numbers.get("memory_ratio"),
    )
    return CaseTechniques(
        _techniques(
            {name: int(value) if COLUMNS[name].whole else value for name, value in numbers.items()} | names
        ),
        numbers.get("power_cap_w"),
        software,
        _scheduling(numbers),
        numbers.get("length_variation"),
    )


def _scheduling(numbers: dict[str, float]) -> SchedulingOverrides:
    def whole(name: str) -> int | None:
        return int(numbers[name]) if name in numbers else None

    return SchedulingOverrides(
        whole("max_sequences"),
        # A service that cuts its prompts says how many of their tokens share an iteration.
        whole("max_batched_tokens") or whole("chunk_tokens"),
        numbers.get("iterations_ahead"),
        numbers.get("polled_iterations"),
        numbers.get("gathering_iterations"),
        bool(numbers["prompts_aligned"]) if "prompts_aligned" in numbers else None,
        numbers.get("front_end_ms"),
        numbers.get("front_end_token_us"),
        bool(numbers.get("chat_requests", 0.0)),
    )


def _value(name: str, column: TechniqueColumn, text: str) -> float | str:
    """Return the number, '' for an allowed name, or a message."""
    if column.allowed:
        lower = text.lower()
        hint = names_hint(lower, column.allowed)
        return "" if lower in column.allowed else f"{name}: {text!r} is not known; {hint}"
    if column.is_month:
        return "" if _MONTH.fullmatch(text) else f"{name}: {text!r} is not a year and month, such as 2026-05"
    try:
        number = float(text)
    except ValueError:
        return f"{name}: {text!r} is not a number"
    if not column.low <= number <= column.high or (column.whole and number != round(number)):
        what = "a whole number" if column.whole else "a number"
        return f"{name}: {text} is not {what} from {column.low:g} to {column.high:g}"
    return number


def _techniques(values: Mapping[str, Any]) -> Techniques:
    switched: dict[str, Any] = {}
    for technique in TECHNIQUES:
        given = {name: values[name] for name in technique.columns if name in values}
        switched |= technique.switched(given) if given else {}
    return Techniques(**switched)
