"""Single steps and static batches as answers of `predict`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.evaluator import NO_TECHNIQUES, Evaluator
from fleetplan.perfmodel.predict.columns import ModeResult
from fleetplan.perfmodel.steps import ConfigurationBatch, MemoryUse, decode_shape, prefill_shape


def step_result(mode: str, evaluator: Evaluator, batch: ConfigurationBatch) -> ModeResult:
    """Return the answer prefill, decode and static mode."""
    if mode == "static":
        return _static_result(evaluator, batch)
    if mode == "prefill":
        phase = evaluator.prefill(batch)
        tokens_per_s = np.full(phase.latency_ms.shape, np.nan)
    else:
        phase = evaluator.decode(batch)
        tokens_per_s = batch.layouts.pp * batch.sequences / phase.tpot_ms * MS_PER_S
    return ModeResult(
        ttft_ms=phase.ttft_ms,
        tpot_ms=phase.tpot_ms,
        latency_ms=phase.latency_ms,
        requests_per_s=phase.requests_per_s,
        output_tokens_per_s_per_accelerator=tokens_per_s / batch.layouts.accelerators,
        memory_gib_per_accelerator=phase.memory.total_gib,
        fits=phase.memory.fits,
        by_provenance_ms=phase.by_provenance_ms,
        bottleneck=phase.bottleneck,
        names=phase.names,
    )


def _static_result(evaluator: Evaluator, batch: ConfigurationBatch) -> ModeResult:
    """Predict one batch: prefill, then a decode step for each further token.

    Benchmarks hand static batches to the library of the framework, without a server.
    """
    evaluator = replace(evaluator, software=replace(evaluator.software, is_served=False))
    if evaluator.techniques == NO_TECHNIQUES:
        prompts, generation = evaluator.steps([prefill_shape(batch), decode_shape(batch)])
        prefill = evaluator.prefill_result(batch, prompts)
        decode = evaluator.decode_result(batch, generation)
    else:
        prefill, decode = evaluator.prefill(batch), evaluator.decode(batch)
    tokens = batch.output_tokens - 1
    decoding = tokens * decode.tpot_ms
    latency = prefill.latency_ms + decoding
    rate = batch.sequences / latency * MS_PER_S
    mostly_decode = decoding >= prefill.latency_ms
    memory = _static_memory(evaluator, batch)
    return ModeResult(
        ttft_ms=prefill.latency_ms,
        tpot_ms=decode.tpot_ms,
        latency_ms=latency,
        requests_per_s=rate,
        output_tokens_per_s_per_accelerator=rate * batch.output_tokens / batch.layouts.accelerators,
        memory_gib_per_accelerator=memory.total_gib,
        fits=memory.fits,
        by_provenance_ms=prefill.by_provenance_ms + decoding / decode.latency_ms * decode.by_provenance_ms,
        bottleneck=np.where(mostly_decode, decode.bottleneck, len(decode.names) + prefill.bottleneck),
        names=(*decode.names, *prefill.names),
    )


def _static_memory(evaluator: Evaluator, batch: ConfigurationBatch) -> MemoryUse:
    # A single batch is in the pipeline, so one micro-batch's cache is resident, at its full length at the
    # end.
    alone = replace(evaluator.generating(), kv_residency="microbatch")
    kv_tokens = batch.input_tokens + batch.prefix_tokens + batch.output_tokens
    return alone.memory(prefill_shape(batch), batch.batch, kv_tokens)
