"""Launch commands of TensorRT-LLM; settings without an option go into the file that the command names."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.planner.export.launch.checkpoints import launched, online_quantisation
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.lengths import longest_sequence
from fleetplan.planner.export.launch.replica import Launch, draft_of, length_and_notes
from fleetplan.planner.export.launch.tools import tools

OPTIONS: Final = {
    "tensor_parallel_size": "--tp_size",
    "pipeline_parallel_size": "--pp_size",
    "context_parallel_size": "--cp_size",
    "moe_expert_parallel_size": "--ep_size",
    "max_batch_size": "--max_batch_size",
    "max_num_tokens": "--max_num_tokens",
    "max_seq_len": "--max_seq_len",
}
"""Options of trtllm-serve by the engine argument they set (tensorrt_llm/commands/serve.py)."""


HELIX_BLOCK_TOKENS: Final = 32
"""Block size of a cache shared by ranks, which must agree in two settings. Source: TensorRT-LLM,
docs/source/features/helix.md (NVIDIA/TensorRT-LLM@04c8822). [tokens]
"""


def tensorrt_llm(deployment: LaunchedGroup) -> Launch:
    """Return the command of TensorRT-LLM; on several hosts, one Slurm command starts all ranks.

    Raises
    ------
    RefusedError
        TensorRT-LLM has no arguments for the planned configuration.
    """
    engine = engine_arguments(deployment)
    words = ["trtllm-serve", "serve", launched(deployment)]
    _, notes = length_and_notes(deployment, "trtllm")
    for argument, option in OPTIONS.items():
        if argument in engine:
            words += [option, str(engine.pop(argument))]
    if engine.pop("enable_chunked_prefill", False):
        words += ["--enable_chunked_prefill"]
    by_hand = []
    if deployment.placement.phase != "aggregated":
        by_hand.append("prefill and decode servers meet behind `trtllm-serve disaggregated`")
    words += ["--config", f"{deployment.name}.yaml"]
    if deployment.hosts > 1:
        ranks, each = str(deployment.layout.accelerators), str(deployment.accelerators_on_a_host)
        started = ["srun", "--mpi=pmix", "--nodes", str(deployment.hosts), "--ntasks", ranks]
        words = [*started, "--ntasks-per-node", each, "trtllm-llmapi-launch", *words, "--gpus_per_node", each]
        by_hand.append(f"starts all ranks on {counted(deployment.hosts, 'host')}, in an allocation of Slurm")
    return Launch("trtllm", tuple(words), engine, tuple(notes), deployment.hosts, by_hand=tuple(by_hand))


def engine_arguments(deployment: LaunchedGroup) -> dict[str, object]:
    """Return the arguments of TensorRT-LLM's engine, by the names of its Python interface.

    Raises
    ------
    RefusedError
        The engine would start another configuration than planned.
    """
    online_quantisation(deployment, "trtllm")
    layout, service, phase = deployment.layout, deployment.service, deployment.placement.phase
    # Its tensor parallelism counts the ranks of a stage that attention data parallelism divides.
    engine: dict[str, object] = {"tensor_parallel_size": layout.tp * layout.dp}
    if layout.pp > 1:
        engine["pipeline_parallel_size"] = layout.pp
    cache: dict[str, object] = {"enable_block_reuse": service.prefix_caching}
    if layout.cp > 1:
        # Without a type, ranks that share a context would use Ulysses, which shares prompts.
        engine["context_parallel_size"] = layout.cp
        engine["cp_config"] = {"cp_type": "HELIX", "tokens_per_block": HELIX_BLOCK_TOKENS}
        cache["tokens_per_block"] = HELIX_BLOCK_TOKENS
    if layout.ep > 1:
        engine["moe_expert_parallel_size"] = layout.ep
    if layout.dp > 1:
        engine["enable_attention_dp"] = True
    if deployment.batch is not None:
        engine["max_batch_size"] = deployment.batch
    length, _ = longest_sequence(deployment)
    engine["max_seq_len"] = length
    if phase == "decode" and deployment.batch is not None:
        # A generation server receives the caches of prompts; memory for more tokens would reduce them.
        engine["max_num_tokens"] = deployment.batch * (1 + (service.draft_tokens or 0))
    elif service.chunk_tokens is not None:
        engine["enable_chunked_prefill"] = True
        engine["max_num_tokens"] = service.chunk_tokens + (0 if phase == "prefill" else deployment.batch or 0)
    else:
        engine["max_num_tokens"] = max(length, deployment.batch or 0)
    kv = tools().trtllm.kv.get(deployment.variant.kv)
    if kv is not None:
        cache["dtype"] = kv
    engine["kv_cache_config"] = cache
    draft = draft_of(deployment)
    if draft is not None:
        method, model, tokens = draft
        proposed: dict[str, object] = {
            "decoding_type": tools().trtllm.draft_methods[method],
            "max_draft_len": tokens,
        }
        if model is not None:
            proposed["speculative_model"] = model
        engine["speculative_config"] = proposed
    if phase != "aggregated":
        engine["cache_transceiver_config"] = {"backend": "DEFAULT"}
    if phase == "prefill":
        # The context server of disaggregated serving does not support the overlap scheduler.
        engine["disable_overlap_scheduler"] = True
    return engine
