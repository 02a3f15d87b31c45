"""Convert power readings of NVIDIA's DCGM exporter to idle and full power of hardware.

Input is the gauges DCGM_FI_DEV_POWER_USAGE [W] and DCGM_FI_DEV_GPU_UTIL [%] of dcgm-exporter 4 (November
2026), with the labels UUID (or Hostname and gpu) and modelName. They cover only the card; its share of host,
network and fans comes from the catalogue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.document.plain import yaml_text
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory.power import all_in_power_w, idle_power_w
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.planner.importing.prometheus import Answers, Series
from fleetplan.planner.importing.records import RejectedRowError, known_hardware

QUERIES: Final[Mapping[str, str]] = {
    "power": "DCGM_FI_DEV_POWER_USAGE",
    "utilisation": "DCGM_FI_DEV_GPU_UTIL",
}
"""Range queries by the names of their answers."""

BUSY_PERCENT: Final = 90.0
"""Utilisation from which a reading counts as full load. [%]"""
FULL_PERCENTILE: Final = 99.0
"""Percentile of full-load readings that is the power of a card: short peaks last milliseconds."""
LEAST_READINGS: Final = 100
"""Minimum number of readings behind a figure."""

_FIRST_DATE_S: Final = 1e9
"""Earlier times (before 2001) are sample numbers: text files have no times. [s]"""


@dataclass(slots=True)
class _Readings:
    """Readings of all cards of a kind. [W]"""

    idle_w: list[FloatArray] = field(default_factory=list)
    busy_w: list[FloatArray] = field(default_factory=list)


def power_fragment(answers: Answers, source: str, as_of: str) -> tuple[str, tuple[str, ...]]:
    """Return a block `hardware:` of a fleet file, and one sentence per omission.

    Idle power is the median of readings at a utilisation of 0, full power the 99th percentile of those at 90
    % or more. With enough readings, each replaces the card's part of the catalogue's figure.

    Parameters
    ----------
    answers : Answers
        Answers to `QUERIES`.
    source : str
        Name of their source.
    as_of : str
        Date of readings without times.

    Raises
    ------
    InputError
        No figure can be derived from the readings.
    """
    kinds, left_out = _by_kind(answers)
    blocks: dict[str, dict[str, float]] = {}
    says = []
    for name, readings in sorted(kinds.items()):
        part = accelerators()[name]
        figures: dict[str, float] = {}
        busy, idle = _joined(readings.busy_w), _joined(readings.idle_w)
        if busy.size >= LEAST_READINGS and part.tdp_w is not None:
            board_w = float(np.percentile(busy, FULL_PERCENTILE))
            rest_w = max(0.0, (all_in_power_w(part) or part.tdp_w) - part.tdp_w)
            figures["all_in_w"] = round(board_w + rest_w, 1)
            says.append(f"{name}: {board_w:.0f} W a card at full load ({counted(busy.size, 'reading')})")
        else:
            left_out.append(
                f"{name}: {counted(busy.size, 'reading')} at {BUSY_PERCENT:g} % or more, too few "
                f"for full power"
            )
        if idle.size >= LEAST_READINGS:
            idle_board_w = float(np.median(idle))
            measured = replace(part, idle_board_w=idle_board_w, idle_w=None)
            figures["idle_w"] = round(min(idle_power_w(measured), figures.get("all_in_w", np.inf)), 1)
            says.append(f"{name}: {idle_board_w:.0f} W an idle card ({counted(idle.size, 'reading')})")
        else:
            left_out.append(f"{name}: {counted(idle.size, 'reading')} at 0 %, too few for idle power")
        if figures:
            blocks[name] = figures
    if not blocks:
        message = "; ".join(left_out) or "there are no readings"
        raise InputError([Issue(source, 0, 0, "", f"gives no figure: {message}")])
    when = _days(answers) or as_of
    head = [f"# Power readings of {source}, {when}: import it in a fleet file with `imports: [FILE]`."]
    head += [f"# {line}; plus its share of the host from the catalogue." for line in says]
    text = "\n".join(head) + "\n" + yaml_text({"hardware": blocks})
    return text, tuple(left_out)


def _by_kind(answers: Answers) -> tuple[dict[str, _Readings], list[str]]:
    """Return the readings by catalogue name of the cards, and the unknown cards."""
    utilisation = _by_card(answers.get("utilisation", ()))
    found: dict[str, _Readings] = defaultdict(_Readings)
    left_out: Counter[str] = Counter()
    without_value: Counter[str] = Counter()
    for card, series in _by_card(answers["power"]).items():
        try:
            name = known_hardware(series.labels.get("modelName", ""))
        except RejectedRowError as reason:
            left_out[str(reason)] += 1
            continue
        readings, load = found[name], utilisation.get(card)
        if load is None:
            left_out[f"{name} without readings of {QUERIES['utilisation']}"] += 1
            continue
        # Both gauges are queried at the same times.
        _, ours, theirs = np.intersect1d(series.time_s, load.time_s, return_indices=True)
        watts, percent = series.value[ours], load.value[theirs]
        known = np.isfinite(watts) & np.isfinite(percent)
        without_value[name] += int(np.sum(~known))
        watts, percent = watts[known], percent[known]
        readings.idle_w.append(watts[percent == 0])
        readings.busy_w.append(watts[percent >= BUSY_PERCENT])
    says = [f"{counted(many, 'card')}: {reason}" for reason, many in left_out.items()]
    says += [
        f"{name}: {counted(many, 'reading')} whose power or utilisation is not a number"
        for name, many in without_value.items()
        if many
    ]
    return dict(found), says


def _by_card(found: Sequence[Series]) -> dict[tuple[str, ...], Series]:
    """Return the readings of each card as one series; the exporter has one series per pod on a card."""
    parts: dict[tuple[str, ...], list[Series]] = defaultdict(list)
    for series in found:
        parts[_card(series)].append(series)
    return {
        card: Series(
            each[0].labels,
            np.concatenate([part.time_s for part in each]),
            np.concatenate([part.value for part in each]),
        )
        for card, each in parts.items()
    }


def _days(answers: Answers) -> str:
    """Return the dates of the readings; empty if they are numbered instead of timed."""
    times = [series.time_s for found in answers.values() for series in found if series.time_s.size]
    if not times or max(each.max() for each in times) < _FIRST_DATE_S:
        return ""
    moments = (min(each.min() for each in times), max(each.max() for each in times))
    first, last = (datetime.fromtimestamp(moment, UTC).date().isoformat() for moment in moments)
    return first if first == last else f"{first} to {last}"


def _card(series: Series) -> tuple[str, ...]:
    labels = series.labels
    if labels.get("UUID"):
        return (labels["UUID"], labels.get("GPU_I_ID", ""))
    return (labels.get("Hostname", ""), labels.get("gpu", ""), labels.get("GPU_I_ID", ""))


def _joined(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.zeros(0)
