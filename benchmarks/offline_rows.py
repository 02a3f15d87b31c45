"""Published rows of saturation and of other benchmarks than InferenceX, in the columns of `plan predict`.

Facts of how they were run, beside those of the table itself:

* TensorRT-LLM's perf-overview (0.13, 0.14, 0.19): all requests are queued at once, of fixed lengths, in the
  process of the engine; the number of requests that 0.19 does not print for 1,024 tokens in and 2,048 out is
  that of its neighbour, 1,500. FP8 checkpoints keep an FP8 cache. "Mistral 7B" attends to all tokens: its
  window is a setting of the engine that the commands leave out, so that it is priced as version 0.3 without
  one.
* GPUStack's performance lab: the command that served a row stands in its notes. Prompts of about 200 to 350
  tokens are of ShareGPT, whose lengths spread like an exponential distribution (squared coefficient of
  variation 1); others have one length.
* vLLM's blogs: closed loops. Those of Arc B60 have a TTFT of 7.6 to 8.6 s at 15 clients as at 100, whose
  prompts have as many tokens together: what all of them take, so that each client sent one request, at once.
  Its page shows one server, of iterations of 8,192 tokens.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

HARDWARE: Final = {
    "H100": "H100-SXM",
    "H200": "H200-SXM",
    "B200": "B200-SXM",
    "L40S": "L40S",
    "GH200-120GB": "GH200",
    "A100-SXM4-80GB": "A100-SXM-80GB",
    "A100-80GB": "A100-SXM-80GB",
    "Intel Arc Pro B60 24GB": "Arc-Pro-B60",
}
"""Names of the table and of the catalogue; others (Ascend, A100 on PCIe) are in neither."""

MODELS: Final = {
    "nvidia/Llama-3.1-405B-Instruct-FP4": "meta-llama/Llama-3.1-405B",
    "mistralai/Mistral-7B": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistralai/Mixtral-8x7B": "mistralai/Mixtral-8x7B-v0.1",
    "mistralai/Mixtral-8x22B": "mistralai/Mixtral-8x22B-v0.1",
    "GLM-4.5-Air": "zai-org/GLM-4.5-Air",
    "DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1-0528",
    "DeepSeek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "Qwen/Qwen3-14B-AWQ": "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B-AWQ": "Qwen/Qwen3-32B",
    "Qwen/Qwen3-235B-A22B-Instruct-2507": "Qwen/Qwen3-235B-A22B",
    "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8": "Qwen/Qwen3-235B-A22B-FP8",
}
"""Names of the table that the catalogue spells otherwise."""

FRAMEWORKS: Final = {
    "TensorRT-LLM": "trtllm",
    "vLLM": "vllm",
    "vLLM (XPU)": "vllm",
    "SGLang": "sglang",
}

WEIGHTS: Final = {"fp16": "bf16", "int4 (awq)": "int4"}

RELEASES: Final = {
    ("trtllm", "0.13.0"): "2024-09",
    ("trtllm", "0.14.0"): "2024-11",
    ("trtllm", "0.19.0"): "2025-05",
    ("trtllm", "1.0.0"): "2025-09",
    ("trtllm", "1.2.0rc1"): "2025-10",
    ("trtllm", "1.2.0rc5"): "2025-12",
    ("vllm", "0.10.2"): "2025-09",
    ("vllm", "0.11.0"): "2025-10",
    ("vllm", "0.13.0"): "2025-12",
    ("sglang", "0.5.3rc0"): "2025-09",
    ("sglang", "0.5.3"): "2025-10",
    ("sglang", "0.5.4.post2"): "2025-10",
    ("sglang", "0.5.5.post1"): "2025-11",
    ("sglang", "0.5.6.post2"): "2025-12",
}
"""Months of versions: their releases on GitHub. Rows of other versions are of their own date."""

SHORTEST_SHAREGPT, LONGEST_SHAREGPT = 200, 350
"""Mean prompts of the rows that sent ShareGPT. [tokens]"""

SHAREGPT_VARIATION: Final = 1.0
"""Squared coefficient of variation of ShareGPT's lengths."""

API_BOUND_TOKENS: Final = 4
"""Outputs up to which GPUStack's rows measure the API and not the engine. [tokens]"""

UNPRINTED_REQUESTS: Final = 1500

ARC_ITERATION_TOKENS: Final = 8192
"""Tokens of an iteration of the servers on Arc B60. Source: the command of their page,
`vllm serve openai/gpt-oss-120b --max-num-batched-tokens=8192`. [tokens]"""

_OPTIONS: Final = {
    "max_batched_tokens": r"(?:max-num-batched-tokens|max_num_tokens|chunked-prefill-size)[ =](\d+)",
    "max_sequences": r"(?:max-num-seqs|max-running-requests|max_batch_size)[ =](\d+)",
}
"""Options of serve commands, by the column that they set."""


def offline_rows(path: Path) -> pd.DataFrame:
    """Read the rows of a table of published serving that have all accelerators in one group of replicas.

    Returns
    -------
    pandas.DataFrame
        Columns of `plan predict`, and `set` (trtllm-0.19, gpustack, ...), `measured` (tokens/s, TPOT in ms or
        makespan in s), `quantity` and `left_out`, why a row says nothing; '' where it counts.
    """
    table = pd.read_csv(path)
    trtllm = table["source"].str.contains("TensorRT-LLM docs")
    gpustack = table["source"].str.startswith("GPUStack")
    blogs = table["source"].str.startswith("vLLM blog")
    rows = table[trtllm | gpustack | blogs].reset_index(drop=True)
    cases = _cases(rows)
    cases["set"] = np.where(
        rows["source"].str.startswith("GPUStack"),
        "gpustack",
        np.where(
            rows["source"].str.contains("TensorRT-LLM docs"),
            "trtllm-" + rows["version"].fillna("").str.rsplit(".", n=1).str[0],
            np.where(rows["hardware"].str.contains("B60"), "arc-b60", "vllm-fp8-kv"),
        ),
    )
    closed = cases["mode"].isin(["closed_loop", "burst"])
    tokens_per_s = rows["output_tok_s_total"]
    makespan_s = cases["n_requests"] / rows["requests_per_s"]
    offline = np.where(cases["set"] == "gpustack", makespan_s, tokens_per_s)
    decode = cases["mode"] == "decode"
    cases["measured"] = np.where(closed | decode, rows["tpot_ms"], offline)
    cases["quantity"] = np.where(
        closed | decode, "tpot_ms", np.where(cases["set"] == "gpustack", "makespan_s", "tokens_per_s")
    )
    cases["left_out"] = _left_out(rows, cases)
    return cases


def _cases(rows: pd.DataFrame) -> pd.DataFrame:
    mode = rows["tier"].map(lambda tier: "closed_loop" if tier in ("closed loop", "latency") else "offline")
    mode = mode.where(rows["scenario"] != "static batch 1", "decode")
    mode = mode.where(~rows["scenario"].str.startswith("closed loop"), "closed_loop")
    mode = mode.where(~rows["scenario"].str.startswith("open loop"), "open_loop")
    mode = mode.where(~rows["hardware"].str.contains("B60"), "burst")
    framework = rows["framework"].map(FRAMEWORKS).fillna("")
    hardware = rows["hardware"].map(HARDWARE).fillna("")
    weights = rows["weights_precision"].replace(WEIGHTS)
    sharegpt = rows["input_tokens"].between(SHORTEST_SHAREGPT, LONGEST_SHAREGPT) & (mode == "offline")
    ep = rows["ep"].fillna(1)
    # Where ranks of attention share the accelerators of the experts, the table has those of the experts.
    dp = rows["dp"].fillna(1)
    shared = rows["tp"] * dp > rows["n_accelerators"]
    tp = rows["tp"].where(~shared, rows["n_accelerators"] / dp).clip(lower=1)
    in_process = rows["source"].str.contains("TensorRT-LLM docs")
    own_kv = (
        rows["kv_precision"].fillna("").str.split(" ").str[0].replace({"fp16": "bf16", "fp8_e4m3": "fp8"})
    )
    cases = pd.DataFrame(
        {
            "case_id": rows["row_id"],
            "model": rows["model"].replace(MODELS),
            "hardware": hardware,
            "backend": framework,
            "weights": weights,
            "kv": own_kv,
            "mode": mode,
            "tp": tp.astype(int),
            "pp": rows["pp"].fillna(1).astype(int),
            "dp": dp.astype(int),
            "ep": ep.astype(int),
            "input_tokens": rows["input_tokens"].round(),
            "output_tokens": rows["output_tokens"].round(),
            "concurrency": pd.to_numeric(rows["concurrency"], errors="coerce"),
            "batch": np.where(mode == "decode", 1.0, np.nan),
            "n_requests": rows["n_requests"].where(
                mode != "offline", rows["n_requests"].fillna(UNPRINTED_REQUESTS)
            ),
            "length_variation": np.where(sharegpt, SHAREGPT_VARIATION, np.nan),
            # trtllm-bench has no server in front of the engine.
            "front_end_ms": np.where(in_process, 0.0, np.nan),
            "front_end_token_us": np.where(in_process, 0.0, np.nan),
            # Its `vllm bench serve --backend openai-chat`.
            "chat_requests": np.where(rows["source"].str.startswith("GPUStack"), 1.0, np.nan),
            "software_date": [
                RELEASES.get((name, version), date[:7])
                for name, version, date in zip(framework, rows["version"], rows["date"], strict=True)
            ],
        }
    )
    return cases.assign(**_options(rows, cases))


def _options(rows: pd.DataFrame, cases: pd.DataFrame) -> dict[str, pd.Series]:
    command = rows["notes"].fillna("").str.partition("serve:")[2]
    found = {
        name: pd.to_numeric(command.str.extract(pattern, flags=re.IGNORECASE)[0], errors="coerce")
        for name, pattern in _OPTIONS.items()
    }
    found["max_batched_tokens"] = found["max_batched_tokens"].mask(
        rows["hardware"].str.contains("B60"), ARC_ITERATION_TOKENS
    )
    ahead = command.str.contains("--async-scheduling")
    found["iterations_ahead"] = pd.Series(np.where(ahead, 1.0, np.nan), index=rows.index)
    fp8 = command.str.contains("kv-cache-dtype[ =]fp8", regex=True)
    found["kv"] = cases["kv"].mask(fp8, "fp8")
    return found


def _left_out(rows: pd.DataFrame, cases: pd.DataFrame) -> pd.Series:
    rules = {
        "no such part in the catalogue": cases["hardware"] == "",
        "framework that is not modelled": cases["backend"] == "",
        "superchips whose links the page does not state": (cases["hardware"] == "GH200") & (cases["tp"] > 1),
        "drafts tokens": rows["spec_decode"].fillna("no") != "no",
        "open loop": cases["mode"] == "open_loop",
        "measures the API": (cases["set"] == "gpustack") & (rows["output_tokens"] <= API_BOUND_TOKENS),
        "several replicas behind a router": rows["n_accelerators"] > cases["tp"] * cases["dp"],
        "the same figures under two accelerators": _copied(rows),
        "serves another model than its page is of": _other_model(rows),
    }
    found = pd.Series("", index=rows.index)
    for reason, applies in rules.items():
        found = found.where((found != "") | ~applies.fillna(value=False), reason)
    return found


def _page(rows: pd.DataFrame) -> pd.Series[str]:
    """Page of GPUStack's performance lab, such as qwen3-14b/h100.md; empty elsewhere."""
    return rows["where"].str.extract(r"performance-lab/(\S+)", expand=False).fillna("")


def _copied(rows: pd.DataFrame) -> pd.Series[bool]:
    """Rows whose TTFT and TPOT stand under another accelerator as well: nobody can tell which had them."""
    figures = ["ttft_ms", "tpot_ms"]
    known = rows[rows[figures].notna().all(axis=1)]
    parts = known.groupby(figures)["hardware"].transform("nunique")
    return (parts > 1).reindex(rows.index, fill_value=False)


def _other_model(rows: pd.DataFrame) -> pd.Series[bool]:
    """Rows whose command names another model than the page that they stand on."""
    subjects = _page(rows).str.partition("/")[0]
    return pd.Series(
        [
            # A page may be of a whole family (glm-4.x).
            bool(subject) and not subject.endswith("x") and subject not in model.lower()
            for subject, model in zip(subjects, rows["model"], strict=True)
        ],
        index=rows.index,
    )
