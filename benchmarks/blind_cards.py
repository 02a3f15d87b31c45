"""Figures of single cards and of cards on PCIe, of long prompts and of small models, by thirteen publishers.

Typed off on 29 November 2026, all of them before any was predicted, and none left out after its error was
seen. Left out unpredicted: runs in which requests failed, figures of speculative decoding without its
acceptance, parts that the catalogue lacks, and pages that do not say their lengths, layout or clients. What
was assumed stands here.

* `cloudrift`: cloudrift-ai/server-benchmark@f8e34f1, results (October 2025, vLLM's image of that day, taken
  as 0.11): engines of one, two, four or eight cards behind nginx, here one engine and its share of the
  requests, which come as others end and are taken as all there, no more at once than the clients, the command
  and vLLM's default allow. PRO 6000 of eight is the Workstation edition, taken as the Server edition.
* `io-net`: IOG-Foundation/llm-inference-benchmarks@4990a80, results (June 2025, vLLM 0.8.5, FP16): 200
  requests of ShareGPT that come as a Poisson process; medians, as the first requests of some runs wait for
  compilation. Rates at which the queue grew until the end are left out, and checkpoints of the same shapes as
  another.
* `gpu-inference`: aaronzhfeng/gpu-inference@414c57c, benchmarks/rtx-4090.md (March 2026, vLLM 0.17), prompts
  of 16 tokens, temperature 0.7.
* `trtllm-1.2-rtx`: NVIDIA/TensorRT-LLM@03e27c7, docs/source/developer-guide/perf-overview.md (December 2025),
  the tables of RTX PRO 6000; caches as `elsewhere_rows` has them.
* `deepseek-awq`: huggingface.co/cognitivecomputations/DeepSeek-V3-AWQ (April 2025, vLLM 0.8.3), tokens a
  second of one request; "H100/H200" is taken as H100.
* `millstone-long`: millstoneai.com/inference-benchmark (January and February 2026), one request of 1,000
  tokens and of the longest prompt; Qwen3-Coder-Next has the decoder of Qwen3-Next. Assumed: vLLM 0.14.
* `kvcached-331`: ovg-project/kvcached pull request 331, vLLM 0.19 without it, 500 prompts at once and 16 a
  second.
* `torchtpu`: vllm-project/vllm-torchtpu@bcd2c69, src/vllm_torchtpu/experimental/export/RESULTS.md (6 November
  2026), `vllm serve`, 256 prompts, 64 at once; two devices are a chip.
* `inferencex-980`: SemiAnalysisAI/InferenceX pull request 980 (March 2026, SGLang with the two changes it
  names).
* `vllm-28095`: vllm-project/vllm pull request 28095 (November 2025), Qwen3-Next-80B on four H20, with the
  change.
* `dual-3090`: Atrociel/dual-rtx3090-llm-inference-platform, README.md at 90d3663 (TP2, vLLM 0.26) and
  benchmarks/qwen-results.md at 489a432 (PP2, vLLM 0.22 and 0.23). Assumed: 100 tokens in.
* `joshua8`: joshua8.ai/vllm-v016-blackwell-throughput-benchmark, one request under 0.15.1 and 0.16. Assumed:
  20 tokens in.
* `vllm-16515`: vllm-project/vllm issue 16515 (May 2025), Llama-3.1-8B at 100 requests a second of 200 tokens
  in and out, which saturate the card: its 256 places are taken as always full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from benchmarks.blind_threads import A100, H100, H200, LLAMA_8B, LLAMA_70B, Thread, loop_case, offline_case
from benchmarks.blind_users import H20, NEXT, QWEN_397B, RTX_PRO
from benchmarks.elsewhere_rows import REQUESTS

H100_PCIE, RTX_4090, RTX_5090, RTX_3090, L40S = "H100-PCIe", "RTX-4090", "RTX-5090", "RTX-3090", "L40S"
CODER_30B, CODER_480B = "Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-480B-A35B-Instruct"
GLM_AIR, GLM_46 = "zai-org/GLM-4.5-Air", "zai-org/GLM-4.6"
QWEN_30B, QWEN_235B = "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B"
MIXTURE_36: Final = "Qwen/Qwen3.6-35B-A3B"
MS_PER_S: Final = 1e3

SETS_MENDED: Final = ("cloudrift",)
"""Sets that were in view when INT4 experts were priced anew, and the places of a pipeline's micro-batches."""


@dataclass(frozen=True, slots=True)
class CardServer:
    """One engine that a page measured.

    Attributes
    ----------
    name : str
        Set of rows.
    model, hardware, framework, weights, kv, month : str
        Names of the catalogue, formats, and year and month of the software.
    tp, pp, dp, ep : int
        Parallelism.
    """

    name: str
    model: str
    hardware: str
    framework: str
    weights: str
    kv: str
    month: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    @property
    def case(self) -> dict[str, Any]:
        """Columns of `plan predict`, and the set."""
        return {
            "set": self.name,
            "page": self.framework,
            "model": self.model,
            "hardware": self.hardware,
            "backend": self.framework,
            "weights": self.weights,
            "kv": self.kv,
            "tp": self.tp,
            "pp": self.pp,
            "dp": self.dp,
            "ep": self.ep,
            "software_date": self.month,
        }


def _rift(
    model: str, hardware: str, weights: str, kv: str, tp: int = 1, pp: int = 1, ep: int = 1
) -> CardServer:
    return CardServer("cloudrift", model, hardware, "vllm", weights, kv, "2025-10", tp, pp, ep=ep)


AT_ONCE: Final[tuple[tuple[CardServer, int, tuple[int, int, int, float]], ...]] = (
    (_rift(CODER_30B, L40S, "int4", "bf16"), 200, (600, 997, 1000, 3151.0 / 2)),
    (_rift(GLM_AIR, L40S, "int4", "fp8", 1, 2), 256, (1200, 998, 1000, 829.12)),
    (_rift(CODER_30B, RTX_PRO, "int4", "bf16"), 400, (1200, 997, 1000, 4218.26)),
    (_rift(GLM_AIR, RTX_PRO, "int4", "fp8"), 256, (1024, 999, 1000, 1571.18)),
    (_rift(GLM_AIR, RTX_PRO, "int4", "fp8"), 400, (1200, 998, 1000, 1585.63)),
    (_rift(GLM_AIR, RTX_PRO, "int4", "fp8"), 64, (256, 999, 1000, 7861.67 / 8)),
    (_rift(GLM_AIR, RTX_PRO, "int4", "fp8"), 32, (128, 100, 1900, 5265.03 / 8)),
    (_rift(LLAMA_70B, RTX_PRO, "int4", "bf16"), 400, (1200, 997, 1000, 516.09)),
    (_rift(CODER_480B, RTX_PRO, "int4", "bf16", 4, ep=4), 128, (512, 997, 1000, 2248.18 / 2)),
    (_rift(CODER_480B, RTX_PRO, "int4", "bf16", 4, ep=4), 128, (512, 100, 1900, 2900.54 / 2)),
    (_rift(CODER_480B, RTX_PRO, "int4", "bf16", 1, 4), 128, (512, 997, 1000, 1355.32 / 2)),
    (_rift(GLM_46, RTX_PRO, "fp8", "fp8", 8), 256, (1024, 999, 1000, 1349.16)),
    (_rift(GLM_46, RTX_PRO, "fp8", "fp8", 8), 256, (1024, 100, 1900, 1728.34)),
    (_rift(GLM_46, RTX_PRO, "fp8", "fp8", 1, 8), 256, (1024, 999, 1000, 832.22)),
    (_rift(CODER_30B, RTX_4090, "int4", "bf16"), 256, (1200, 997, 1000, 1131.16)),
    (_rift(CODER_30B, RTX_4090, "int4", "bf16"), 200, (600, 997, 1000, 2375.81 / 2)),
    (_rift(CODER_30B, RTX_4090, "int4", "bf16"), 100, (300, 997, 1000, 4457.53 / 4)),
    (_rift(LLAMA_70B, RTX_4090, "int4", "fp8", 1, 2), 256, (1200, 997, 1000, 233.95)),
    (_rift(LLAMA_70B, RTX_4090, "int4", "fp8", 1, 2), 100, (600, 997, 1000, 449.26 / 2)),
    (_rift(GLM_AIR, RTX_4090, "int4", "bf16", 1, 4), 256, (1200, 998, 1000, 866.39)),
    (_rift(CODER_30B, RTX_5090, "int4", "bf16"), 256, (1200, 997, 1000, 2288.09)),
    (_rift(CODER_30B, RTX_5090, "int4", "bf16"), 200, (600, 997, 1000, 4211.51 / 2)),
    (_rift(CODER_30B, RTX_5090, "int4", "bf16"), 100, (300, 997, 1000, 6380.98 / 4)),
    (_rift(LLAMA_70B, RTX_5090, "int4", "fp8", 1, 2), 256, (1200, 997, 1000, 615.91)),
    (_rift(LLAMA_70B, RTX_5090, "int4", "fp8", 1, 2), 200, (600, 997, 1000, 1223.42 / 2)),
    (_rift(GLM_AIR, RTX_5090, "int4", "fp8", 1, 4), 256, (1200, 998, 1000, 2312.83)),
    (_rift(GLM_AIR, RTX_5090, "int4", "fp8", 4, ep=4), 192, (1200, 998, 1000, 1153.51)),
    (_rift(GLM_AIR, H200, "int4", "fp8"), 256, (1024, 999, 1000, 2796.75)),
    (_rift(GLM_AIR, H200, "int4", "fp8"), 256, (256, 999, 1000, 14_570.99 / 8)),
    (_rift(GLM_AIR, H200, "int4", "fp8", 8, ep=8), 400, (1200, 998, 1000, 8749.62)),
    (_rift(CODER_480B, H200, "int4", "bf16", 4, ep=4), 256, (1024, 998, 1000, 4863.73 / 2)),
    (_rift(GLM_46, H200, "bf16", "bf16", 8), 512, (2048, 999, 1000, 4759.15)),
    (
        CardServer("kvcached-331", "Qwen/Qwen3-0.6B", H100, "vllm", "bf16", "bf16", "2026-04"),
        500,
        (500, 512, 128, 94.91 * 128),
    ),
    (
        CardServer("torchtpu", "Qwen/Qwen3.5-35B-A3B", "TPU-7x", "vllm", "fp8", "bf16", "2026-11", 2, ep=2),
        64,
        (256, 1024, 128, 2806.0),
    ),
    (
        CardServer("torchtpu", QWEN_397B, "TPU-7x", "vllm", "fp8", "bf16", "2026-11", 4, ep=4),
        64,
        (256, 1024, 128, 1610.0),
    ),
    (
        CardServer("torchtpu", CODER_480B, "TPU-7x", "vllm", "fp8", "bf16", "2026-11", 4, ep=4),
        64,
        (256, 1024, 128, 1280.0),
    ),
    (
        CardServer("vllm-28095", NEXT, H20, "vllm", "bf16", "bf16", "2025-11", 4, ep=4),
        32,
        (32, 2048, 981, 2019.51),
    ),
)
"""Most sequences at once; requests, tokens in and out, and tokens a second of the engine."""


def _io_net(model: str, hardware: str, tp: int = 1, weights: str = "bf16") -> CardServer:
    return CardServer("io-net", model, hardware, "vllm", weights, "bf16", "2025-05", tp)


ARRIVALS: Final[dict[CardServer, tuple[tuple[int, int, float, float], ...]]] = {
    _io_net("Qwen/Qwen2.5-1.5B", H100_PCIE): ((208, 215, 1, 4.07), (208, 215, 4, 4.16)),
    _io_net("Qwen/Qwen2.5-7B", H100_PCIE): ((208, 218, 1, 10.11), (208, 218, 4, 10.37), (208, 217, 8, 10.96)),
    _io_net(LLAMA_8B, H100_PCIE): ((206, 212, 1, 10.63), (206, 212, 4, 11.05), (206, 212, 8, 11.79)),
    _io_net("google/gemma-2-9b", H100_PCIE): ((212, 189, 1, 14.06), (212, 189, 4, 15.28)),
    _io_net("Qwen/Qwen2.5-14B", H100_PCIE): ((208, 209, 1, 19.51), (208, 208, 4, 20.34)),
    _io_net("microsoft/phi-4", H100_PCIE): ((203, 118, 1, 18.42), (203, 118, 4, 19.02)),
    _io_net("Qwen/Qwen2.5-32B", H100_PCIE): ((208, 211, 1, 41.32),),
    _io_net(LLAMA_70B, H100_PCIE, 2): ((206, 199, 1, 53.28),),
    _io_net(LLAMA_70B, H100_PCIE, 2, "fp8"): ((206, 199, 1, 31.95),),
    _io_net("Qwen/Qwen2.5-1.5B", RTX_4090): ((208, 215, 1, 11.43), (208, 215, 4, 11.63)),
    _io_net("Qwen/Qwen2.5-7B", RTX_4090): ((208, 217, 1, 17.9), (208, 218, 4, 20.25)),
    _io_net("Qwen/Qwen2.5-7B", RTX_4090, 2): ((208, 218, 1, 14.42), (208, 218, 4, 15.19)),
    _io_net("Qwen/Qwen2.5-7B", RTX_4090, 4): ((208, 217, 1, 8.59), (208, 218, 4, 12.11)),
    _io_net(LLAMA_8B, RTX_4090): ((206, 214, 1, 19.24), (206, 214, 4, 22.62)),
    _io_net(LLAMA_8B, RTX_4090, 2): ((206, 212, 1, 16.03), (206, 212, 4, 18.06)),
    _io_net(LLAMA_8B, RTX_4090, 4): ((206, 214, 1, 10.53), (206, 212, 4, 15.54)),
    _io_net("Qwen/Qwen2.5-14B", RTX_4090, 2): ((208, 209, 1, 25.29),),
    _io_net("Qwen/Qwen2.5-14B", RTX_4090, 4): ((208, 207, 1, 22.03), (208, 207, 4, 29.63)),
    _io_net("Qwen/Qwen2.5-14B", RTX_4090, 8): ((208, 209, 1, 18.24), (208, 207, 4, 29.66)),
    CardServer("kvcached-331", "Qwen/Qwen3-0.6B", H100, "vllm", "bf16", "bf16", "2026-04"): (
        (512, 128, 16, 2.39),
    ),
}
"""Tokens in and out, requests a second, and TPOT. [ms]"""

RATES: Final[dict[CardServer, tuple[Thread, ...]]] = {
    CardServer("gpu-inference", "Qwen/Qwen3.5-4B", RTX_4090, "vllm", "bf16", "bf16", "2026-03"): (
        *((16, 128, 1, 97.5), (16, 128, 2, 162.0), (16, 128, 8, 635.0)),
        *((16, 128, 16, 1150.0), (16, 128, 32, 1955.0), (16, 128, 64, 2954.0)),
    ),
    CardServer("inferencex-980", QWEN_397B, "MI355X", "sglang", "bf16", "bf16", "2026-04", 8): (
        (923, 920, 62, 2641.81),
    ),
    CardServer("vllm-16515", LLAMA_8B, RTX_5090, "vllm", "bf16", "bf16", "2025-05"): (
        (200, 200, 256, 3708.0),
    ),
    CardServer("vllm-16515", LLAMA_8B, RTX_5090, "vllm", "fp8", "bf16", "2025-05"): (
        (200, 200, 256, 5418.0),
    ),
    CardServer("millstone-long", "openai/gpt-oss-20b", RTX_PRO, "vllm", "mxfp4", "bf16", "2026-01"): (
        (1024, 1024, 5, 642.5),
    ),
}
"""Tokens a second of closed loops."""


def _awq(hardware: str, tp: int) -> CardServer:
    return CardServer(
        "deepseek-awq", "deepseek-ai/DeepSeek-V3", hardware, "vllm", "int4", "bf16", "2025-04", tp
    )


def _three_thousand(month: str, tp: int, pp: int) -> CardServer:
    return CardServer("dual-3090", MIXTURE_36, RTX_3090, "vllm", "int4", "fp8", month, tp, pp)


SPEEDS: Final[dict[CardServer, tuple[Thread, ...]]] = {
    _rift(CODER_480B, H200, "int4", "bf16", 4, ep=4): ((996, 1000, 1, MS_PER_S / 9.55),),
    _rift(GLM_AIR, H200, "int4", "fp8"): ((998, 1000, 1, MS_PER_S / 7.92),),
    _rift(GLM_46, H200, "bf16", "bf16", 8): ((998, 1000, 1, MS_PER_S / 13.23),),
    _rift(CODER_480B, RTX_PRO, "int4", "bf16", 4, ep=4): ((996, 1000, 1, MS_PER_S / 11.33),),
    _rift(GLM_AIR, RTX_PRO, "int4", "fp8"): ((998, 1000, 1, MS_PER_S / 9.34),),
    _rift(GLM_46, RTX_PRO, "fp8", "fp8", 8): ((998, 1000, 1, MS_PER_S / 28.94),),
    _awq(H100, 8): ((2, 2048, 1, 61.5), (63_000, 2048, 1, 54.3)),
    _awq(H200, 4): ((2, 2048, 1, 58.4), (63_000, 2048, 1, 53.7)),
    _awq(A100, 8): ((2, 2048, 1, 46.8),),
    _awq(L40S, 8): ((2, 2048, 1, 46.3),),
    CardServer("millstone-long", "openai/gpt-oss-20b", RTX_PRO, "vllm", "mxfp4", "bf16", "2026-01"): (
        *((1024, 1024, 1, 250.0), (131_072, 1024, 1, 105.5)),
    ),
    CardServer("millstone-long", NEXT, H200, "vllm", "fp8", "bf16", "2026-02"): (
        *((1024, 1024, 1, 210.8), (261_120, 1024, 1, 152.8)),
    ),
    _three_thousand("2026-06", 1, 2): ((100, 100, 1, 112.6), (100, 100, 2, 99.9)),
    _three_thousand("2026-08", 2, 1): ((100, 100, 1, 145.6), (100, 100, 4, 447.5 / 4)),
    CardServer("joshua8", "Qwen/Qwen3-VL-30B-A3B-Instruct", RTX_5090, "vllm", "int4", "fp8", "2026-01"): (
        (20, 1024, 1, 241.0),
    ),
    CardServer("joshua8", "Qwen/Qwen3-VL-30B-A3B-Instruct", RTX_5090, "vllm", "int4", "fp8", "2026-02"): (
        (20, 1024, 1, 259.3),
    ),
}
"""Tokens a second of one of so many requests, while it is generated."""

PROMPTS: Final = (
    (_three_thousand("2026-06", 1, 2), 266, 1962.0),
    (_three_thousand("2026-06", 1, 2), 2058, 5158.0),
    (_three_thousand("2026-08", 2, 1), 1024, 5568.0),
    (_three_thousand("2026-08", 2, 1), 32_768, 6375.0),
    (_three_thousand("2026-08", 2, 1), 131_072, 3518.0),
    (_three_thousand("2026-08", 2, 1), 262_000, 2307.0),
    (
        CardServer("millstone-long", "openai/gpt-oss-20b", RTX_PRO, "vllm", "mxfp4", "bf16", "2026-01"),
        131_072,
        131_072 / 21.4,
    ),
    (CardServer("millstone-long", NEXT, H200, "vllm", "fp8", "bf16", "2026-02"), 261_120, 261_120 / 20.4),
)
"""Tokens of one prompt alone, and how many of them a second."""

RTX_LENGTHS: Final = ((1000, 1000), (1024, 1024), (8192, 1024), (1024, 8192), (32768, 1024))


def _rtx(model: str, dp: int, pp: int) -> CardServer:
    kv = "fp8"
    return CardServer("trtllm-1.2-rtx", model, RTX_PRO, "trtllm", "fp4", kv, "2025-12", 1, pp, dp, dp)


EACH_CARD: Final[dict[CardServer, tuple[float | None, ...]]] = {
    _rtx(LLAMA_70B, 1, 1): (1724, 1708, 296, None, None),
    _rtx(LLAMA_70B, 1, 2): (1901, 1887, 327, None, 67),
    _rtx(QWEN_235B, 2, 2): (1731, 1732, None, 644, 70),
    _rtx(QWEN_235B, 8, 1): (969, 963, None, 711, None),
    _rtx(QWEN_30B, 1, 1): (9938, 9755, 1914, 3621, 374),
    _rtx(QWEN_30B, 2, 1): (8409, None, None, 3577, None),
    _rtx(QWEN_30B, 2, 2): (7059, 7019, 1416, None, None),
    _rtx(QWEN_30B, 8, 1): (3985, None, None, 2406, 180),
}
"""Output tokens a second of one accelerator, in the order of the lengths."""

_IN_PROCESS: Final = {"front_end_ms": 0.0, "front_end_token_us": 0.0}
_TOP_P: Final = {"sampling": "top-p"}

STATED: Final[dict[str, dict[str, object]]] = {
    "gpu-inference": _TOP_P,
    "kvcached-331": _TOP_P | {"memory_ratio": 0.5},
    "trtllm-1.2-rtx": _IN_PROCESS,
}
"""Settings that a command, or the tool it calls, states, by set."""


def card_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [server.case | offline_case(*burst) | {"max_sequences": most} for server, most, burst in AT_ONCE]
    found += [
        server.case
        | {"mode": "open_loop", "input_tokens": prompt, "output_tokens": output, "requests_per_s": rate}
        | {"quantity": "tpot_ms", "measured": tpot_ms}
        for server, runs in ARRIVALS.items()
        for prompt, output, rate, tpot_ms in runs
    ]
    found += [server.case | loop_case(run, "tokens_per_s") for server, runs in RATES.items() for run in runs]
    found += [
        server.case | loop_case((prompt, output, clients, MS_PER_S / speed), "tpot_ms")
        for server, runs in SPEEDS.items()
        for prompt, output, clients, speed in runs
    ]
    found += [
        server.case
        | {"mode": "prefill", "input_tokens": prompt, "output_tokens": 1, "batch": 1}
        | {"quantity": "latency_ms", "measured": MS_PER_S * prompt / speed}
        for server, prompt, speed in PROMPTS
    ]
    found += [
        server.case | offline_case(REQUESTS[lengths], *lengths, figure * server.pp * server.dp)
        for server, figures in EACH_CARD.items()
        for lengths, figure in zip(RTX_LENGTHS, figures, strict=True)
        if figure is not None
    ]
    return [row | STATED.get(str(row["set"]), {}) for row in found]
