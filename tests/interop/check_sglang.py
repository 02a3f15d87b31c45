"""Holds SGLang's own parser and resolution of options to commands; runs in the interop environment, on a CPU.

Usage: python check_sglang.py < cases.json > verdicts.json, with cases as in check_vllm.py. Stood in for
(stand_ins.py): compiled kernels, vision libraries, and the card of the case's capability, without which
SGLang knows fewer data types and kernels. A deprecated option counts as refused.
"""

from __future__ import annotations

import contextlib
import io

import stand_ins  # noqa: F401  (before SGLang)
from sglang.srt import utils
from sglang.srt.utils import common

for module in (utils, common):
    # What modules ask as they are imported; each case has a card of its own.
    module.is_cuda = lambda: True
    module.get_device_capability = lambda device_id=0: (9, 0)
    module.get_nvgpu_memory_capacity = lambda: 80 * 1024

from sglang.srt.runtime_context import override_platform
from sglang.srt.server_args import prepare_server_args
from verdicts import checkpoint, draft, write_verdicts


def _card(capability):
    """Return SGLang's view of a machine with cards of a compute capability."""
    major, minor = capability
    return override_platform(
        is_cuda=True,
        is_sm90=major == 9,
        is_sm100=major == 10,
        is_sm100_or_sm110=major in {10, 11},
        is_sm110=major == 11,
        is_sm120=major == 12,
        is_blackwell=major >= 10,
        is_hopper_with_cuda_12_3=major == 9,
        device_sm=10 * major + minor,
        device_capability=(major, minor),
    )


def verdict(case):
    """Return how SGLang parses a command, or why it refuses it."""
    words = list(case["words"])
    place = words.index("--model-path") + 1
    said = io.StringIO()
    with contextlib.ExitStack() as folders:
        folders.enter_context(contextlib.redirect_stderr(said))
        folders.enter_context(_card(case["capability"]))
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
