"""Launch commands of SGLang; its rules are in tools.yaml."""

from __future__ import annotations

from fleetplan.fleet.figures import counted
from fleetplan.planner.export.launch.checkpoints import (
    RefusedError,
    chooses_tokens,
    launched,
    precision_options,
)
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.replica import (
    COORDINATION_PORT,
    Host,
    Launch,
    draft_of,
    length_and_notes,
)
from fleetplan.planner.export.launch.tools import tools

FIRST_WITH_ATTENTION_DP = (0, 5, 23)
"""First version with a separate option for attention data parallelism, which deprecates the older pair.
Source: sglang/srt/server_args.py of 0.5.21 and 0.5.23.
"""


def sglang(deployment: LaunchedGroup, version: str = "") -> Launch:
    """Return the command of SGLang, whose tensor parallelism counts all ranks of a stage.

    Parameters
    ----------
    deployment : LaunchedGroup
        Deployment to launch.
    version : str
        Version of the options; empty for that in tools.yaml.

    Raises
    ------
    RefusedError
        SGLang has no options for the planned configuration, or runs as another server on this hardware
        (SGLang-JAX on TPUs, docs.sglang.io/platforms/tpu).
    """
    if deployment.hardware.vendor == "Google":
        raise RefusedError("on TPUs, SGLang is SGLang-JAX, a server with options of its own")
    service, layout = deployment.service, deployment.layout
    length, notes = length_and_notes(deployment, "sglang")
    words = ["python3", "-m", "sglang.launch_server", "--model-path", launched(deployment)]
    words += ["--tp-size", str(layout.accelerators_per_stage)]
    if layout.pp > 1:
        words += ["--pp-size", str(layout.pp)]
    if layout.dp > 1:
        own = _numbers(version or tools().sglang.version) >= FIRST_WITH_ATTENTION_DP
        words += (
            ["--attn-dp-size", str(layout.dp)]
            if own
            else ["--dp-size", str(layout.dp), "--enable-dp-attention"]
        )
    if layout.ep > 1:
        words += ["--ep-size", str(layout.ep)]
    words += [
        *_shared_contexts(deployment),
        *precision_options(deployment, "sglang"),
        "--context-length",
        str(length),
        *_scheduling(deployment),
    ]
    if not service.prefix_caching:
        words += ["--disable-radix-cache"]
    words += _draft(deployment)
    own_port = None
    if deployment.placement.phase != "aggregated":
        words += ["--disaggregation-mode", deployment.placement.phase]
        own_port = tools().sglang.own_port
    if deployment.hosts == 1:
        return Launch("sglang", tuple(words), notes=tuple(notes), own_port=own_port)
    common = tuple(words)

    def on_host(host: Host) -> tuple[str, ...]:
        place = ["--nnodes", str(deployment.hosts), "--node-rank", host.rank]
        return (*common, *place, "--dist-init-addr", f"{host.leader}:{COORDINATION_PORT}")

    return Launch(
        "sglang", common, notes=tuple(notes), hosts=deployment.hosts, on_host=on_host, own_port=own_port
    )


def _shared_contexts(deployment: LaunchedGroup) -> list[str]:
    """Return the options for ranks that share prompts, or caches in decode: attention or tensor ranks.

    Sources: sglang 0.5.23, srt/arg_groups/parallel_hook.py (handle_context_parallelism), model_hook.py,
    model_overrides/deepseek_v2.py.
    """
    layout, sparse = deployment.layout, chooses_tokens(deployment)
    if layout.cp == 1:
        return []
    if deployment.placement.phase != "prefill":
        if sparse and deployment.placement.phase == "decode":
            raise RefusedError("SGLang does not split caches of sparse attention after a cache transfer")
        return ["--dcp-size", str(layout.cp)]
    ranks = layout.accelerators_per_stage
    if deployment.facts.latent_attention and (layout.tp > 1 or layout.ep != ranks):
        raise RefusedError(
            f"SGLang distributes prompts of latent attention (MLA) over all {counted(ranks, 'rank')} of a "
            f"stage, each with separate experts, not {layout.label}: set `search: {{context_ranks: [1]}}` of "
            f"the service to plan without"
        )
    strategy = "interleave" if sparse else "zigzag"
    return ["--attn-cp-size", str(layout.cp), "--enable-prefill-cp", "--cp-strategy", strategy]


def _scheduling(deployment: LaunchedGroup) -> list[str]:
    running, chunk = deployment.running_sequences, deployment.service.chunk_tokens
    # SGLang counts the requests and prompt tokens of the whole server instead of a rank.
    ranks = deployment.layout.dp
    words = [] if running is None else ["--max-running-requests", str(running * ranks)]
    return [*words, "--chunked-prefill-size", str(-1 if chunk is None else chunk * ranks)]


def _draft(deployment: LaunchedGroup) -> list[str]:
    draft = draft_of(deployment)
    if draft is None:
        return []
    method, model, tokens = draft
    words = ["--speculative-algorithm", tools().sglang.draft_methods[method]]
    if model is not None:
        words += ["--speculative-draft-model-path", model]
    # A chain of drafted tokens, plus the model's own token.
    return [
        *words,
        *("--speculative-num-steps", str(tokens)),
        *("--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(tokens + 1)),
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])
