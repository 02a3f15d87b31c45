"""Engine tables of random services, and workloads that only name their classes."""

from __future__ import annotations

import csv
import io
from typing import Any

from tests.fuzz.fleets.made import Made

CLASSES = ("ca", "cb", "cc")
SIZES = (1, 1, 2, 2, 3, 4, 4, 8, 16)
"""Accelerators a replica; three do not divide a host, sixteen take several."""

LENGTHS = "input_from,input_to,output_from,output_to,share\n1,256,1,32,0.5\n256,1024,16,128,0.5\n"
"""A histogram of two kinds of requests."""


def engine_table(made: Made, classes: tuple[str, ...], *, latencies: bool) -> str:
    """Return a table with some phases of every part."""
    powers = made.chance(0.6)
    columns = ["phase", "hardware", "accelerators_per_replica", "config"]
    columns += ["class"] if classes else []
    columns += ["requests_per_s"]
    columns += ["power_kw"] if powers else []
    columns += ["ttft_ms", "tpot_ms"] if latencies else []
    columns += ["kv_gb_per_request"] if made.counts_kv else []
    text = io.StringIO()
    table = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    apart = made.chance(0.6)
    for part in made.parts:
        for phase in ("aggregated", "prefill", "decode"):
            wanted = apart if phase != "aggregated" else made.chance(0.8) or not apart
            for n in range(made.dice.choice((1, 1, 2)) if wanted else 0):
                _configuration(made, table, {"phase": phase, "hardware": part, "config": f"c{n}"}, classes)
    return text.getvalue()


def _configuration(
    made: Made, table: csv.DictWriter[str], row: dict[str, Any], classes: tuple[str, ...]
) -> None:
    """Write the rows of one configuration: one a class."""
    size = made.dice.choice(SIZES)
    watts = made.dice.randint(150, 1200)
    good = made.figure(0.4, 4)
    ttft = made.figure(80, 320, 1)
    for name in classes or ("",):
        none = bool(classes) and made.chance(0.05)
        table.writerow(
            row
            | {
                "accelerators_per_replica": size,
                "class": name,
                "requests_per_s": 0 if none else round(size * good * made.dice.uniform(0.4, 1.6) + 0.01, 2),
                # Whole watts an accelerator: the planner's power has this resolution.
                "power_kw": round(size * watts / 1000, 3),
                "ttft_ms": round(ttft * made.dice.uniform(0.8, 1.2), 1),
                "tpot_ms": made.figure(20, 65, 1),
                "kv_gb_per_request": made.figure(0.01, 1),
            }
        )


def full_workload(made: Made, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return what requests look like; the lengths of an engine table's classes count for tokens alone."""
    if not classes:
        node = _lengths(made, "services.workload")
        if made.wants("services.workload.lengths"):
            node = node if made.chance(0.5) else {}
            node["lengths"] = "lengths.csv"
            made.tables["lengths.csv"] = LENGTHS
        return node
    return {"classes": {name: _class(made) for name in classes}}


def _class(made: Made) -> dict[str, Any]:
    node = _lengths(made, "services.workload.classes")
    if made.wants("services.workload.classes.lengths"):
        node["lengths"] = "lengths.csv"
        made.tables["lengths.csv"] = LENGTHS
    return node


def _lengths(made: Made, above: str) -> dict[str, Any]:
    new = made.dice.choice((64, 256, 512))
    node = {"input_tokens": new, "output_tokens": made.dice.choice((1, 16, 64))}
    if made.wants(f"{above}.context_tokens", max(made.density, 0.3)):
        node["context_tokens"] = new + made.dice.choice((0, 128, 512))
    return node
