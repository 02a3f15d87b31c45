"""Laws that hold between two predictions, over random models, parts, layouts, lengths and loads.

    python -m tests.perfmodel.predict.random_laws 10000

`predict` answers every case twice: as it is, and with one thing better (`_laws`). The better one takes no
longer, and what ran still runs. And no loop passes the peak of prompts alone or of generation alone
(`over_the_peak`). Exit 1 where a law is broken.

What the laws leave out, and why:

* Cases that do not fit the memory: their times hold for a part with more of it.
* Narrower feed-forward blocks on parts with measured tables. The table is noisy there: two widths that were
  not measured borrow from different measured ones, of other frameworks too. Fewer layers are compared.
* 2 in 1,000 of a loop (`MARGIN`), whose decode attention is taken as straight between two contexts.
* 8 in 100 of a peak on parts with measured tables, 1 elsewhere (`PEAK_MARGIN`): a product of 8,192 rows of
  their GEMMs may take up to 7 % less a row than one of 5,000 or of 17,000, and a loop cuts prompts to it.
* The mean latency of a burst, if the load is the same: where more of its requests fit at once, they end
  together, and later in the mean than one group after the other. How long all of them take is compared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.catalog.models import resolve
from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.predict import predict

Row = dict[str, Any]
Random = np.random.Generator

MARGIN: Final = {"closed_loop": 2e-3, "burst": 2e-3, "open_loop": 2e-3, "offline": 2e-3}
"""Share of a time by which a loop may miss a law; other modes 1e-9."""

PEAK_MARGIN: Final = {True: 0.08, False: 0.01}
"""Share by which a rate may pass a peak, which is looked for at some batches alone, by whether the part has
measured tables."""

ROWS_OF_A_GROUP: Final = 120
"""Cases of one model on one part in a long run: they share its tables, which take most of the time."""

MODELS: Final = (
    "llama3-8b",
    "llama3-70b",
    "gemma3-12b",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "llama4-scout",
    "qwen3-30b-a3b",
    "qwen3-235b",
    "glm-4.5-air",
    "deepseek-v2-lite",
    "deepseek-v3",
    "qwen3-next-80b",
    "minimax-m2",
    "nemotron-3-nano",
    "deepseek-v3.2",
)
PARTS: Final = (
    *("A100-SXM-80GB", "H100-SXM", "H20-SXM", "H100-PCIe", "H200-SXM", "B200-SXM", "B300-SXM"),
    *("GB200-NVL72", "L40S", "RTX-PRO-6000-Server", "Arc-Pro-B60"),
    *("MI300X", "MI325X", "MI355X", "Gaudi3", "TPU-v6e", "Trainium2"),
)
LAYOUTS: Final = ({"tp": 1}, {"tp": 2}, {"tp": 4}, {"tp": 8}, {"tp": 2, "pp": 2}, {"tp": 16})
EXPERT_LAYOUTS: Final = (
    *({"tp": 4, "ep": 4}, {"tp": 8, "ep": 8}, {"tp": 1, "dp": 4, "ep": 4}, {"tp": 1, "dp": 8, "ep": 8}),
    {"tp": 1, "dp": 16, "ep": 16},
)
LAYOUTS_OF_A_GROUP: Final = 3
MODES: Final = ("prefill", "decode", "static", "closed_loop", "open_loop", "burst", "offline")
FIGURES: Final = {
    "flops": ("bf16_tflops", "fp8_tflops", "fp4_tflops", "int8_tops"),
    "bandwidth": ("hbm_gb_per_s",),
    "scale-up": ("scale_up_gb_per_s",),
    "scale-out": ("scale_out_gb_per_s",),
    "memory": ("hbm_gib",),
}
"""Figures of a part that are made larger together."""

LOOPS: Final = ("closed_loop", "open_loop", "burst", "offline")
SERVING_KEYS: Final = ("max_sequences", "max_batched_tokens", "concurrency", "requests_per_s", "n_requests")
"""Columns of loops that steps alone do not have."""

SMALLER: Final = ("num_hidden_layers", "intermediate_size", "moe_intermediate_size", "vocab_size")
"""Keys of a config that are halved."""


@dataclass(frozen=True, slots=True)
class BetterCase:
    """A case, the same with one thing better, and what that is."""

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
        laws = _laws(fixed, random, parts, folder)
        layouts = _layouts(fixed["model"], random)
        for _ in range(of_a_group):
            name = str(random.choice(list(laws)))
            row = fixed | layouts[random.integers(len(layouts))] | _load(random)
            better = laws[name](row)
            if better is not None:
                pairs.append(BetterCase(name, row, better))
    return pairs[:count], parts


def _group(random: Random) -> Row:
    part = str(random.choice(PARTS))
    weights = ["bf16"]
    if accelerators()[part].fp8_tflops is not None:
        weights.append("fp8")
    if accelerators()[part].fp4_tflops is not None:
        weights.append("fp4")
    return {
        "model": str(random.choice(MODELS)),
        "hardware": part,
        "backend": str(random.choice(("vllm", "sglang", "trtllm"))),
        "weights": str(random.choice(weights)),
        "kv": str(random.choice(("bf16", "fp8"))),
        "max_sequences": int(2 ** random.integers(4, 12)),
        "max_batched_tokens": int(2 ** random.integers(11, 15)),
    }


def _layouts(model: str, random: Random) -> list[Row]:
    has_experts = bool(load_architecture(model, Path()).routed_experts)
    known = (*LAYOUTS, *EXPERT_LAYOUTS) if has_experts else LAYOUTS
    chosen = random.choice(len(known), LAYOUTS_OF_A_GROUP, replace=False).tolist()
    return [{"pp": 1, "dp": 1, "ep": 1} | known[each] for each in chosen]


def _load(random: Random) -> Row:
    mode = str(random.choice(MODES))
    load = {
        "mode": mode,
        "input_tokens": int(2 ** random.uniform(0, 15)),
        "output_tokens": int(2 ** random.uniform(0, 10)),
        "prefix_tokens": int(random.choice((0, 0, 2 ** random.uniform(4, 14)))),
    }
    size = int(2 ** random.uniform(0, 9))
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
        found["smaller model"] = lambda row: row | {"model": smaller}
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


def broken(pairs: list[BetterCase], parts: dict[str, Accelerator], folder: Path) -> tuple[pd.DataFrame, int]:
    """Return the cases that break a law, and how many were compared."""
    rows = [_as_given(pair) for pair in pairs] + [pair.better for pair in pairs]
    frame, found = pd.DataFrame(rows), _predicted(rows, parts, folder)
    before, after = found.iloc[: len(pairs)], found.iloc[len(pairs) :]
    modes = frame["mode"].to_numpy()[: len(pairs)]
    margin = np.array([MARGIN.get(mode, 1e-9) for mode in modes])
    compared = ((before["status"] == "ok") & before["fits"]).to_numpy()
    worse = after["latency_ms"].to_numpy() / before["latency_ms"].to_numpy() - 1.0
    kept = np.array([_same_work(pair) for pair in pairs])
    worse = np.where(kept & (modes == "burst"), -np.inf, worse)
    slower = before["requests_per_s"].to_numpy() / after["requests_per_s"].to_numpy() - 1.0
    worse = np.fmax(worse, np.where(kept, slower, -np.inf))
    # What ran must still run: nothing that is better makes a case impossible.
    refused = (after["status"] != "ok").to_numpy()
    wrong = compared & (refused | ~(worse <= margin))
    chosen = np.flatnonzero(wrong)
    table = frame.iloc[chosen].reset_index(drop=True)
    return table.assign(
        law=[pairs[each].law for each in chosen],
        worse=worse[chosen],
        before_ms=before["latency_ms"].to_numpy()[chosen],
        after_ms=after["latency_ms"].to_numpy()[chosen],
        reason=after["reason"].to_numpy()[chosen],
        better=[pairs[each].better for each in chosen],
    ), int(compared.sum())


def over_the_peak(
    pairs: list[BetterCase], parts: dict[str, Accelerator], folder: Path
) -> tuple[pd.DataFrame, int]:
    """Return the loops that serve more than prompts or generation alone, and how many were compared."""
    loops = [pair.row for pair in pairs if pair.row["mode"] in LOOPS]
    rows, owner, phases = [], [], []
    for position, row in enumerate(loops):
        own = {key: value for key, value in row.items() if key not in SERVING_KEYS}
        most = max(1, 2 * row["max_batched_tokens"] // row["input_tokens"])
        for phase, largest in (("prefill", most), ("decode", row["max_sequences"])):
            for batch in np.unique(np.geomspace(1, largest, 12).astype(np.int64)).tolist():
                rows.append(own | {"mode": phase, "batch": batch})
                owner.append(position)
                phases.append(phase)
    if not loops:
        return pd.DataFrame(), 0
    served = _predicted(loops, parts, folder)
    alone = _predicted(rows, parts, folder).assign(owner=owner, phase=phases)
    # Loops of which no phase can run are left out by the table, and compared with nothing.
    peak = alone.pivot_table("requests_per_s", "owner", "phase", aggfunc="max").reindex(
        index=range(len(loops)), columns=["prefill", "decode"]
    )
    output = np.array([row["output_tokens"] for row in loops])
    # The first token of a request comes with its prompt.
    decode = peak["decode"].to_numpy() * np.where(output > 1, output / np.maximum(output - 1, 1), np.inf)
    over = served["requests_per_s"].to_numpy() / np.fmin(peak["prefill"].to_numpy(), decode) - 1.0
    compared = ((served["status"] == "ok") & served["fits"]).to_numpy() & np.isfinite(over)
    margin = np.array([PEAK_MARGIN[parts[row["hardware"]].measured_system is not None] for row in loops])
    chosen = np.flatnonzero(compared & (over > margin))
    table = pd.DataFrame([loops[each] for each in chosen]).assign(law="peak", worse=over[chosen])
    return table, int(compared.sum())


def _predicted(rows: list[Row], parts: dict[str, Accelerator], folder: Path) -> pd.DataFrame:
    frame = pd.DataFrame(rows).assign(case_id=[str(row) for row in range(len(rows))])
    return predict(frame.drop(columns=["_power_cap_w"], errors="ignore"), folder, parts=parts)


def _as_given(pair: BetterCase) -> Row:
    """The case before the change; a cap is put on it that the better one has not."""
    cap = pair.better.get("_power_cap_w")
    return pair.row if cap is None else pair.row | {"power_cap_w": cap}


def _same_work(pair: BetterCase) -> bool:
    """Whether rates can be compared: the load is the same."""
    return pair.law != "less load" and pair.row["mode"] != "decode"


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def main() -> int:
    count, seed = (
        int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((1, 1000), (2, 1))
    )
    compared = found = 0
    with tempfile.TemporaryDirectory() as name:
        while compared < count:
            pairs, parts = random_pairs(ROWS_OF_A_GROUP, seed, Path(name))
            for law in (broken, over_the_peak):
                table, checked = law(pairs, parts, Path(name))
                compared, found = compared + checked, found + len(table)
                for row in table.to_dict("records"):
                    print({key: value for key, value in row.items() if not _is_empty(value)})
            operator_source.cache_clear()
            seed += 1
            print(f"{compared} compared, {found} broken", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
