"""Launch commands of vLLM; its rules are in tools.yaml."""

from __future__ import annotations

import json
from typing import Final

from fleetplan.fleet.catalog.hardware_names import devices_of
from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.landscape import FRAMEWORK_LAYOUTS, may_be_of
from fleetplan.planner.export.launch.checkpoints import RefusedError, launched, precision_options
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.replica import (
    COORDINATION_PORT,
    Host,
    Launch,
    draft_of,
    length_and_notes,
)
from fleetplan.planner.export.launch.tools import tools

MOONCAKE: Final = "MooncakeConnector"
"""Transfers caches between servers with any numbers of pipeline stages (vllm 0.33.0,
kv_connector/v1/mooncake/mooncake_connector.py).
"""

MOONCAKE_PORT: Final = "VLLM_MOONCAKE_BOOTSTRAP_PORT"
"""Variable for the port at which a prefill server answers queries for its ranks (vllm/envs.py); default 8998.
"""

MOONCAKE_CACHES: Final = (
    "servers with several pipeline stages transfer caches by Mooncake: the image needs "
    "mooncake-transfer-engine (vLLM's CUDA image has it); routers other than those of Dynamo and llm-d "
    "need an option (vllm-router: --kv-connector mooncake)"
)

PUSHED: Final = "NixlPushConnector"

PUSHED_CACHES: Final = (
    "prefill in several pipeline stages writes caches into decode servers (NixlPushConnector): the router "
    "between them must give each the address of the other (vLLM, docs/design/nixl_kv_push_connector.md)"
)

LEAST_BATCHED_TOKENS = 2048
"""Maximum tokens of a decode step, unless more sequences run: the smallest default of vLLM."""


def vllm(deployment: LaunchedGroup) -> Launch:
    """Return the command of vLLM; attention data parallelism and experts share the ranks of a stage.

    Raises
    ------
    RefusedError
        vLLM has no options for the planned configuration.
    """
    service = deployment.service
    length, notes = length_and_notes(deployment, "vllm")
    words = ["vllm", "serve", launched(deployment), *_layout(deployment)]
    words += precision_options(deployment, "vllm")
    words += ["--max-model-len", str(length), *_scheduling(deployment, length)]
    words += ["--enable-prefix-caching" if service.prefix_caching else "--no-enable-prefix-caching"]
    draft = draft_of(deployment)
    if draft is not None:
        method, model, tokens = draft
        config: dict[str, object] = {
            "method": tools().vllm.draft_methods[method],
            "num_speculative_tokens": tokens,
        }
        words += ["--speculative-config", json.dumps(config if model is None else config | {"model": model})]
    own_address = own_port = None
    if (used := connector(deployment)) is not None:
        words += ["--kv-transfer-config", json.dumps(_transfer(deployment, used))]
        notes += {MOONCAKE: [MOONCAKE_CACHES], PUSHED: [PUSHED_CACHES]}.get(used, [])
        # Mooncake finds the address of its host.
        own_address = None if used == MOONCAKE else tools().vllm.own_address
        own_port = MOONCAKE_PORT if used == MOONCAKE else tools().vllm.own_port
    if deployment.hosts == 1:
        return Launch("vllm", tuple(words), notes=tuple(notes), own_address=own_address, own_port=own_port)
    common = tuple(words)

    def on_host(host: Host) -> tuple[str, ...]:
        place = ["--nnodes", str(deployment.hosts), "--node-rank", host.rank, "--master-addr", host.leader]
        place += ["--master-port", str(COORDINATION_PORT)]
        return (*common, *place, *(() if host.rank == "0" else ("--headless",)))

    return Launch("vllm", common, {}, tuple(notes), deployment.hosts, on_host, own_address, own_port)


def connector(deployment: LaunchedGroup) -> str | None:
    """Return the cache connector of a deployment under vLLM; None if it transfers no caches.

    With NixlConnector, decode servers read caches, but only from the first pipeline stage. Mooncake replaces
    it for servers with several stages. On hardware without Mooncake in vLLM's image, prefill servers write
    caches into single-stage decode servers. Source: vllm 0.33.0, kv_connector/v1/nixl (pull_worker.py,
    base_worker.py).
    """
    if deployment.placement.phase == "aggregated":
        return None
    if not deployment.staged:
        return "NixlConnector"
    has_mooncake = FRAMEWORK_LAYOUTS["vllm"].generation_stage_vendors
    return MOONCAKE if may_be_of(deployment.hardware.vendor, has_mooncake) else PUSHED


def _transfer(deployment: LaunchedGroup, used: str) -> dict[str, str]:
    """Return the settings for cache transfer; connectors deprecate single-phase servers without a role."""
    prefills = deployment.placement.phase == "prefill"
    if deployment.staged and deployment.layout.cp > 1:
        raise RefusedError(
            "vLLM transfers caches between servers with several pipeline stages only if no ranks share "
            f"contexts, not {deployment.layout.label}: set `search: {{context_ranks: [1]}}` of the service "
            "to plan without"
        )
    return {"kv_connector": used, "kv_role": "kv_producer" if prefills else "kv_consumer"}


def _layout(deployment: LaunchedGroup) -> list[str]:
    layout, facts = deployment.layout, deployment.facts
    prefills = deployment.placement.phase == "prefill"
    # Each rank that shares prompts of a dense model holds its feed-forward part: there are no expert groups.
    copies = prefills and layout.cp > 1 and layout.ep == layout.cp
    if layout.ep > 1 and layout.ffn_tp > 1 and not copies:
        raise RefusedError(f"vLLM splits experts over all ranks of a stage or none, not {layout.label}")
    if layout.dp > 1 and not facts.experts:
        raise RefusedError(
            f"attention data parallelism of a dense model ({layout.label}): vLLM's ranks would be whole "
            f"replicas, each with all feed-forward weights"
        )
    if prefills and layout.cp > 1 and not facts.latent_attention:
        raise RefusedError(
            f"vLLM {tools().vllm.version} distributes prompts over ranks only for latent attention (MLA), "
            f"not {layout.label}: set `search: {{context_ranks: [1]}}` of the service to plan without"
        )
    # Context parallelism of decode shares the ranks of tensor parallelism; that of prefill has its own.
    decode_cp = 1 if prefills else layout.cp
    tp = layout.tp * decode_cp * devices_of(deployment.hardware.part or deployment.hardware.name)
    if decode_cp > 1:
        _check_decode_context(deployment, tp, decode_cp)
    words = ["--tensor-parallel-size", str(tp)]
    if layout.pp > 1:
        words += ["--pipeline-parallel-size", str(layout.pp)]
    if layout.dp > 1:
        words += ["--data-parallel-size", str(layout.dp)]
    if layout.ep > 1 and not copies:
        words += ["--enable-expert-parallel"]
    if decode_cp > 1:
        words += ["--decode-context-parallel-size", str(decode_cp)]
    elif layout.cp > 1:
        words += ["--prefill-context-parallel-size", str(layout.cp)]
    return words


def _check_decode_context(deployment: LaunchedGroup, tp: int, cp: int) -> None:
    """Refuse decode context parallelism that vLLM does not support (config/model.py, config/vllm.py)."""
    facts = deployment.facts
    if facts.latent_attention:
        if deployment.placement.phase != "aggregated" and cp != tp:
            raise RefusedError(
                f"after a cache transfer, vLLM splits contexts over all {counted(tp, 'rank')} "
                f"or none, not {cp}"
            )
        return
    if deployment.placement.phase != "aggregated":
        raise RefusedError("after a cache transfer, vLLM splits contexts only of latent attention (MLA)")
    if facts.heads is None or facts.kv_heads is None:
        raise RefusedError("vLLM splits contexts only of models whose layers have the same heads")
    largest, shared = tp // facts.kv_heads, facts.heads // facts.kv_heads
    if cp > largest or shared % cp:
        raise RefusedError(
            f"vLLM splits contexts {counted(largest, 'way')} at most on {counted(tp, 'rank')} with "
            f"{facts.kv_heads} key-value "
            f"heads, and in a divisor of the {shared} query heads of each, not {cp}"
        )


def _scheduling(deployment: LaunchedGroup, length: int) -> list[str]:
    """Return the limits on sequences and tokens per step; vLLM counts generated tokens as well."""
    running, chunk = deployment.running_sequences, deployment.service.chunk_tokens
    words = [] if running is None else ["--max-num-seqs", str(running)]
    beside = 0 if running is None else running
    if deployment.placement.phase == "decode":
        return [*words, "--max-num-batched-tokens", str(max(LEAST_BATCHED_TOKENS, beside))]
    if chunk is None:
        tokens = max(length, beside)
        return [*words, "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(tokens)]
    tokens = chunk + (0 if deployment.placement.phase == "prefill" else beside)
    return [*words, "--enable-chunked-prefill", "--max-num-batched-tokens", str(max(tokens, beside))]
