"""Random cases of `predict` over the whole catalogue, each with an improved copy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.catalog.models import resolve
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.predict import FRAMEWORKS, predict
from fleetplan.perfmodel.steps import KV_PRECISIONS, WEIGHT_PRECISIONS

Row = dict[str, Any]
Random = np.random.Generator

ROWS_OF_A_GROUP: Final = 120
"""Cases of one model on one part in a long run: they share its tables, which take most of the time."""

MODELS: Final = tuple(model_catalog())
PARTS: Final = tuple(accelerators())
LAYOUTS: Final = (
    *({"tp": tp, "pp": pp} for tp in (1, 2, 4, 8, 16) for pp in (1, 2, 4)),
    *({"tp": tp, "ep": tp} for tp in (2, 4, 8, 16)),
    *({"tp": 1, "dp": dp, "ep": dp} for dp in (4, 8, 16, 32)),
    *({"tp": 2, "dp": 4, "ep": 8}, {"tp": 4, "ep": 4, "pp": 2}, {"tp": 8, "ep": 2}),
)
LAYOUTS_OF_A_GROUP: Final = 3
MODES: Final = ("prefill", "decode", "static", *("closed_loop",) * 3, "open_loop", "burst", "offline")
FIGURES: Final = {
    "flops": ("bf16_tflops", "fp8_tflops", "fp4_tflops", "int8_tops"),
    "bandwidth": ("hbm_gb_per_s",),
    "scale-up": ("scale_up_gb_per_s",),
    "scale-out": ("scale_out_gb_per_s",),
    "memory": ("hbm_gib",),
}
"""Figures of a part that are made larger together."""

SERVING_KEYS: Final = ("max_sequences", "max_batched_tokens", "concurrency", "requests_per_s", "n_requests")
"""Columns of loops that steps alone do not have."""

SMALLER: Final = ("num_hidden_layers", "intermediate_size", "moe_intermediate_size", "vocab_size")
"""Keys of a config that are halved."""


@dataclass(frozen=True, slots=True)
class BetterCase:
    """A case, an improved copy, and the improvement."""

    law: str
    row: Row
    better: Row


def random_pairs(
    count: int, seed: int, folder: Path, of_a_group: int = ROWS_OF_A_GROUP
) -> tuple[list[BetterCase], dict[str, Accelerator]]:
    """Draw cases in groups, with the parts that they name; models that are made up lie in `folder`."""
    random, parts = np.random.default_rng(seed), dict(accelerators())
    pairs: list[BetterCase] = []
    while len(pairs) < count:
        fixed = _group(random)
        layouts = _layouts(fixed, random)
        if not layouts:
            continue
        laws = _laws(fixed, random, parts, folder)
        for _ in range(of_a_group):
            name = str(random.choice(list(laws)))
            row = fixed | layouts[random.integers(len(layouts))] | _load(random)
            better = laws[name](row)
            if better is not None:
                pairs.append(BetterCase(name, row, better))
    return pairs[:count], parts


def _group(random: Random) -> Row:
    part = accelerators()[str(random.choice(PARTS))]
    weights = [each for each in WEIGHT_PRECISIONS if part.peak_tflops(each.partition("-")[0]) is not None]
    return {
        "model": str(random.choice(MODELS)),
        "hardware": part.name,
        "backend": str(random.choice(FRAMEWORKS)),
        "weights": str(random.choice(weights)),
        "kv": str(random.choice(KV_PRECISIONS)),
        "max_sequences": int(2 ** random.integers(4, 12)),
        "max_batched_tokens": int(2 ** random.integers(11, 15)),
    }


def _layouts(fixed: Row, random: Random) -> list[Row]:
    """Return some of the layouts that can run the model; none where none has the memory."""
    known = [{"pp": 1, "dp": 1, "ep": 1} | each for each in LAYOUTS]
    step = {name: value for name, value in fixed.items() if name not in SERVING_KEYS}
    step |= {"mode": "decode", "batch": 1, "input_tokens": 1, "case_id": 0}
    found = predict(pd.DataFrame([step | each for each in known]))
    able = np.flatnonzero((found["status"] == "ok") & found["fits"])
    return [known[each] for each in random.permutation(able)[:LAYOUTS_OF_A_GROUP].tolist()]


def _load(random: Random) -> Row:
    mode = str(random.choice(MODES))
    load = {
        "mode": mode,
        "input_tokens": int(2 ** random.uniform(0, 15)),
        "output_tokens": int(2 ** random.uniform(0, 10)),
        "prefix_tokens": int(random.choice((0, 0, 2 ** random.uniform(4, 14)))),
    }
    size = int(2 ** random.uniform(0, 12 if mode in ("closed_loop", "open_loop") else 9))
    match mode:
        case "open_loop":
            load["requests_per_s"] = float(2 ** random.uniform(-5, 6))
        case "closed_loop" | "burst":
            load["concurrency"] = size
        case "offline":
            load["n_requests"] = size
        case _:
            load["batch"] = size
    return load


Law = Callable[[Row], Row | None]


def _laws(fixed: Row, random: Random, parts: dict[str, Accelerator], folder: Path) -> dict[str, Law]:
    """Every way in which a case of this group can get better."""
    part = parts[fixed["hardware"]]
    factor = float(random.choice((1.05, 1.5, 4.0)))
    found: dict[str, Law] = {
        "shorter prompts": lambda row: _less(row, "input_tokens", 1, random),
        "fewer tokens": lambda row: (
            None if row["mode"] == "prefill" else _less(row, "output_tokens", 1, random)
        ),
        "shorter prefix": lambda row: _less(row, "prefix_tokens", 0, random),
        "less load": lambda row: _less_load(row, random),
    }
    for name in random.choice(list(FIGURES), 2, replace=False).tolist():
        figures = [each for each in FIGURES[name] if getattr(part, each) is not None]
        if figures:
            label = f"{part.name}+{name}*{factor:g}"
            parts[label] = replace(
                part.with_figures(**{each: getattr(part, each) * factor for each in figures}), name=part.name
            )
            found[f"more {name}"] = lambda row, label=label: row | {"hardware": label}
    if part.tdp_w is not None and random.random() < 0.5:
        low, high = np.sort(random.uniform(0.5, 1.0, 2)) * part.tdp_w
        found["higher cap"] = lambda row: row | {"power_cap_w": float(high), "_power_cap_w": float(low)}
        found["no cap"] = lambda row: row | {"power_cap_w": None, "_power_cap_w": float(low)}
    smaller = _smaller_model(fixed["model"], part.measured_system is not None, random, folder)
    if smaller is not None:
        # Half of the layers may leave the stages of a pipeline uneven.
        found["smaller model"] = lambda row: row | {"model": smaller} if row["pp"] == 1 else None
    return found


def _less(row: Row, column: str, least: int, random: Random) -> Row | None:
    if row[column] <= least:
        return None
    return row | {column: int(random.integers(least, row[column]))}


def _less_load(row: Row, random: Random) -> Row | None:
    if "requests_per_s" in row:
        return row | {"requests_per_s": row["requests_per_s"] * random.uniform(0.2, 1.0)}
    column = next(name for name in ("batch", "concurrency", "n_requests") if name in row)
    return _less(row, column, 1, random)


def _smaller_model(name: str, is_measured: bool, random: Random, folder: Path) -> str | None:
    """A model with half of something; the same layouts can run it."""
    config: Any = json.loads(json.dumps(dict(model_catalog()[resolve(name)].config)))
    text = config.get("text_config", config)
    wanted = SMALLER[:1] if is_measured else SMALLER
    keys = [each for each in wanted if isinstance(text.get(each), int) and text[each] % 2 == 0]
    if not keys:
        return None
    key = str(random.choice(keys))
    text[key] //= 2
    if key == "num_hidden_layers":
        for each, value in text.items():
            if isinstance(value, list | str) and len(value) == 2 * text[key]:
                text[each] = value[: text[key]]
    path = folder / f"{name.replace('/', '-')}-{key}.json"
    path.write_text(json.dumps(config), "utf-8")
    return path.name
