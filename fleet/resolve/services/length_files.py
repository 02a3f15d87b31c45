"""Read lengths of requests from CSV files: a histogram, or a trace to count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.document.headers import divider_issue, header_issues
from fleetplan.fleet.errors import Issue
from fleetplan.fleet.input_files import CsvError, NotTextError, csv_rows, read_text
from fleetplan.fleet.inventory import LengthBin, LengthHistogram
from fleetplan.fleet.resolve.context import Context

HISTOGRAM_COLUMNS: Final = ("input_from", "input_to", "output_from", "output_to", "share")
"""Columns of a histogram: bins of tokens, upper ends excluded, and their shares of the requests."""

TRACE_COLUMNS: Final = ("input_tokens", "output_tokens")
"""Required columns of a trace, one row per request."""

BINS_PER_DOUBLING: Final = 2
"""Bins of a trace's lengths, fine enough to keep means within a few per cent and percentiles within a
tenth."""

SHARE_TOLERANCE: Final = 1e-3
"""Tolerance of the sum of a histogram's shares: rounding of a few hundred printed shares."""


def read_lengths(context: Context, key_path: KeyPath, reference: str) -> LengthHistogram | None:
    """Return the lengths of a file, or None if it has mistakes, which go to the context.

    Parameters
    ----------
    context : Context
        Receives issues and the hash of the file.
    key_path : KeyPath
        The key that names the file.
    reference : str
        Path of the CSV file, relative to the YAML file that names it.
    """
    path = context.readable_file(key_path, reference)
    if path is None:
        return None
    try:
        lines = read_text(path).splitlines()
    except NotTextError as error:
        context.error(key_path, f"{path} cannot be read: {error}")
        return None
    before = len(context.issues)
    try:
        bins = _bins(context, path, lines)
    except CsvError as error:
        context.issues.append(Issue(str(path), error.line, 1, "", error.reason))
        return None
    if len(context.issues) > before or bins is None:
        return None
    total = sum(each.share for each in bins)
    if abs(total - 1.0) > SHARE_TOLERANCE:
        context.error(key_path, f"the shares in {path} add up to {total:g}, not 1")
        return None
    return LengthHistogram(tuple(_with_share(each, each.share / total) for each in bins))


def _bins(context: Context, path: Path, lines: Sequence[str]) -> list[LengthBin] | None:
    filled = (each for each in csv_rows(lines) if any(map(str.strip, each[1])))
    _, fields = next(filled, (0, []))
    header = [name.strip() for name in fields]
    rows = _records(context, path, header, filled)
    for columns in (HISTOGRAM_COLUMNS, TRACE_COLUMNS):
        if set(columns) <= set(header) and (issues := header_issues(str(path), header, columns)):
            context.issues.extend(issues)
            return None
    if set(HISTOGRAM_COLUMNS) <= set(header):
        return list(_histogram_bins(context, path, rows))
    if set(TRACE_COLUMNS) <= set(header):
        return counted_bins((*tokens, 1) for tokens in _trace_lengths(context, path, rows))
    if (divided := divider_issue(str(path), header)) is not None:
        context.issues.append(divided)
        return None
    wanted = f"a histogram has {', '.join(HISTOGRAM_COLUMNS)}; a trace {', '.join(TRACE_COLUMNS)}"
    context.issues.append(
        Issue(str(path), 1, 1, "", "the columns are those of neither a histogram nor a trace", wanted)
    )
    return None


def _histogram_bins(
    context: Context, path: Path, rows: Iterable[tuple[int, Mapping[str, str]]]
) -> Iterator[LengthBin]:
    for number, fields in rows:
        values = [_number(context, path, number, name, fields.get(name)) for name in HISTOGRAM_COLUMNS]
        if None in values:
            continue
        input_from, input_to, output_from, output_to, share = (float(value or 0.0) for value in values)
        ends = (input_from, input_to, output_from, output_to)
        if not 1 <= input_from < input_to or not 1 <= output_from < output_to or share < 0:
            message = "a bin needs 1 <= from < to in both lengths, and a share of at least 0"
            context.issues.append(Issue(str(path), number, 1, "", message))
            continue
        if any(end % 1 for end in ends):
            message = "the ends of a bin are whole numbers of tokens"
            context.issues.append(Issue(str(path), number, 1, "", message))
            continue
        yield LengthBin(int(input_from), int(input_to), int(output_from), int(output_to), share)


def _trace_lengths(
    context: Context, path: Path, rows: Iterable[tuple[int, Mapping[str, str]]]
) -> Iterator[tuple[int, int]]:
    for number, fields in rows:
        values = [_number(context, path, number, name, fields.get(name)) for name in TRACE_COLUMNS]
        if None in values:
            continue
        input_tokens, output_tokens = (float(value or 0.0) for value in values)
        if input_tokens < 1 or output_tokens < 1 or input_tokens % 1 or output_tokens % 1:
            message = "a request has a whole number of prompt tokens and of generated ones, at least 1"
            context.issues.append(Issue(str(path), number, 1, "", message))
            continue
        yield int(input_tokens), int(output_tokens)


def counted_bins(lengths: Iterable[tuple[int, int, int]]) -> list[LengthBin]:
    """Count (input tokens, output tokens, requests with both) in bins of equal ratios."""
    counts: Counter[tuple[tuple[int, int], tuple[int, int]]] = Counter()
    for input_tokens, output_tokens, requests in lengths:
        counts[length_bin(input_tokens), length_bin(output_tokens)] += requests
    total = sum(counts.values())
    return [
        LengthBin(*inputs, *outputs, count / total) for (inputs, outputs), count in sorted(counts.items())
    ]


def length_bin(tokens: int) -> tuple[int, int]:
    """Return the ends of the bin of a length, upper end excluded. [tokens]"""
    step = math.floor(BINS_PER_DOUBLING * math.log2(tokens))
    # Rounding of the logarithm or of the ends may place the number one bin too high or too low.
    for each in (step - 1, step, step + 1):
        start, end = (math.ceil(2 ** (edge / BINS_PER_DOUBLING)) for edge in (each, each + 1))
        if start <= tokens < end:
            return start, end
    raise AssertionError(f"no bin for {tokens} tokens")


def _records(
    context: Context, path: Path, header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    for number, fields in rows:
        if len(fields) > len(header):
            message = f"has {len(fields)} cells, the header {len(header)}"
            context.issues.append(Issue(str(path), number, 1, "", message))
            continue
        yield number, dict(zip(header, fields, strict=False))


def _number(context: Context, path: Path, line: int, name: str, text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        context.issues.append(Issue(str(path), line, 1, name, f"must be a number, not {text!r}"))
        return None
    return value


def _with_share(each: LengthBin, share: float) -> LengthBin:
    return LengthBin(each.input_from, each.input_to, each.output_from, each.output_to, share)
