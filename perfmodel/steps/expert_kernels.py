"""Experts that a server runs by a slower kernel on Blackwell, though faster ones were measured for them.

Tables contain the fastest kernel of a framework (`optables.choice`). Frameworks began to select that kernel
by default in different months, by data type and model; earlier servers ran Triton, or the only kernel of
their framework, unless their command named another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from fleetplan.perfmodel.optables.measured.experts import FASTEST_EXPERTS, ExpertKernels
from fleetplan.perfmodel.optables.measured.tables import BLACKWELL_SYSTEMS

Kernel: TypeAlias = Literal["triton", "own"]
"""Kernel before that: Triton, or the only kernel that the framework's own table measured."""


@dataclass(frozen=True, slots=True)
class SlowerExperts:
    """Experts that a framework does not run by the fastest kernel that was measured on Blackwell.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    dtype : str
        Data type of the experts.
    until : str
        First month (YYYY-MM) with another kernel by default; empty if there is none.
    source : str
        Source.
    kernel : {"triton", "own"}
        Kernel until then.
    model_types : frozenset[str]
        Decoders for which it does; empty for all.
    since : str
        First month; empty for the first version.
    """

    framework: str
    dtype: str
    until: str
    source: str
    kernel: Kernel = "triton"
    model_types: frozenset[str] = frozenset()
    since: str = ""


_QWEN: Final = frozenset({"qwen3_moe", "qwen3_next"})
_MINIMAX: Final = frozenset({"minimax_m2"})

SLOWER_EXPERTS: Final = (
    SlowerExperts(
        "vllm",
        "bf16",
        "2026-04",
        "vLLM pull requests 28238 (November 2025) and 32954 (January 2026): VLLM_USE_FLASHINFER_MOE_FP16 "
        "asks for another kernel; since 36286 (March 2026) vLLM chooses among those that there are",
    ),
    SlowerExperts(
        "vllm",
        "fp8_block",
        "2026-04",
        "vLLM pull request 36307 (merged on 12 March 2026, in 0.18): the kernel that other models had takes "
        "the routing of MiniMax as well, which ran by Triton before (InferenceX-app, "
        "b200-minimax-m2-5-vllm-nvfp4-vs-h100-fp8-perf-per-dollar.mdx, 26 May 2026); vLLM 0.11.1 to 0.14 ran "
        "DeepGEMM (`software_versions`)",
        model_types=_MINIMAX,
        since="2026-02",
    ),
    SlowerExperts(
        "sglang",
        "bf16",
        "2026-01",
        "SGLang's server_args.py of late 2025 chooses FlashInfer for fp8 and modelopt_fp4 alone; its kernel "
        "for BF16 is as old as vLLM pull request 28238",
    ),
    SlowerExperts(
        "sglang",
        "fp8_block",
        "2025-11",
        "SGLang pull request 11816 (October 2025): FlashInfer's kernel replaces Triton, for DeepSeek",
    ),
    SlowerExperts(
        "sglang",
        "fp8_block",
        "2025-12",
        "SGLang pull requests 12543 and 13489 (November 2025): FlashInfer's kernel for Qwen3-Next and Qwen3",
        model_types=_QWEN,
    ),
    SlowerExperts(
        "sglang",
        "fp8_block",
        "",
        "SGLang's arg_groups/overrides.py (July 2026), _minimax_m2_overrides: another kernel than Triton for "
        "modelopt_fp4 alone",
        model_types=_MINIMAX,
    ),
    SlowerExperts(
        "trtllm",
        "fp8_block",
        "2026-01",
        "TensorRT-LLM's deployment guide for DeepSeek-R1 (1.2.0rc2.post2, November 2025), support matrix: on "
        "B200 and GB200 FP8 runs by DEEPGEMM alone, which its table times; InferenceX's "
        "dsr1_fp8_b200_trt_slurm.sh names it in November and December 2025, and dsr1_fp8_b200_trt.sh TRTLLM "
        "since January 2026 (1.2.0rc6), as NVIDIA's examples/configs/database does",
        "own",
    ),
)
"""Everything that is known."""


def expert_kernels(
    framework: str, system: str | None, model_type: str, software_date: str = ""
) -> ExpertKernels:
    """Return which experts a server does not run by the fastest kernel that was measured.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    system : str or None
        Measured operators of the part; unknown for parts without tables.
    model_type : str
        `model_type` of the decoder's config.
    software_date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    """
    if system not in BLACKWELL_SYSTEMS:
        return FASTEST_EXPERTS
    known = [
        fact
        for fact in SLOWER_EXPERTS
        if fact.framework == framework
        and (not fact.until or "" < software_date < fact.until)
        and fact.since <= software_date
        and (not fact.model_types or model_type in fact.model_types)
    ]
    by_kernel = {
        kernel: frozenset(fact.dtype for fact in known if fact.kernel == kernel)
        for kernel in get_args(Kernel)
    }
    return ExpertKernels(**by_kernel)
