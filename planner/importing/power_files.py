"""Read text files of DCGM power readings as series per card.

Supported files, as documented and written by DCGM 4 and dcgm-exporter 4 (November 2026):

* `dcgmi dmon -e 155,203`: a header (`#Entity  POWER  GPUTL`) repeated every few lines, a line of units, and
  a line per card and sample (`GPU 0  70.512  0`), with N/A for missing values. It does not name the cards.
* successive pages of dcgm-exporter's /metrics in one file:
  `DCGM_FI_DEV_POWER_USAGE{gpu="0",...} 70.512`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.planner.importing.prometheus import Answers, Series

_COLUMNS: Final[Mapping[str, str]] = {"POWER": "power", "GPUTL": "utilisation"}
"""Short names of the fields 155 (power) [W] and 203 (utilisation) [%], with the names of their answers."""
_METRICS: Final[Mapping[str, str]] = {
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_GPU_UTIL": "utilisation",
}
_SAMPLE: Final = re.compile(
    r"(DCGM_FI_DEV_POWER_USAGE|DCGM_FI_DEV_GPU_UTIL)\{(.*)\}\s+([-+]?(?:[\d.]+(?:e[-+]?\d+)?|inf|nan))"
    r"(?:\s+-?[\d.]+)?",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_LABELS: Final = ("UUID", "GPU_I_ID", "Hostname", "gpu", "modelName")
"""Labels that identify a card, and its kind."""
_CARD: Final = re.compile(r"GPU\s+(\d+)\s")

_Reading = tuple[str, tuple[tuple[str, str], ...], float, float]
"""Name of the answer, labels of the card, number of the sample, and value (NaN if not a number)."""


def readings_of(text: str, source: str, hardware: str | None) -> Answers:
    """Return the readings of a file, with the number of the sample as their time.

    Parameters
    ----------
    text : str
        Content of the file.
    source : str
        Name of the file, for errors.
    hardware : str or None
        Hardware of the cards of `dcgmi dmon`, which does not state it.

    Raises
    ------
    InputError
        The file has neither of the two formats, or the hardware is unknown.
    """
    lines = text.splitlines()
    if any(line.startswith("#Entity") for line in lines):
        if hardware is None:
            hint = "--hardware NAME, such as H100-SXM"
            raise InputError(
                [Issue(source, 1, 1, "", "is output of dcgmi dmon, which does not name the cards", hint)]
            )
        found = _dmon(lines, source, hardware)
    elif any(_metric(line) in _METRICS for line in lines):
        found = _exporter(lines, source)
    else:
        hint = "what dcgmi dmon -e 155,203 prints, or pages of dcgm-exporter's /metrics"
        raise InputError([Issue(source, 1, 1, "", "contains no power readings", hint)])
    series: dict[str, dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]] = {}
    for name, labels, time_s, value in found:
        series.setdefault(name, defaultdict(list))[labels].append((time_s, value))
    return {
        name: tuple(
            Series(dict(labels), *np.array(points, dtype=float).T) for labels, points in by_card.items()
        )
        for name, by_card in {"power": {}, **series}.items()
    }


def _dmon(lines: list[str], source: str, hardware: str) -> Iterator[_Reading]:
    columns: dict[str, slice] = {}
    samples: dict[str, int] = defaultdict(int)
    for position, line in enumerate(lines, start=1):
        if line.startswith("#Entity"):
            # Values are aligned with their header, and card names between them may contain spaces.
            starts = [(found[0], found.start()) for found in re.finditer(r"\S+", line)]
            ends = [start for _, start in starts[1:]] + [None]
            columns = {name: slice(start, end) for (name, start), end in zip(starts, ends, strict=True)}
            if not columns.keys() >= _COLUMNS.keys():
                message = f"has the columns {', '.join(columns)}, not {' and '.join(_COLUMNS)}"
                raise InputError([Issue(source, position, 1, "", message, "dcgmi dmon -e 155,203")])
            continue
        # Units, card instances (GPU-I) and the end of the output are not readings.
        card = _CARD.search(line)
        if card is None or not columns:
            continue
        if line[: card.start()].strip():
            message = f"is not a reading: {brief(repr(line[: card.start()]))} precedes the card"
            raise InputError([Issue(source, position, 1, "", message, "the output of dcgmi dmon alone")])
        samples[card[1]] += 1
        # Without names between them, values are assigned by order: copies of a file may lose spaces.
        words = line[card.end() :].split()
        ordered = len(words) == len(columns) - 1
        by_column = dict(zip(list(columns)[1:], words, strict=True)) if ordered else {}
        for column, name in _COLUMNS.items():
            value = _number(by_column.get(column) or line[columns[column]])
            yield name, (("gpu", card[1]), ("modelName", hardware)), float(samples[card[1]]), value


def _metric(line: str) -> str:
    """Return the metric name at the beginning of a sample."""
    return line.partition("{")[0].strip()


def _exporter(lines: list[str], source: str) -> Iterator[_Reading]:
    pages: dict[tuple[str, tuple[tuple[str, str], ...]], int] = defaultdict(int)
    for position, line in enumerate(lines, start=1):
        if _metric(line) not in _METRICS:
            continue
        sample = _SAMPLE.fullmatch(line.strip())
        if sample is None:
            message = "is not a sample: labels or value are missing or incomplete"
            raise InputError([Issue(source, position, 1, _metric(line), message)])
        named, name = dict(_LABEL.findall(sample[2])), _METRICS[sample[1]]
        labels = tuple((key, named[key]) for key in _LABELS if key in named)
        # A page contains each metric of a card once.
        pages[name, labels] += 1
        yield name, labels, float(pages[name, labels]), _number(sample[3])


def _number(text: str) -> float:
    """Return the value, or NaN for other text, which readers of the series count."""
    try:
        return float(text)
    except ValueError:
        return np.nan
