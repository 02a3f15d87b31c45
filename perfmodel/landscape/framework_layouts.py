"""Layouts that serving frameworks can run, by their documentation, with version and source.

Documentation about some models applies to these models only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Models = Literal["any", "experts", "latent", "dense latent", "none"]
"""Models that something works for: any, those with experts, those with latent attention, those of them whose
queries see all earlier tokens, or none."""


@dataclass(frozen=True, slots=True)
class FrameworkLayouts:
    """Layouts that one framework can run.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    version : str
        The version that was read.
    attention_dp : Models
        Models whose attention ranks may have separate sequences while they share a feed-forward part.
    dp_beside_tp : bool
        Whether attention data parallelism and tensor parallelism combine.
    expert_groups : {"any", "all or none"}
        Numbers of expert groups in a stage.
    prompt_cp : Models
        Models whose prompts several ranks may share.
    latent_prompt_cp_alone : bool
        Whether ranks that share prompts of latent attention are all attention ranks of a stage, and each rank
        of the stage has separate experts.
    prompt_cp_is_wide : bool
        Whether those ranks come on top of tensor parallelism, so that each group of them holds a dense
        feed-forward block; otherwise they are ranks of the tensor parallelism of that block.
    generation_cp : Models
        Models whose cache several ranks may share during generation, behind servers of prompts alone.
    generation_cp_beside_tp : bool
        Whether tensor parallelism may also split the heads of such ranks.
    generation_stages : {"any", "those of prompts"}
        Pipeline stages into which caches are handed over where several generate: any number, or as many as
        computed the prompt.
    generation_stage_vendors : frozenset[str] or None
        Vendors of the parts on which several stages take caches from other servers; None for all.
    cp_beside_stages : bool
        Whether the ranks of one stage of several may share contexts in servers of one phase.
    source : dict[str, str]
        Source of each field.
    """

    framework: str
    version: str
    attention_dp: Models
    dp_beside_tp: bool
    expert_groups: Literal["any", "all or none"]
    prompt_cp: Models
    latent_prompt_cp_alone: bool
    prompt_cp_is_wide: bool
    generation_cp: Models
    generation_cp_beside_tp: bool
    generation_stages: Literal["any", "those of prompts"]
    generation_stage_vendors: frozenset[str] | None
    cp_beside_stages: bool
    source: dict[str, str]


_VLLM_DP: Final = "docs.vllm.ai/serving/data_parallel_deployment (vllm-project/vllm@01e4fce)"
_VLLM_CP: Final = "docs.vllm.ai/serving/context_parallel_deployment (vllm-project/vllm@020505c)"
_VLLM_TRANSFER: Final = (
    "vllm 0.33.0 of PyPI, config/vllm.py: behind NixlConnector contexts are split for latent attention "
    "alone, and over all ranks of tensor parallelism"
)
_VLLM_STAGES: Final = (
    "vllm 0.33.0 of PyPI, distributed/kv_transfer/kv_connector/v1: MooncakeConnector hands caches over "
    "between any numbers of stages (vllm-project/vllm pull request 56033), NixlConnector into one alone "
    "(nixl/base_worker.py)"
)
_SGLANG_STAGES: Final = "sglang 0.5.23 of PyPI, srt/disaggregation/common/conn.py"
_SGLANG_DP: Final = "docs.sglang.io/docs/advanced_features/dp_dpa_smg_guide"
_SGLANG_CP: Final = "sglang 0.5.23 of PyPI, srt/arg_groups/model_overrides/deepseek_v2.py"
_DYNAMO: Final = "docs.nvidia.com/dynamo, DP rank routing: attention DP takes the size of tensor parallelism"
_TRTLLM: Final = "nvidia.github.io/TensorRT-LLM/features/parallel-strategy (NVIDIA/TensorRT-LLM@65b31db)"

FRAMEWORK_LAYOUTS: Final = {
    "vllm": FrameworkLayouts(
        framework="vllm",
        version="0.33",
        attention_dp="experts",
        dp_beside_tp=True,
        expert_groups="all or none",
        prompt_cp="latent",
        latent_prompt_cp_alone=False,
        prompt_cp_is_wide=True,
        generation_cp="latent",
        generation_cp_beside_tp=False,
        generation_stages="any",
        generation_stage_vendors=frozenset({"NVIDIA"}),
        cp_beside_stages=False,
        source={
            "attention_dp": _VLLM_DP,
            "expert_groups": _VLLM_DP,
            "prompt_cp": "vllm 0.33.0 of PyPI: supports_pcp of v1/attention/backend.py and "
            "check_attention_cp_compatibility of v1/worker/cp_utils.py",
            "prompt_cp_is_wide": _VLLM_CP,
            "generation_cp": _VLLM_TRANSFER,
            "generation_cp_beside_tp": _VLLM_TRANSFER,
            "generation_stage_vendors": f"{_VLLM_STAGES}; Mooncake is in vLLM's image for CUDA, not in that "
            "for ROCm (docker/Dockerfile.rocm)",
            "cp_beside_stages": f"{_VLLM_STAGES}; ranks that share contexts are open there "
            "(vllm-project/vllm issue 36948)",
        },
    ),
    "sglang": FrameworkLayouts(
        framework="sglang",
        version="0.5.23",
        attention_dp="any",
        dp_beside_tp=True,
        expert_groups="any",
        prompt_cp="experts",
        latent_prompt_cp_alone=True,
        prompt_cp_is_wide=False,
        generation_cp="dense latent",
        generation_cp_beside_tp=True,
        generation_stages="those of prompts",
        generation_stage_vendors=None,
        cp_beside_stages=True,
        source={
            "attention_dp": f"{_SGLANG_DP}; Llama: sgl-project/sglang pull request 15268",
            "dp_beside_tp": "sgl-project/sglang pull request 4390",
            "prompt_cp": "docs.sglang.io/docs/advanced_features/prefill_cp",
            "prompt_cp_is_wide": "docs.sglang.io/docs/advanced_features/prefill_cp",
            "latent_prompt_cp_alone": _SGLANG_CP,
            "generation_stages": _SGLANG_STAGES,
            "generation_cp": f"docs.sglang.io/docs/advanced_features/dcp; no sparse attention: {_SGLANG_CP}",
        },
    ),
    "trtllm": FrameworkLayouts(
        framework="trtllm",
        version="1.2",
        attention_dp="experts",
        dp_beside_tp=False,
        expert_groups="any",
        prompt_cp="none",
        latent_prompt_cp_alone=False,
        prompt_cp_is_wide=False,
        generation_cp="latent",
        generation_cp_beside_tp=True,
        generation_stages="any",
        generation_stage_vendors=None,
        cp_beside_stages=True,
        source={
            "attention_dp": _TRTLLM,
            "dp_beside_tp": _DYNAMO,
            "prompt_cp": "NVIDIA/TensorRT-LLM pull request 10276, not merged",
            "generation_cp": "NVIDIA/TensorRT-LLM pull request 5668 (Helix)",
        },
    ),
}
"""Read in November 2026."""
