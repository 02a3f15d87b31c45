"""Experts that a server runs by a slower kernel on Blackwell, though faster ones were measured for them.

Tables stand for the fastest kernel of a framework (`optables.choice`). A framework comes to choose that
kernel by itself at some time, which differs by data type and model; servers before then ran Triton, or the
one kernel that their framework had, unless their command named another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.perfmodel.optables.measured.tables import BLACKWELL_SYSTEMS


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
        First month (YYYY-MM) in which it has or chooses another kernel; empty where it does not.
    source : str
        Where that is written.
    model_types : frozenset[str]
        Decoders for which it does; empty for all.
    since : str
        First month in which it does; empty where it came with the first version.
    """

    framework: str
    dtype: str
    until: str
    source: str
    model_types: frozenset[str] = frozenset()
    since: str = ""


_QWEN: Final = frozenset({"qwen3_moe", "qwen3_next"})
_MINIMAX: Final = frozenset({"minimax_m2"})

TRITON_EXPERTS: Final = (
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
        _MINIMAX,
        "2026-02",
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
        _QWEN,
    ),
    SlowerExperts(
        "sglang",
        "fp8_block",
        "",
        "SGLang's arg_groups/overrides.py (July 2026), _minimax_m2_overrides: another kernel than Triton for "
        "modelopt_fp4 alone",
        _MINIMAX,
    ),
)
"""Those that run by Triton; everything that is known."""

OWN_EXPERTS: Final = (
    SlowerExperts(
        "trtllm",
        "fp8_block",
        "2026-01",
        "TensorRT-LLM's deployment guide for DeepSeek-R1 (1.2.0rc2.post2, November 2025), support matrix: on "
        "B200 and GB200 FP8 runs by DEEPGEMM alone, which its table times; InferenceX's "
        "dsr1_fp8_b200_trt_slurm.sh names it in November and December 2025, and dsr1_fp8_b200_trt.sh TRTLLM "
        "since January 2026 (1.2.0rc6), as NVIDIA's examples/configs/database does",
    ),
)
"""Those for which a framework has no other kernel than the one that its own table times."""


def triton_experts(
    framework: str, system: str | None, model_type: str, software_date: str = ""
) -> frozenset[str]:
    """Return the data types of experts that a server runs by Triton though faster kernels were measured.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    system : str or None
        What was measured of the part; of parts without tables nothing is known.
    model_type : str
        Of the decoder's config.
    software_date : str
        Year and month of the framework (YYYY-MM); the newest where it is empty.
    """
    return _dtypes(TRITON_EXPERTS, framework, system, model_type, software_date)


def own_experts(framework: str, system: str | None, software_date: str = "") -> frozenset[str]:
    """Return the data types of experts for which the framework's own measurements stand, faster or not.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    system : str or None
        What was measured of the part; of parts without tables nothing is known.
    software_date : str
        Year and month of the framework (YYYY-MM); the newest where it is empty.
    """
    return _dtypes(OWN_EXPERTS, framework, system, "", software_date)


def _dtypes(
    facts: Sequence[SlowerExperts], framework: str, system: str | None, model_type: str, software_date: str
) -> frozenset[str]:
    """Data types of the experts of some facts that a server of that date runs."""
    if system not in BLACKWELL_SYSTEMS:
        return frozenset()
    return frozenset(
        fact.dtype
        for fact in facts
        if fact.framework == framework
        and (not fact.until or "" < software_date < fact.until)
        and fact.since <= software_date
        and (not fact.model_types or model_type in fact.model_types)
    )
