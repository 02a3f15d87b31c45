"""Launch commands of vLLM; its rules stand in tools.yaml."""

from __future__ import annotations

import json

from fleetplan.fleet.catalog.hardware_names import devices_of
from fleetplan.fleet.figures import counted
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

PUSHED_CACHES = (
    "prefill in several pipeline stages writes caches into decode servers (NixlPushConnector): the router "
    "between them must give each the address of the other (vLLM, docs/design/nixl_kv_push_connector.md)"
)

LEAST_BATCHED_TOKENS = 2048
"""Tokens that a decode server computes in a step at most, unless more sequences run: vLLM's least default."""


def vllm(deployment: LaunchedGroup) -> Launch:
    """The command of vLLM; attention data parallelism and experts share the ranks of a stage.

    Raises
    ------
    RefusedError
        vLLM has no options for what was planned.
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
    own_address = None
    if deployment.placement.phase != "aggregated":
        words += ["--kv-transfer-config", json.dumps(_transfer(deployment))]
        if deployment.staged_prompts:
            notes.append(PUSHED_CACHES)
        own_address = tools().vllm.own_address
    if deployment.hosts == 1:
        return Launch("vllm", tuple(words), notes=tuple(notes), own_address=own_address)
    common = tuple(words)

    def on_host(host: Host) -> tuple[str, ...]:
        place = ["--nnodes", str(deployment.hosts), "--node-rank", host.rank, "--master-addr", host.leader]
        place += ["--master-port", str(COORDINATION_PORT)]
        return (*common, *place, *(() if host.rank == "0" else ("--headless",)))

    return Launch("vllm", common, {}, tuple(notes), deployment.hosts, on_host, own_address)


def _transfer(deployment: LaunchedGroup) -> dict[str, str]:
    """How caches are handed over.

    Decode servers read them, unless they come from several pipeline stages: those write them into a server
    of one stage (vllm 0.33.0, kv_connector/v1/nixl: pull_worker.py reads the first stage alone,
    base_worker.py refuses consumers with stages; connector.py calls servers without a role deprecated).
    """
    prefills = deployment.placement.phase == "prefill"
    if not prefills and deployment.layout.pp > 1:
        raise RefusedError(
            f"vLLM {tools().vllm.version} hands caches over to servers of one pipeline stage alone, not "
            f"{deployment.layout.label}: `search: {{pipeline_stages: [1]}}` of the service plans without"
        )
    connector = "NixlPushConnector" if deployment.staged_prompts else "NixlConnector"
    return {"kv_connector": connector, "kv_role": "kv_producer" if prefills else "kv_consumer"}


def pushes_caches(deployment: LaunchedGroup) -> bool:
    """Return whether prefill servers of vLLM write caches into decode servers, which few routers know."""
    phased = deployment.placement.phase != "aggregated"
    return phased and deployment.staged_prompts and deployment.service.framework == "vllm"


def _layout(deployment: LaunchedGroup) -> list[str]:
    layout, facts = deployment.layout, deployment.facts
    prefills = deployment.placement.phase == "prefill"
    # Each rank that shares the prompts of a dense model holds its feed-forward part: no groups of experts.
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
            f"vLLM {tools().vllm.version} shares prompts out over ranks for latent attention (MLA) alone, "
            f"not {layout.label}: `search: {{context_ranks: [1]}}` of the service plans without"
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
    """Refuse decode context parallelism that vLLM refuses (config/model.py, config/vllm.py)."""
    facts = deployment.facts
    if facts.latent_attention:
        if deployment.placement.phase != "aggregated" and cp != tp:
            raise RefusedError(
                f"behind a transfer of caches vLLM splits contexts over all {counted(tp, 'rank')} "
                f"or none, not {cp}"
            )
        return
    if deployment.placement.phase != "aggregated":
        raise RefusedError("behind a transfer of caches vLLM splits contexts of latent attention (MLA) alone")
    if facts.heads is None or facts.kv_heads is None:
        raise RefusedError("vLLM splits the contexts of models whose layers have the same heads alone")
    largest, shared = tp // facts.kv_heads, facts.heads // facts.kv_heads
    if cp > largest or shared % cp:
        raise RefusedError(
            f"vLLM splits contexts {counted(largest, 'way')} at most on {counted(tp, 'rank')} with "
            f"{facts.kv_heads} key-value "
            f"heads, and in a divisor of the {shared} query heads of each, not {cp}"
        )


def _scheduling(deployment: LaunchedGroup, length: int) -> list[str]:
    """Sequences and tokens of a step. What vLLM counts as tokens of a step holds generated ones too."""
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
