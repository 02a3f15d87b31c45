"""Default scheduling of a framework, by version month and memory.

Each row states a default from the documentation or the arguments of the software. `Scheduling` is the result
after the overrides of a case or a benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving.admission import EVERY_ITERATION, Admission


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Front end of a replica: HTTP, tokenisation, and the return of the first token.

    Attributes
    ----------
    request_ms : float
        Time per request, in parallel with others. [ms]
    token_us : float
        Time per prompt token, serial over prompts. [us]
    template_ms : float
        Template time of a chat request, serial over requests that arrive together. [ms]
    """

    request_ms: float = 0.0
    token_us: float = 0.0
    template_ms: float = 0.0

    def prompt_ms(self, input_tokens: FloatArray | IntArray) -> FloatArray:
        """Return the serial time of prompts, each of shape (n,). [ms]"""
        found: FloatArray = self.token_us / 1e3 * np.asarray(input_tokens, dtype=np.float64)
        return found


NO_FRONT_END: Final = FrontEnd()


@dataclass(frozen=True, slots=True)
class Scheduling:
    """Limits and rules by which one engine schedules its iterations.

    Attributes
    ----------
    max_sequences : int
        Largest number of requests in the batch of one attention-DP rank or, without
        `stages_share_sequences`, of each of its pipeline micro-batches.
    iteration_tokens : int
        Largest number of tokens in an iteration, generated ones included; of prompts only, if they run
        separately. [tokens]
    admission : Admission
        Admission of requests.
    front_end : FrontEnd
        Time of a request outside the engine.
    ranks_share_tokens : bool
        Whether the attention-DP ranks of a server divide `iteration_tokens` among themselves; otherwise each
        rank has that many.
    stages_share_sequences : bool
        Whether the micro-batches of a pipeline divide `max_sequences` among themselves.
    """

    max_sequences: int
    iteration_tokens: int
    admission: Admission = EVERY_ITERATION
    front_end: FrontEnd = NO_FRONT_END
    ranks_share_tokens: bool = False
    stages_share_sequences: bool = False

    def engine_sequences(self, stages: IntArray) -> IntArray:
        """Return the largest number of sequences per rank and micro-batch, by number of pipeline stages."""
        shared_by = np.asarray(stages) if self.stages_share_sequences else np.ones_like(stages)
        found: IntArray = np.maximum(1, self.max_sequences // shared_by)
        return found

    def rank_tokens(self, ranks: IntArray) -> IntArray:
        """Return the token budget of a rank, by number of attention-DP ranks. [tokens]"""
        shared_by = np.asarray(ranks) if self.ranks_share_tokens else np.ones_like(ranks)
        found: IntArray = np.maximum(1, self.iteration_tokens // shared_by)
        return found


@dataclass(frozen=True, slots=True)
class SchedulingOverrides:
    """Scheduling options of a server; None is the default of its framework.

    Attributes
    ----------
    max_sequences, iteration_tokens
        As in `Scheduling`.
    iterations_ahead, polled_iterations, gathering_iterations, prompts_aligned
        As in `Admission`.
    front_end_ms, front_end_token_us
        As in `FrontEnd`.
    chat_requests : bool
        Whether requests are messages that the server renders by a template.
    """

    max_sequences: int | None = None
    iteration_tokens: int | None = None
    iterations_ahead: float | None = None
    polled_iterations: float | None = None
    gathering_iterations: float | None = None
    prompts_aligned: bool | None = None
    front_end_ms: float | None = None
    front_end_token_us: float | None = None
    chat_requests: bool = False

    def applied(self, default: Scheduling, template_ms: float = 0.0) -> Scheduling:
        """Return `default` with these settings, and with the template time of chat requests."""
        admission = replace(
            default.admission,
            **_given(self, _OF_ADMISSION),
        )
        own = default.front_end
        front_end = FrontEnd(
            own.request_ms if self.front_end_ms is None else self.front_end_ms,
            own.token_us if self.front_end_token_us is None else self.front_end_token_us,
            template_ms if self.chat_requests else own.template_ms,
        )
        limits = _given(self, ("max_sequences", "iteration_tokens"))
        # A stated value is that of a rank.
        shared = default.ranks_share_tokens and self.iteration_tokens is None
        return replace(default, admission=admission, front_end=front_end, ranks_share_tokens=shared, **limits)


_OF_ADMISSION: Final = ("iterations_ahead", "polled_iterations", "gathering_iterations", "prompts_aligned")


def _given(overrides: SchedulingOverrides, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(overrides, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class FrameworkDefault:
    """Default of a framework by memory of the accelerator, from a month until a later row replaces it.

    Attributes
    ----------
    framework : str
        trtllm, sglang or vllm.
    since : str
        Year and month (YYYY-MM) of the release; empty for all releases before the next row.
    least_gib : float
        Least memory to which it applies; the row with the largest such memory counts. [GiB]
    max_sequences, iteration_tokens : int
        As in `Scheduling`.
    iterations_ahead : float
        As in `Admission`.
    source : str
        Source.
    """

    framework: str
    since: str
    least_gib: float
    max_sequences: int
    iteration_tokens: int
    iterations_ahead: float
    source: str


_VLLM_V0: Final = (
    "vLLM 0.5 to 0.7, SchedulerConfig: max_num_seqs 256; prompts are whole, so that an iteration holds what "
    "max_model_len allows (8,192 of the models of that time); iterations are made up one by one"
)
_VLLM_V1: Final = (
    "vLLM 0.8 (March 2025; to 0.8.4 by name, H100 and H200) to 0.27, EngineArgs.get_batch_defaults for its "
    "server: 8,192 tokens and 1,024 sequences from 70 GiB on, except on A100; else 2,048 and 256"
)
_VLLM_ASYNC: Final = "vLLM 0.14 (January 2026): --async-scheduling is on by default; limits as in 0.8"
_VLLM_0_28: Final = (
    "vLLM 0.28 (August 2026; 0.27.1 has not) to 0.33, EngineArgs.get_batch_defaults for its server: 16,384 "
    "tokens and 1,024 sequences from 160 GiB on; the rest as before"
)
_SGLANG: Final = (
    "SGLang 0.4.6 to 0.5.14, ServerArgs: chunked_prefill_size 2,048 below 35 GiB, 8,192 below 160, 16,384 "
    "from there on; max_running_requests at least 2,048; the overlap schedule is on by default (0.4, "
    "December 2024)"
)
_SGLANG_0_5_23: Final = (
    "SGLang 0.5.23 (November 2026), arg_groups/memory_hook.py: chunked_prefill_size 2,048 below 20 GiB, "
    "4,096 below 60, 8,192 below 160, 16,384 from there on; the rest as before"
)
_TRTLLM_C: Final = (
    "TensorRT-LLM 0.12 (August 2024): max_batch_size 2,048 and max_num_tokens 8,192 by default "
    "(docs/source/performance/perf-benchmarking.md); the C++ batch manager makes up iterations one by one"
)
_TRTLLM_PY: Final = (
    "TensorRT-LLM 0.17 (February 2025) and later, PyTorch backend: the overlap scheduler is on by default; "
    "limits as in 0.12"
)

FRAMEWORK_DEFAULTS: Final = (
    FrameworkDefault("vllm", "", 0, 256, 8192, 0.0, _VLLM_V0),
    FrameworkDefault("vllm", "2025-03", 0, 256, 2048, 0.0, _VLLM_V1),
    FrameworkDefault("vllm", "2025-03", 70, 1024, 8192, 0.0, _VLLM_V1),
    FrameworkDefault("vllm", "2026-01", 0, 256, 2048, 1.0, _VLLM_ASYNC),
    FrameworkDefault("vllm", "2026-01", 70, 1024, 8192, 1.0, _VLLM_ASYNC),
    FrameworkDefault("vllm", "2026-08", 0, 256, 2048, 1.0, _VLLM_0_28),
    FrameworkDefault("vllm", "2026-08", 70, 1024, 8192, 1.0, _VLLM_0_28),
    FrameworkDefault("vllm", "2026-08", 160, 1024, 16384, 1.0, _VLLM_0_28),
    FrameworkDefault("sglang", "", 0, 2048, 2048, 1.0, _SGLANG),
    FrameworkDefault("sglang", "", 35, 2048, 8192, 1.0, _SGLANG),
    FrameworkDefault("sglang", "", 160, 2048, 16384, 1.0, _SGLANG),
    FrameworkDefault("sglang", "2026-11", 0, 2048, 2048, 1.0, _SGLANG_0_5_23),
    FrameworkDefault("sglang", "2026-11", 20, 2048, 4096, 1.0, _SGLANG_0_5_23),
    FrameworkDefault("sglang", "2026-11", 60, 2048, 8192, 1.0, _SGLANG_0_5_23),
    FrameworkDefault("sglang", "2026-11", 160, 2048, 16384, 1.0, _SGLANG_0_5_23),
    FrameworkDefault("trtllm", "", 0, 2048, 8192, 0.0, _TRTLLM_C),
    FrameworkDefault("trtllm", "2025-02", 0, 2048, 8192, 1.0, _TRTLLM_PY),
)
"""Every default that is known."""

FRONT_ENDS: Final = {
    "vllm": FrontEnd(10.0, 10.0),
    "trtllm": FrontEnd(30.0, 2.0),
    "sglang": FrontEnd(20.0, 7.0),
}
"""What requests take outside the engine. Fitted on InferenceX's TTFT of October 2025 to May 2026, models
weighing alike; its clients run beside the server. Left out one by one, the models give 10 to 25 ms and 10 to
15 us under vLLM, 30 ms and 2 us under TensorRT-LLM (of gpt-oss as of Llama-70B; not of DeepSeek, whose ranks
also wait for each other). Without Llama-70B vLLM has 15 ms, with which the TTFT of its rows on H100 and H200
is predicted to 10.3 / 26 %, with 10 ms to 9.2 / 20.2 %. Under SGLang the medians decide, beside the launches
of `steps.host_launches`: 22 % with 20 ms, 25 % with 40 ms (365 rows); means (501 rows) have outliers, and are
41 % too low."""

SHARED_TOKENS: Final = frozenset({"sglang"})
"""Frameworks whose attention-DP ranks divide the tokens of an iteration by default. Source: SGLang's
ServerArgs, _handle_data_parallelism: `chunked_prefill_size // dp_size` (0.4 to 0.5.23). Plans do not: their
servers start with the chunk of each rank, or with whole prompts."""

SHARED_SEQUENCES: Final = {"vllm": "2025-03", "sglang": ""}
"""Frameworks whose limit of sequences is that of all micro-batches of a pipeline together, and since when.
Source: vLLM's V1 engine (0.8) counts the running requests of its one scheduler, where V0 had a scheduler for
each micro-batch; SGLang's `pp_max_micro_batch_size` is `max_running_requests // pp_size`. TensorRT-LLM's
`max_batch_size` is that of a micro-batch, of which it runs `pp_size`."""

_VLLM_SMALL_LIMITS: Final = {"A100": "", "GB10": "2026-11", "Gaudi": "", "TPU": ""}
"""Accelerators that vLLM gives its smallest limits whatever their memory, and since when. Sources: vLLM's
pull request 17885 (A100), get_batch_defaults of 0.33 (GB10, not in 0.32); vllm-gaudi@091bbad, which says that
there is no memory, and tpu-inference 0.32, which does not say it."""

_NEWEST: Final = "9999-99"


def default_scheduling(
    framework: str,
    accelerator: Accelerator,
    software_date: str = "",
    chunk_tokens: int | None = None,
    overlaps_host: bool = True,
) -> Scheduling:
    """Return the default scheduling of a server.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    accelerator : Accelerator
        Accelerator.
    software_date : str
        Year and month of the framework (YYYY-MM); empty for the newest.
    chunk_tokens : int or None
        Token budget of a service with chunked prompts; None is the default of the framework.
    overlaps_host : bool
        Whether the cache of states allows iterations to be scheduled ahead (`steps.state_slots`).
    """
    month = software_date or _NEWEST
    small = framework == "vllm" and any(
        accelerator.name.startswith(name) and since <= month for name, since in _VLLM_SMALL_LIMITS.items()
    )
    memory_gib = 0.0 if small else accelerator.hbm_gib
    known = [
        row
        for row in FRAMEWORK_DEFAULTS
        if row.framework == framework and row.since <= month and row.least_gib <= memory_gib
    ]
    row = max(known, key=lambda each: (each.since, each.least_gib))
    ahead = row.iterations_ahead if overlaps_host else 0.0
    admission = Admission(ahead, prompts_apart=framework == "sglang")
    return Scheduling(
        row.max_sequences,
        chunk_tokens or row.iteration_tokens,
        admission,
        FRONT_ENDS[framework],
        stages_share_sequences=framework in SHARED_SEQUENCES and SHARED_SEQUENCES[framework] <= month,
    )


def server_scheduling(
    framework: str, accelerator: Accelerator, software_date: str = "", overlaps_host: bool = True
) -> Scheduling:
    """Return the default scheduling of each attention-DP rank of a server.

    Parameters
    ----------
    framework, accelerator, software_date, overlaps_host
        As in `default_scheduling`.
    """
    found = default_scheduling(framework, accelerator, software_date, overlaps_host=overlaps_host)
    return replace(found, ranks_share_tokens=framework in SHARED_TOKENS)
