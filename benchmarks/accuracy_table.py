"""Markdown tables of prediction errors, coverage, exclusions and bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pandas as pd
from benchmarks.accuracy_bars import PERCENT, AccuracyBar
from benchmarks.accuracy_rules import RULES, least_latency_s

SLICES: Final = ("hardware", "framework", "model_class", "weights", "quality")
_MEASURES: Final = {
    "tpot_error": "TPOT",
    "throughput_error": "throughput",
    "prefill_error": "prefill",
    "latency_error": "end to end",
}
_WORST: Final = 12
_FEWEST_ROWS: Final = 8


def sections_text(sections: Mapping[str, str]) -> str:
    """Join sections, by title, into Markdown."""
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())


def slices(rows: pd.DataFrame) -> dict[str, str]:
    """Tabulate the errors of every measure that was published, one section per slice."""
    measures = {name: title for name, title in _MEASURES.items() if rows[name].notna().any()}
    found = {}
    for column in SLICES:
        body = [
            [str(name), *(error_figures(group[measure]) for measure in measures)]
            for name, group in rows.groupby(column, sort=True)
            if group[list(measures)].notna().any(axis=None)
        ]
        by = column.replace("_", " ")
        found[f"Errors by {by}"] = markdown_table([by, *measures.values()], body)
    return found


def coverage_text(rows: pd.DataFrame) -> str:
    """Share of rows with a prediction, and the reasons of those without."""
    body = []
    for name, selected in (("quality A", rows[rows["quality"] == "A"]), ("all", rows)):
        kept = selected[selected["rule"] == ""]
        answered = int((kept["status"] == "ok").sum())
        body.append([name, str(len(selected)), str(len(kept)), str(answered), f"{answered / len(kept):.1%}"])
    lines = [markdown_table(["rows", "published", "not excluded", "predicted", "coverage"], body)]
    refused = rows[(rows["rule"] == "") & (rows["status"] != "ok")]
    if len(refused):
        reasons = refused["reason"].str.split(";").str[0].value_counts()
        lines.append(
            markdown_table(["refused because", "rows"], [[str(name), str(n)] for name, n in reasons.items()])
        )
    return "\n\n".join(lines)


def exclusions_text(rows: pd.DataFrame) -> str:
    """Rows that each rule took, with its reason."""
    counts = rows["rule"].value_counts()
    body = [[rule.code, rule.reason, str(int(counts.get(rule.code, 0)))] for rule in RULES]
    return markdown_table(["rule", "reason", "rows"], body)


def groups_text(bars: Sequence[AccuracyBar]) -> str:
    """Every group of rows that a bar is about, with its errors."""
    body = [[bar.name, str(bar.n_rows), error_figures(bar.errors), f"{bar.bias:+.1f}"] for bar in bars]
    return markdown_table(["rows", "number", "median / p90, %", "bias, %"], body)


def bars_text(bars: Sequence[AccuracyBar]) -> str:
    """Every bar with its figures."""
    body = []
    for bar in bars:
        limit = f"{bar.median_limit:g}"
        if bar.percentile_limit is not None:
            limit += f" / {bar.percentile_limit:g}"
        verdict = "met" if bar.met else f"MISSED by {_missed_by(bar)}"
        body.append(
            [bar.name, str(bar.n_rows), error_figures(bar.errors), f"{bar.bias:+.1f}", limit, verdict]
        )
    lines = [markdown_table(["bar", "rows", "median / p90, %", "bias, %", "limit, %", ""], body)]
    met = sum(bar.met for bar in bars)
    return "\n\n".join([*lines, f"{met} of {len(bars)} bars met."])


def units_text(rows: pd.DataFrame) -> str:
    """Errors of the end-to-end latency of rows whose unit is ambiguous, read both ways; '' without any.

    With the rows that would be faster than possible: the column of a table has one unit, so one is enough.
    """
    unclear = rows[rows["unit_is_ambiguous"] & (rows["tp"] > 1) & rows["latency_error"].notna()]
    body = []
    for labels, group in unclear.groupby(["hardware", "model"], sort=True):
        ratio = 1.0 + group["latency_error"]
        impossible = group["latency_s"] / group["tp"] < least_latency_s(group)
        body.append(
            [
                *(str(label) for label in labels),
                f"{(ratio - 1.0).median() * PERCENT:+.0f} ({len(group)})",
                f"{(ratio * group['tp'] - 1.0).median() * PERCENT:+.0f} ({len(group)})",
                str(int(impossible.sum())),
            ]
        )
    if not body:
        return ""
    head = [
        "hardware",
        "model",
        "tokens a second of all accelerators: bias, %",
        "of each: bias, %",
        "of each: rows faster than possible",
    ]
    return markdown_table(head, body)


def peer_text(rows: pd.DataFrame, peer: pd.Series[float]) -> str:
    """Our errors beside the peer's on the rows of its sample that it predicts."""
    asked = rows.loc[peer.index]
    answered = asked[peer.notna()]
    errors = peer[peer.notna()]
    body = [["all", error_figures(answered["tpot_error"]), error_figures(errors)]]
    for column in ("framework", "model_class", "hardware"):
        for name, group in answered.groupby(column, sort=True):
            body.append([str(name), error_figures(group["tpot_error"]), error_figures(errors[group.index])])
    table = markdown_table(["slice", "ours, median / p90, %", "aiconfigurator 0.12.0"], body)
    shared = f"Of {len(asked)} quality-A rows drawn by seed, aiconfigurator predicts {len(answered)}."
    return f"{table}\n\n{shared}"


def worst_text(rows: pd.DataFrame) -> str:
    """Deployments with the largest median error."""
    keys = ["quality", "hardware", "framework", "model", "weights"]
    known = rows[rows["tpot_error"].notna()]
    grouped = known.groupby(keys)["tpot_error"]
    found = pd.DataFrame(
        {
            "rows": grouped.size(),
            "median": grouped.apply(lambda errors: errors.abs().median()),
            "bias": grouped.median(),
        }
    )
    found = found[found["rows"] >= _FEWEST_ROWS].nlargest(_WORST, "median")
    body = [
        [*(str(part) for part in labels), str(int(row["rows"])), f"{row['bias'] * PERCENT:+.1f}"]
        for labels, row in zip(found.index.tolist(), found.to_dict("records"), strict=True)
    ]
    return markdown_table([*keys, "rows", "bias, %"], body)


def _missed_by(bar: AccuracyBar) -> str:
    """Percentage points above the limits."""
    over = [f"{bar.median - bar.median_limit:.1f}" if bar.median > bar.median_limit else ""]
    if bar.percentile_limit is not None and bar.percentile > bar.percentile_limit:
        over.append(f"{bar.percentile - bar.percentile_limit:.1f} at p90")
    return ", ".join(part for part in over if part)


def error_figures(errors: pd.Series[float]) -> str:
    known = errors.dropna().abs() * PERCENT
    if known.empty:
        return ""
    return f"{known.median():.1f} / {known.quantile(0.9):.1f} ({len(known)})"


def print_refused(rows: pd.DataFrame) -> int:
    """Print why rows were refused, and return how many were."""
    refused = rows.loc[rows["status"] != "ok", "reason"]
    print(f"\nrefused: {refused.value_counts().to_dict()}")
    return len(refused)


def markdown_table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *(list(row) for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
