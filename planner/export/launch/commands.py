"""Launch commands of vLLM, SGLang and TensorRT-LLM. Their options are documented where `SOURCES` says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml

from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.techniques.expert_routing import EXPERTS_PER_REDUNDANT, USUAL_HOST_ACCELERATORS
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched

SOURCES: Final = {
    "vllm": "vLLM 0.20, `vllm serve --help` and docs.vllm.ai/en/latest/configuration/engine_args.html",
    "sglang": "SGLang, docs.sglang.io/advanced_features/server_arguments.html (sgl-project/sglang@004813e)",
    "trtllm": "TensorRT-LLM, tensorrt_llm/commands/serve.py (NVIDIA/TensorRT-LLM@00209af)",
}
"""Where the options of each framework were read, in November 2026."""

READY_MADE: Final = "weights in {weights}: give the path of a checkpoint quantised so"

MEAN_LENGTHS: Final = "lengths are means: no limit on a request's length is set"

LOAD_BALANCERS: Final = {
    "vllm": "--enable-eplb with num_redundant_experts in --eplb-config",
    "sglang": "--enable-eplb with --ep-num-redundant-experts, and --moe-a2a-backend deepep",
    "trtllm": "moe_config.load_balancer with num_slots in the file",
}
"""What starts the load balancer of experts. Sources: vLLM, vllm/config/parallel.py (EPLBConfig); SGLang,
Server Arguments; TensorRT-LLM, MoeConfig and MoeLoadBalancerConfig. Read in November 2026."""

BALANCED_EXPERTS: Final = (
    "experts over several hosts: unless techniques.experts.balance is none, the rates of the plan are those "
    "of a load balancer that copies one expert in {each}, or as many as redundant_experts says; add {options}"
)


@dataclass(frozen=True, slots=True)
class Launch:
    """How one replica is started.

    Attributes
    ----------
    framework : str
        vllm, sglang or trtllm.
    words : tuple[str, ...]
        The command with its options.
    config : Mapping[str, object]
        What stands in the file that the command names; empty without one.
    notes : tuple[str, ...]
        What the options do not say.
    """

    framework: str
    words: tuple[str, ...]
    config: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.words)

    @property
    def config_text(self) -> str:
        """The file as YAML; empty without one."""
        return yaml.safe_dump(dict(self.config), sort_keys=True) if self.config else ""


def launch(deployment: LaunchedGroup, framework: str) -> Launch | NotLaunched:
    """Return how a replica is started, or why the framework cannot run it."""
    writer: Callable[[LaunchedGroup], Launch | str] = _WRITERS[framework]
    found = writer(deployment)
    return NotLaunched(deployment.placement, found) if isinstance(found, str) else found


def _expert_notes(layout: Parallelism, framework: str) -> list[str]:
    """What a layout needs whose experts the performance model balances by default."""
    if layout.ep == 1 or layout.ep * layout.ffn_tp <= USUAL_HOST_ACCELERATORS:
        return []
    return [BALANCED_EXPERTS.format(each=EXPERTS_PER_REDUNDANT, options=LOAD_BALANCERS[framework])]


def vllm(deployment: LaunchedGroup) -> Launch | str:
    """The command of vLLM; attention data parallelism and experts share the ranks of a stage."""
    layout, service, batch = deployment.layout, deployment.service, deployment.running_sequences
    # Each rank that shares the prompts of a dense model holds its feed-forward part: no groups of experts.
    copies = _prefills(deployment) and layout.cp > 1 and layout.ep == layout.cp
    if layout.ep > 1 and layout.ffn_tp > 1 and not copies:
        return f"vLLM splits experts over all ranks of a stage or none, not {layout.label}"
    # Context parallelism of decode shares the ranks of tensor parallelism; that of prefill has its own.
    decode_cp = 1 if _prefills(deployment) else layout.cp
    words = ["vllm", "serve", deployment.variant.model, "--tensor-parallel-size", str(layout.tp * decode_cp)]
    notes = [MEAN_LENGTHS]
    if layout.pp > 1:
        words += ["--pipeline-parallel-size", str(layout.pp)]
    if layout.dp > 1:
        words += ["--data-parallel-size", str(layout.dp)]
        notes.append("a dense model has no attention data parallelism in vLLM: its ranks are whole replicas")
    if layout.ep > 1 and not copies:
        words += ["--enable-expert-parallel"]
        notes += _expert_notes(layout, "vllm")
    if decode_cp > 1:
        words += ["--decode-context-parallel-size", str(layout.cp)]
    elif layout.cp > 1:
        words += ["--prefill-context-parallel-size", str(layout.cp)]
    words += _vllm_types(deployment, notes)
    if batch is not None:
        words += ["--max-num-seqs", str(batch)]
    if service.chunk_tokens is not None:
        words += ["--enable-chunked-prefill", "--max-num-batched-tokens", str(service.chunk_tokens)]
    words += ["--enable-prefix-caching" if service.prefix_caching else "--no-enable-prefix-caching"]
    if service.draft_tokens is not None:
        words += ["--speculative-config", json.dumps({"num_speculative_tokens": service.draft_tokens})]
        notes.append("speculative decoding: add the draft's method and model to --speculative-config")
    if deployment.placement.phase != "aggregated":
        transfer = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        words += ["--kv-transfer-config", json.dumps(transfer)]
    return Launch("vllm", tuple(words), notes=tuple(notes))


def _vllm_types(deployment: LaunchedGroup, notes: list[str]) -> list[str]:
    words: list[str] = []
    weights = deployment.variant.weights
    if weights == "bf16":
        words += ["--dtype", "bfloat16"]
    elif weights == "fp8":
        words += ["--quantization", "fp8"]
    else:
        notes.append(READY_MADE.format(weights=weights))
    if deployment.variant.kv == "fp8":
        words += ["--kv-cache-dtype", "fp8"]
    return words


def sglang(deployment: LaunchedGroup) -> Launch | str:
    """The command of SGLang, whose tensor parallelism counts all ranks of a stage."""
    layout, service, batch = deployment.layout, deployment.service, deployment.running_sequences
    words = ["python3", "-m", "sglang.launch_server", "--model-path", deployment.variant.model]
    words += ["--tp-size", str(layout.accelerators_per_stage)]
    notes = [MEAN_LENGTHS]
    if layout.pp > 1:
        words += ["--pp-size", str(layout.pp)]
    if layout.dp > 1:
        words += ["--dp-size", str(layout.dp), "--enable-dp-attention"]
    if layout.ep > 1:
        words += ["--ep-size", str(layout.ep)]
        notes += _expert_notes(layout, "sglang")
    if layout.cp > 1:
        words += ["--attn-cp-size", str(layout.cp)]
    weights = deployment.variant.weights
    if weights == "bf16":
        words += ["--dtype", "bfloat16"]
    elif weights == "fp8":
        words += ["--quantization", "fp8"]
    else:
        notes.append(READY_MADE.format(weights=weights))
    if deployment.variant.kv == "fp8":
        words += ["--kv-cache-dtype", "fp8_e4m3"]
    if batch is not None:
        # SGLang counts the requests of the whole server, not of a rank.
        words += ["--max-running-requests", str(batch * layout.dp)]
    words += ["--chunked-prefill-size", str(-1 if service.chunk_tokens is None else service.chunk_tokens)]
    if not service.prefix_caching:
        words += ["--disable-radix-cache"]
    if service.draft_tokens is not None:
        words += ["--speculative-num-draft-tokens", str(service.draft_tokens)]
        notes.append("speculative decoding: add --speculative-algorithm and the draft's model")
    if deployment.placement.phase != "aggregated":
        words += ["--disaggregation-mode", deployment.placement.phase]
    return Launch("sglang", tuple(words), notes=tuple(notes))


def tensorrt_llm(deployment: LaunchedGroup) -> Launch | str:
    """The command of TensorRT-LLM; what has no option stands in the file that it names."""
    engine = engine_arguments(deployment)
    words = ["trtllm-serve", "serve", deployment.variant.model]
    notes = [MEAN_LENGTHS, *_expert_notes(deployment.layout, "trtllm")]
    for argument, option in _TENSORRT_LLM_OPTIONS.items():
        if argument in engine:
            words += [option, str(engine.pop(argument))]
    if engine.pop("enable_chunked_prefill", False):
        words += ["--enable_chunked_prefill"]
    if deployment.placement.phase != "aggregated":
        notes.append("prefill and decode servers meet behind `trtllm-serve disaggregated`")
    if deployment.service.draft_tokens is not None:
        notes.append("speculative decoding: add speculative_config to the file")
    if deployment.variant.weights != "bf16":
        notes.append(READY_MADE.format(weights=deployment.variant.weights))
    words += ["--config", f"{deployment.name}.yaml"]
    return Launch("trtllm", tuple(words), engine, tuple(notes))


_TENSORRT_LLM_OPTIONS: Final = {
    "tensor_parallel_size": "--tp_size",
    "pipeline_parallel_size": "--pp_size",
    "context_parallel_size": "--cp_size",
    "moe_expert_parallel_size": "--ep_size",
    "max_batch_size": "--max_batch_size",
    "max_num_tokens": "--max_num_tokens",
}
"""Options of trtllm-serve by the engine's argument that they set (tensorrt_llm/commands/serve.py)."""


def engine_arguments(deployment: LaunchedGroup) -> dict[str, object]:
    """Return the arguments of TensorRT-LLM's engine, by the names of its Python interface."""
    layout, service = deployment.layout, deployment.service
    # Its tensor parallelism counts the ranks of a stage that attention data parallelism shares out.
    engine: dict[str, object] = {"tensor_parallel_size": layout.tp * layout.dp}
    if layout.pp > 1:
        engine["pipeline_parallel_size"] = layout.pp
    if layout.cp > 1:
        engine["context_parallel_size"] = layout.cp
    if layout.ep > 1:
        engine["moe_expert_parallel_size"] = layout.ep
    if layout.dp > 1:
        engine["enable_attention_dp"] = True
    if deployment.batch is not None:
        engine["max_batch_size"] = deployment.batch
    if service.chunk_tokens is not None:
        engine["enable_chunked_prefill"] = True
        engine["max_num_tokens"] = service.chunk_tokens
    cache: dict[str, object] = {"enable_block_reuse": service.prefix_caching}
    if deployment.variant.kv == "fp8":
        cache["dtype"] = "fp8"
    engine["kv_cache_config"] = cache
    if deployment.placement.phase != "aggregated":
        engine["cache_transceiver_config"] = {"backend": "DEFAULT"}
    return engine


def _prefills(deployment: LaunchedGroup) -> bool:
    return deployment.placement.phase == "prefill"


_WRITERS: Final[Mapping[str, Callable[[LaunchedGroup], Launch | str]]] = {
    "vllm": vllm,
    "sglang": sglang,
    "trtllm": tensorrt_llm,
}

FRAMEWORKS: Final = tuple(_WRITERS)
