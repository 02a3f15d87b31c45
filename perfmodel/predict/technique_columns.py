"""The columns of a table of cases that switch techniques on."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.inventory import (
    ExpertRouting,
    KvTier,
    Offload,
    PersistentKv,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.fleet.inventory.techniques import (
    ActivationModel,
    ExpertBalance,
    ExpertOverlap,
    ExpertPlacement,
    Sampling,
)
from fleetplan.fleet.tables import MODES
from fleetplan.perfmodel.operators import ActivationScales, IntArray
from fleetplan.perfmodel.serving import SchedulingOverrides
from fleetplan.perfmodel.steps import TODAYS_SOFTWARE, Software

ALL_MODES: Final = frozenset(MODES)
LOOPS: Final = frozenset({"closed_loop", "burst", "open_loop", "offline"})
_STEADY_LOOPS: Final = frozenset({"closed_loop", "open_loop"})
_DRAFTING_LOOPS: Final = _STEADY_LOOPS | {"offline"}
_LIMITED: Final = LOOPS | {"disaggregated"}

ACTIVATIONS: Final[tuple[ActivationModel, ...]] = ("uniform", "balanced", "log-linear")
PLACEMENTS: Final[tuple[ExpertPlacement, ...]] = ("mixed", "random", "sorted")
BALANCES: Final[tuple[ExpertBalance, ...]] = ("auto", "eplb", "none", "perfect")
OVERLAPS: Final[tuple[ExpertOverlap, ...]] = ("none", "two-batch", "single-batch")
SAMPLINGS: Final[tuple[Sampling, ...]] = ("greedy", "top-p")
ACTIVATION_SCALES: Final[tuple[ActivationScales, ...]] = ("static", "dynamic")

SLIP_RATIO: Final = 0.85
"""Likeness from which a column is a slip of another: one letter in eight, so total_tokens is none."""

ROOMY_GIB: Final = 1e9
"""Room of the tier of a case: its hit ratio is that of sessions which are kept. [GiB]"""


@dataclass(frozen=True, slots=True)
class TechniqueColumn:
    """A column that switches a technique on.

    Attributes
    ----------
    low, high : float
        Range; a text column has none.
    whole : bool
        Whole numbers alone.
    modes : frozenset[str]
        Where it acts; elsewhere it is refused.
    needs : tuple[str, ...]
        Columns that must be given with it.
    allowed : tuple[str, ...]
        Values of a text column.
    is_month : bool
        A year and month (YYYY-MM).
    """

    low: float
    high: float
    whole: bool
    modes: frozenset[str]
    needs: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    is_month: bool = False


def _number(
    low: float, high: float, modes: frozenset[str] = ALL_MODES, *needs: str, whole: bool = False
) -> TechniqueColumn:
    return TechniqueColumn(low, high, whole, modes, needs)


_PROMPTS: Final = ALL_MODES - {"decode"}
_GENERATES: Final = frozenset({"decode", "static", "disaggregated"}) | _DRAFTING_LOOPS
_SMALLEST: Final = 1e-9
_LARGEST: Final = 1e9

COLUMNS: Final[dict[str, TechniqueColumn]] = {
    "chunk_tokens": _number(1, 1e8, _PROMPTS, whole=True),
    "samples_per_prompt": _number(1, 1e6, frozenset({"decode"}), whole=True),
    "shared_prefix_tokens": _number(0, 1e8, ALL_MODES, "prefix_tokens", whole=True),
    "draft_tokens": _number(1, 64, _GENERATES, "acceptance_ratio", "draft_cost_ratio", whole=True),
    "acceptance_ratio": _number(0, 1, _GENERATES, "draft_tokens"),
    "draft_cost_ratio": _number(0, _LARGEST, _GENERATES, "draft_tokens"),
    "session_hit_ratio": _number(0, 1, frozenset({"prefill", "static"}), "session_gb_per_s", "prefix_tokens"),
    "session_gb_per_s": _number(_SMALLEST, _LARGEST, frozenset({"prefill", "static"}), "session_hit_ratio"),
    "offload_weights_ratio": _number(0, 1, ALL_MODES, "offload_gb_per_s"),
    "offload_kv_ratio": _number(0, 1, ALL_MODES, "offload_gb_per_s"),
    "offload_gb_per_s": _number(_SMALLEST, _LARGEST),
    "expert_activation": TechniqueColumn(0, 0, False, ALL_MODES, (), ACTIVATIONS),
    "log_linear_intercept": _number(-_LARGEST, _LARGEST, ALL_MODES, "log_linear_slope"),
    "log_linear_slope": _number(0, _LARGEST, ALL_MODES, "log_linear_intercept"),
    "busiest_expert_ratio": _number(0, 1),
    "expert_placement": TechniqueColumn(0, 0, False, ALL_MODES, ("busiest_expert_ratio",), PLACEMENTS),
    "expert_balance": TechniqueColumn(0, 0, False, ALL_MODES, (), BALANCES),
    "redundant_experts": _number(0, 1e4, ALL_MODES, whole=True),
    "expert_overlap": TechniqueColumn(0, 0, False, ALL_MODES, (), OVERLAPS),
    "image_token_ratio": _number(0, 1, _PROMPTS),
    "sampling": TechniqueColumn(0, 0, False, ALL_MODES, (), SAMPLINGS),
    "power_cap_w": _number(_SMALLEST, _LARGEST),
    "max_sequences": _number(1, 1e6, _LIMITED, whole=True),
    "max_batched_tokens": _number(1, 1e8, _LIMITED, whole=True),
    "iterations_ahead": _number(0, 1e3, _STEADY_LOOPS),
    "polled_iterations": _number(1, 1e6, _STEADY_LOOPS),
    "gathering_iterations": _number(0, 1e6, _STEADY_LOOPS),
    "front_end_ms": _number(0, 1e6, _LIMITED),
    "front_end_token_us": _number(0, 1e6, _LIMITED),
    "length_variation": _number(0, 100, frozenset({"offline"})),
    "software_date": TechniqueColumn(0, 0, False, ALL_MODES, is_month=True),
    "activation_scales": TechniqueColumn(0, 0, False, ALL_MODES, (), ACTIVATION_SCALES),
}
"""Technique columns by name; units as in the fleet file's `techniques` block and `power_cap_w`.
`software_date` is the year and month of the framework, for parts whose software became faster
(`Efficiency.maturity`) and for software that is older than a kernel (`older_software`). `activation_scales`
says how activations are quantised for weights in FP8 (`optables.choice`). `max_sequences` to
`front_end_token_us` are what a server was started with (`serving.SchedulingOverrides`); `length_variation` is
the squared coefficient of variation of both lengths of the requests."""

_MONTH: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class CaseTechniques:
    """What the technique columns of a row say.

    Attributes
    ----------
    techniques : Techniques
        Switches.
    power_cap_w : float or None
        Power cap of the accelerator. [W]
    software : Software
        Its date, and how it quantises activations.
    scheduling : SchedulingOverrides
        What the server was started with.
    length_variation : float
        Squared coefficient of variation of prompt and output; 0 where all requests are alike.
    problem : str
        Why the columns cannot be used; '' where they can.
    """

    techniques: Techniques = field(default_factory=Techniques)
    power_cap_w: float | None = None
    software: Software = TODAYS_SOFTWARE
    scheduling: SchedulingOverrides = field(default_factory=SchedulingOverrides)
    length_variation: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TechniqueColumns:
    """Distinct settings of a table, and which of them each row has, shape (n_rows,)."""

    distinct: tuple[CaseTechniques, ...]
    codes: IntArray


def misspelt_columns(given: list[str]) -> dict[str, str]:
    """Return the columns that are slips of technique columns, with what they are slips of.

    A table may have columns of its own, which nobody reads; a switch that is misspelt must not be one.
    """
    near = {
        name: difflib.get_close_matches(name.lower(), COLUMNS, n=1, cutoff=SLIP_RATIO)
        for name in given
        if name not in COLUMNS
    }
    return {name: found[0] for name, found in near.items() if found}


def parse_technique_columns(frame: pd.DataFrame, mode: NDArray[np.object_]) -> TechniqueColumns:
    """Read the technique columns that a table has; empty cells switch nothing on."""
    present = [name for name in COLUMNS if name in frame.columns]
    if not present:
        return TechniqueColumns((CaseTechniques(),), np.zeros(len(frame), dtype=np.int64))
    # A prefix is no technique, but some of them are about it.
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
    if (names.get("expert_activation") == "log-linear") != ("log_linear_slope" in cells):
        problems.append("log_linear_slope: goes with expert_activation log-linear, and with no other")
    balance = names.get("expert_balance", "auto")
    if "busiest_expert_ratio" in cells and balance in {"eplb", "perfect"}:
        problems.append(f"busiest_expert_ratio: is a skew that is left, not expert_balance {balance}")
    if "redundant_experts" in cells and balance in {"none", "perfect"}:
        problems.append("redundant_experts: placed by expert_balance eplb, and by no other")
    if "offload_gb_per_s" in cells and not {"offload_weights_ratio", "offload_kv_ratio"} & cells.keys():
        problems.append("offload_gb_per_s: has no effect without offload_weights_ratio or offload_kv_ratio")
    prefix = _value("prefix_tokens", _number(0, 1e8), cells.get("prefix_tokens", "0"))
    if isinstance(prefix, float) and numbers.get("shared_prefix_tokens", 0.0) > prefix:
        problems.append("shared_prefix_tokens: exceeds prefix_tokens, of which it is a part")
    if problems:
        return CaseTechniques(problem="; ".join(problems))
    scales = {str(each): each for each in ACTIVATION_SCALES}[names.get("activation_scales", "static")]
    software = Software(names.get("software_date", ""), scales)
    return CaseTechniques(
        _techniques(numbers, names),
        numbers.get("power_cap_w"),
        software,
        _scheduling(numbers),
        numbers.get("length_variation", 0.0),
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
        numbers.get("front_end_ms"),
        numbers.get("front_end_token_us"),
    )


def _value(name: str, column: TechniqueColumn, text: str) -> float | str:
    """Return the number, '' for a name that is allowed, or what is wrong."""
    if column.allowed:
        lower = text.lower()
        hint = names_hint(lower, column.allowed)
        return "" if lower in column.allowed else f"{name}: {text!r} is not known; {hint}"
    if column.is_month:
        return "" if _MONTH.fullmatch(text) else f"{name}: {text!r} is not a year and month, as 2026-05"
    try:
        number = float(text)
    except ValueError:
        return f"{name}: {text!r} is not a number"
    if not column.low <= number <= column.high or (column.whole and number != round(number)):
        what = "a whole number" if column.whole else "a number"
        return f"{name}: {text} is not {what} from {column.low:g} to {column.high:g}"
    return number


def _techniques(numbers: dict[str, float], names: dict[str, str]) -> Techniques:
    speculative = persistent = offload = None
    if "draft_tokens" in numbers:
        speculative = SpeculativeDecoding(
            int(numbers["draft_tokens"]), numbers["acceptance_ratio"], numbers["draft_cost_ratio"]
        )
    if "session_hit_ratio" in numbers:
        tier = KvTier("dram", ROOMY_GIB, numbers["session_gb_per_s"])
        persistent = PersistentKv(numbers["session_hit_ratio"], 1.0, (tier,))
    if "offload_gb_per_s" in numbers:
        offload = Offload(
            numbers.get("offload_weights_ratio", 0.0),
            numbers.get("offload_kv_ratio", 0.0),
            numbers["offload_gb_per_s"],
        )
    chunk = numbers.get("chunk_tokens")
    return Techniques(
        chunk_tokens=None if chunk is None else int(chunk),
        samples_per_prompt=int(numbers.get("samples_per_prompt", 1)),
        shared_prefix_tokens=int(numbers.get("shared_prefix_tokens", 0)),
        image_token_ratio=numbers.get("image_token_ratio", 0.0),
        speculative=speculative,
        persistent_kv=persistent,
        offload=offload,
        experts=_routing(numbers, names),
        sampling={str(each): each for each in SAMPLINGS}[names.get("sampling", "greedy")],
        expert_overlap={str(each): each for each in OVERLAPS}[names.get("expert_overlap", "none")],
    )


def _routing(numbers: dict[str, float], names: dict[str, str]) -> ExpertRouting:
    default = ExpertRouting()
    # Names were checked against these tuples, whose elements have the narrow types.
    activations = {str(each): each for each in ACTIVATIONS}
    placements = {str(each): each for each in PLACEMENTS}
    return ExpertRouting(
        activations[names.get("expert_activation", default.activation)],
        numbers.get("log_linear_intercept"),
        numbers.get("log_linear_slope"),
        numbers.get("busiest_expert_ratio"),
        placements[names.get("expert_placement", default.placement)],
        {str(each): each for each in BALANCES}[names.get("expert_balance", default.balance)],
        int(numbers["redundant_experts"]) if "redundant_experts" in numbers else None,
    )
