"""Holds SGLang's own parser and resolution of options to commands; runs in the interop environment, on a CPU.

Usage: python check_sglang.py < cases.json > verdicts.json, with cases as in check_vllm.py. Stood in for
(stand_ins.py): compiled kernels and vision libraries. A deprecated option counts as refused.
"""

from __future__ import annotations

import contextlib
import io

import stand_ins  # noqa: F401  (before SGLang)
from sglang.srt.server_args import prepare_server_args
from verdicts import checkpoint, draft, write_verdicts


def verdict(case):
    """What SGLang makes of a command, or why it refuses it."""
    words = list(case["words"])
    place = words.index("--model-path") + 1
    said = io.StringIO()
    with contextlib.ExitStack() as folders:
        folders.enter_context(contextlib.redirect_stderr(said))
        named, words[place] = words[place], folders.enter_context(checkpoint(case["config"]))
        if "--speculative-draft-model-path" in words:
            drafted = words.index("--speculative-draft-model-path") + 1
            words[drafted] = folders.enter_context(draft(case["config"]))
        arguments = prepare_server_args([*words, "--device", "cuda", "--skip-tokenizer-init"])
        arguments.resolve_once()
    options = [word for word in words if word.startswith("--")]
    lines = [line for line in said.getvalue().splitlines() if "deprecated" in line.lower()]
    deprecated = [line for line in lines if any(option in line for option in options)]
    if deprecated:
        raise ValueError(deprecated[0])
    known = arguments.resolved_dict()
    return {
        "checkpoint": named,
        "tp": known["tp_size"],
        "pp": known["pp_size"],
        "dp": known["attn_dp_size"],
        "accelerators": known["tp_size"] * known["pp_size"] * known["dp_size"],
        "experts": known["ep_size"] > 1,
        "ep": known["ep_size"],
        "prompt_ranks": known["attn_cp_size"] if known["enable_prefill_cp"] else 1,
        "cache_ranks": known["dcp_size"],
        "hosts": known["nnodes"],
        "weights": known["quantization"],
        "kv": known["kv_cache_dtype"],
        "longest": known["context_length"],
        "sequences": known["max_running_requests"],
        "tokens": known["chunked_prefill_size"],
        "prefix_caching": not known["disable_radix_cache"],
        "phase": known["disaggregation_mode"],
        "drafted": (known["speculative_num_draft_tokens"] or 1) - 1,
    }


write_verdicts(verdict)
