"""From step latencies to requests per second: disaggregated serving and continuous batching.

Rates are those of one replica of `pp` pipeline stages that keeps `pp` micro-batches in flight;
`on_accelerators` scales them to a number of accelerators. `sequences` are those of one micro-batch over
all attention-DP ranks. TTFT and TPOT are passes over all stages.
Source: Meta, Optimizing Deployment Configurations for LLM Inference, section 3 and Tables 6 to 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray

Numbers = FloatArray | IntArray


def prefill_requests_per_s(pp: Numbers, sequences: Numbers, ttft_ms: FloatArray) -> FloatArray:
    """Return the prompts that one prefill replica completes, PP * B / TTFT. [1/s]."""
    rate: FloatArray = pp * sequences / ttft_ms * MS_PER_S
    return rate


def decode_requests_per_s(
    pp: Numbers, sequences: Numbers, output_tokens: Numbers, tpot_ms: FloatArray
) -> FloatArray:
    """Return the requests that one decode replica completes, PP * BS / (OUT * TPOT). [1/s]."""
    rate: FloatArray = pp * sequences / (output_tokens * tpot_ms) * MS_PER_S
    return rate


def continuous_batching_requests_per_s(
    pp: Numbers, sequences: Numbers, output_tokens: Numbers, ttft_ms: FloatArray, tpot_ms: FloatArray
) -> FloatArray:
    """Return the rate of one replica of both phases, PP * BS / (TTFT + OUT * TPOT). [1/s].

    The paper counts all generated tokens. The first token comes with the prompt, so callers pass the tokens
    after it for the rate of a service.
    """
    rate: FloatArray = pp * sequences / (ttft_ms + output_tokens * tpot_ms) * MS_PER_S
    return rate


def on_accelerators(requests_per_s: FloatArray, per_replica: Numbers, accelerators: float) -> FloatArray:
    """Return the rate of `accelerators` cards full of replicas of `per_replica` cards each. [1/s]."""
    rate: FloatArray = requests_per_s * accelerators / per_replica
    return rate


def disaggregated_requests_per_s(prefill: FloatArray, decode: FloatArray) -> FloatArray:
    """Return the rate of N cards divided between the phases, 1 / (1/prefill + 1/decode). [1/s].

    Parameters
    ----------
    prefill, decode : FloatArray
        Rate of the same N cards if all of them did this phase; the hardware may differ. [1/s]
    """
    rate: FloatArray = 1.0 / (1.0 / prefill + 1.0 / decode)
    return rate


def prefill_to_decode_ratio(prefill: FloatArray, decode: FloatArray) -> FloatArray:
    """Return accelerators for prefill over accelerators for decode at balance: decode rate / prefill rate."""
    ratio: FloatArray = decode / prefill
    return ratio


@dataclass(frozen=True, slots=True)
class PrefillMix:
    """Prompts per iteration of continuous batching, each of shape (n_configs,).

    Attributes
    ----------
    fewer, more : IntArray
        Prompts of one attention-DP rank in an iteration: the mean lies between the two.
    more_share : FloatArray
        Share of iterations that carry `more`.
    """

    fewer: IntArray
    more: IntArray
    more_share: FloatArray


def prefill_mix(batch: Numbers, output_tokens: Numbers) -> PrefillMix:
    """Return prompts per iteration, p = BS / OUT: each sequence leaves after OUT iterations and is replaced.

    For p <= 1 a share p of the iterations has one prompt, the others none; for p > 1 every iteration has
    prompts, p on average.
    """
    prompts = np.asarray(batch / output_tokens, dtype=np.float64)
    fewer = np.floor(prompts).astype(np.int64)
    more = np.ceil(prompts).astype(np.int64)
    return PrefillMix(fewer, more, np.where(more > fewer, prompts - fewer, 1.0))


def prompt_iteration_ms(mix: PrefillMix, fewer_ms: FloatArray, more_ms: FloatArray) -> FloatArray:
    """Return the iteration that the mean prompt runs in, from the two kinds of iteration of `mix`. [ms]."""
    fewer, more = (1.0 - mix.more_share) * mix.fewer, mix.more_share * mix.more
    mean: FloatArray = (fewer * fewer_ms + more * more_ms) / (fewer + more)
    return mean


def continuous_batching_tpot_ms(mix: PrefillMix, fewer_ms: FloatArray, more_ms: FloatArray) -> FloatArray:
    """Return the mean iteration (1-p) t_decode + p t_mixed, from the two kinds of `mix`. [ms]."""
    mean: FloatArray = (1.0 - mix.more_share) * fewer_ms + mix.more_share * more_ms
    return mean
