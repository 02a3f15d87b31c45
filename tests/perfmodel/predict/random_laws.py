"""Laws that hold between two predictions, over random models, parts, layouts, lengths and loads.

    python -m tests.perfmodel.predict.random_laws 10000

`predict` answers every case twice: as it is, and with one thing better (`_laws`). The better one takes no
longer, and what ran still runs; so do its closed loops with prompts and generation on pools of their own
(`apart`). No loop passes the peak of prompts alone or of generation alone (`over_the_peak`), and nothing
passes the arithmetic and the memory of its part (`beyond_the_part`). Exit 1 where a law is broken.

What the laws leave out, and why:

* Cases that do not fit the memory: their times hold for a part with more of it.
* Narrower feed-forward blocks on parts with measured tables. The table is noisy there: two widths that were
  not measured borrow from different measured ones, of other frameworks too. Fewer layers are compared.
* 2 in 1,000 of a loop (`MARGIN`), whose decode attention is taken as straight between two contexts.
* 1 in 100 of a peak (`PEAK_MARGIN`), which is looked for at some batches alone, of whole prompts and of such
  as fill the iterations of the server to the last token.
* Offline runs whose longest contexts lie on both sides of a power of two: their decode attention is straight
  between other contexts then, which is up to 1 % off.
* The mean latency of a burst, if the load is the same: where more of its requests fit at once, they end
  together, and later in the mean than one group after the other. How long all of them take is compared.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from tests.perfmodel.predict.random_cases import ROWS_OF_A_GROUP, SERVING_KEYS, BetterCase, Row, random_pairs

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.predict import predict

MARGIN: Final = dict.fromkeys(("closed_loop", "burst", "open_loop", "offline", "disaggregated"), 2e-3)
"""Share of a time by which a loop may miss a law; other modes 1e-9."""

PEAK_MARGIN: Final = 0.01
"""Share by which a rate may pass a peak."""

BATCHES: Final = 16
"""Batches at which a peak is looked for."""

POOLS: Final = (1, 2, 3)
"""Prefill replicas for two decode replicas of disaggregated cases, in turn."""

LOOPS: Final = ("closed_loop", "open_loop", "burst", "offline")


def broken(pairs: list[BetterCase], parts: dict[str, Accelerator], folder: Path) -> tuple[pd.DataFrame, int]:
    """Return the cases that break a law, and how many were compared."""
    rows = [_as_given(pair) for pair in pairs] + [pair.better for pair in pairs]
    frame, found = pd.DataFrame(rows), _predicted(rows, parts, folder)
    before, after = found.iloc[: len(pairs)], found.iloc[len(pairs) :]
    modes = frame["mode"].to_numpy()[: len(pairs)]
    margin = np.array([MARGIN.get(mode, 1e-9) for mode in modes])
    fitting = ((before["status"] == "ok") & before["fits"]).to_numpy()
    compared = fitting & [_on_one_line(pair) for pair in pairs]
    worse = after["latency_ms"].to_numpy() / before["latency_ms"].to_numpy() - 1.0
    kept = np.array([_same_work(pair) for pair in pairs])
    worse = np.where(kept & (modes == "burst"), -np.inf, worse)
    slower = before["requests_per_s"].to_numpy() / after["requests_per_s"].to_numpy() - 1.0
    worse = np.fmax(worse, np.where(kept, slower, -np.inf))
    # Nor do more clients serve fewer requests.
    closed = np.isin(modes, ("closed_loop", "disaggregated"))
    fewer_clients = closed & [pair.law == "less load" for pair in pairs]
    worse = np.fmax(worse, np.where(fewer_clients, 1.0 / (1.0 + slower) - 1.0, -np.inf))
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
    if not loops:
        return pd.DataFrame(), 0
    rows = [each | {"owner": owner} for owner, row in enumerate(loops) for each in _alone(row)]
    served = _predicted(loops, parts, folder)
    alone = _predicted(rows, parts, folder)
    alone = alone.assign(owner=[row["owner"] for row in rows], phase=[row["mode"] for row in rows])
    share = [row["input_tokens"] / loops[row["owner"]]["input_tokens"] for row in rows]
    alone["requests_per_s"] *= np.where(alone["phase"] == "prefill", share, 1.0)
    # Loops of which no phase can run are left out by the table, and compared with nothing.
    peak = alone.pivot_table("requests_per_s", "owner", "phase", aggfunc="max").reindex(
        index=range(len(loops)), columns=["prefill", "decode"]
    )
    output = np.array([row["output_tokens"] for row in loops])
    # The first token of a request comes with its prompt.
    decode = peak["decode"].to_numpy() * np.where(output > 1, output / np.maximum(output - 1, 1), np.inf)
    over = served["requests_per_s"].to_numpy() / np.fmin(peak["prefill"].to_numpy(), decode) - 1.0
    compared = ((served["status"] == "ok") & served["fits"]).to_numpy() & np.isfinite(over)
    chosen = np.flatnonzero(compared & (over > PEAK_MARGIN))
    table = pd.DataFrame([loops[each] for each in chosen]).assign(law="peak", worse=over[chosen])
    return table, int(compared.sum())


def apart(pairs: list[BetterCase]) -> list[BetterCase]:
    """Return the closed loops with prompts and generation on replicas of their own, of the same layout."""
    loops = [pair for pair in pairs if pair.row["mode"] == "closed_loop"]
    return [
        BetterCase(pair.law, *(_with_pools(row, POOLS[at % len(POOLS)]) for row in (pair.row, pair.better)))
        for at, pair in enumerate(loops)
    ]


def _with_pools(row: Row, prefill_replicas: int) -> Row:
    pools = {f"prefill_{name}": row[name] for name in ("tp", "pp", "dp", "ep")}
    replicas = {"prefill_replicas": prefill_replicas, "decode_replicas": 2}
    return row | {"mode": "disaggregated"} | pools | replicas


def beyond_the_part(
    pairs: list[BetterCase], parts: dict[str, Accelerator], folder: Path
) -> tuple[pd.DataFrame, int]:
    """Return the cases that beat the arithmetic or the memory of their part, and how many were compared.

    Of a model only the parameters that every token meets count, without its embeddings, and of a part its
    largest peak: what is left out makes the floor lower.
    """
    rows = [pair.row for pair in pairs]
    frame, found = pd.DataFrame(rows), _predicted(rows, parts, folder)
    mode, prompt, output = frame["mode"], frame["input_tokens"], frame["output_tokens"]
    at_once = frame.reindex(columns=["batch"])["batch"].fillna(1)
    accelerators = frame["tp"] * frame["pp"] * frame["dp"]
    part = frame["hardware"].map(parts)
    peak = part.map(_largest_peak) * accelerators
    weights = {name: _parameters_met(name, folder) for name in frame["model"].unique()}
    parameters = frame["model"].map(weights)
    prompts_ms = 2e3 * parameters * prompt * at_once * frame["dp"].where(mode != "decode") / peak
    prompts_ms = prompts_ms.where(~mode.isin(LOOPS), prompts_ms / frame["dp"])
    read_bytes = parameters * frame["weights"].str.partition("-")[0].map(BYTES_PER_ELEMENT)
    token_ms = read_bytes / (part.map(lambda each: each.hbm_gb_per_s) * 1e6 * accelerators)
    work = found["requests_per_s"] * 2.0 * parameters * (prompt + output - 1)
    impossible = (
        (found["ttft_ms"] < prompts_ms)
        | ((found["tpot_ms"] < token_ms) & (output > 1) & (mode != "prefill"))
        | ((work > peak) & mode.isin([*LOOPS, "static"]))
        | (found["fits"] & (found["memory_gib_per_accelerator"] > part.map(lambda each: each.hbm_gib)))
    )
    ran = found["status"] == "ok"
    chosen = np.flatnonzero(ran & impossible)
    figures = found[["ttft_ms", "tpot_ms", "requests_per_s", "memory_gib_per_accelerator"]]
    floors = frame.assign(law="the part", prompts_ms=prompts_ms, token_ms=token_ms)
    return floors.join(figures.add_prefix("found_")).iloc[chosen], int(ran.sum())


def _largest_peak(part: Accelerator) -> float:
    peaks = (part.bf16_tflops, part.fp8_tflops, part.fp4_tflops, part.int8_tops)
    return 1e12 * max(each for each in peaks if each is not None)


def _parameters_met(model: str, folder: Path) -> float:
    architecture = load_architecture(model, folder)
    return architecture.active_parameters - 2.0 * architecture.vocab_size * architecture.hidden_size


def _alone(row: Row) -> list[Row]:
    """Return prompts alone, whole and as much of each as fills an iteration, and generation alone."""
    own = {key: value for key, value in row.items() if key not in SERVING_KEYS}
    length, prefix, tokens = row["input_tokens"], row["prefix_tokens"], row["max_batched_tokens"]
    whole = np.unique(np.geomspace(1, max(1, 2 * tokens // length), BATCHES).astype(np.int64)).tolist()
    running = np.unique(np.geomspace(1, row["max_sequences"], BATCHES).astype(np.int64)).tolist()
    filling = []
    for room in {tokens, max(1, tokens // row["dp"])}:
        batch = -(-room // length)
        part = room // batch
        parts = {"input_tokens": part, "prefix_tokens": prefix + (length - part) // 2, "batch": batch}
        filling.append(own | parts | {"mode": "prefill"})
    return [
        *filling,
        *(own | {"mode": "prefill", "batch": batch} for batch in whole),
        *(own | {"mode": "decode", "batch": batch} for batch in running),
    ]


def _predicted(rows: list[Row], parts: dict[str, Accelerator], folder: Path) -> pd.DataFrame:
    frame = pd.DataFrame(rows).assign(case_id=[str(row) for row in range(len(rows))])
    return predict(frame.drop(columns=["_power_cap_w", "owner"], errors="ignore"), folder, parts=parts)


def _as_given(pair: BetterCase) -> Row:
    """The case before the change; a cap is put on it that the better one has not."""
    cap = pair.better.get("_power_cap_w")
    return pair.row if cap is None else pair.row | {"power_cap_w": cap}


def _on_one_line(pair: BetterCase) -> bool:
    """Return whether decode attention is linear between the same contexts in both cases."""
    tokens = ("input_tokens", "output_tokens", "prefix_tokens")
    reaches = {sum(row[name] for name in tokens) - 1 for row in (pair.row, pair.better)}
    return pair.row["mode"] != "offline" or len({each.bit_length() for each in reaches}) == 1


def _same_work(pair: BetterCase) -> bool:
    """Return whether both cases have the same load, so that rates are comparable."""
    return pair.law != "less load" and pair.row["mode"] != "decode"


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


Law = Callable[[list[BetterCase], dict[str, Accelerator], Path], tuple[pd.DataFrame, int]]


def laws(pairs: list[BetterCase]) -> list[tuple[Law, list[BetterCase]]]:
    """Return every law with the cases that it is about."""
    return [(broken, pairs), (broken, apart(pairs)), (over_the_peak, pairs), (beyond_the_part, pairs)]


def main() -> int:
    count, seed = (
        int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((1, 1000), (2, 1))
    )
    compared = found = 0
    with tempfile.TemporaryDirectory() as name:
        while compared < count:
            pairs, parts = random_pairs(ROWS_OF_A_GROUP, seed, Path(name))
            for law, cases in laws(pairs):
                table, checked = law(cases, parts, Path(name))
                compared, found = compared + checked, found + len(table)
                for row in table.to_dict("records"):
                    print({key: value for key, value in row.items() if not _is_empty(value)})
            operator_source.cache_clear()
            seed += 1
            print(f"{compared} compared, {found} broken", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
