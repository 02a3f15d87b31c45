"""Disaggregated deployments as answers of `predict`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fleetplan.perfmodel.architecture import MoeFfn
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.predict.cases import Cases
from fleetplan.perfmodel.predict.columns import ModeResult
from fleetplan.perfmodel.queueing.disaggregated_loops import Pools, disaggregated_loop
from fleetplan.perfmodel.serving import Load


def disaggregated_result(cases: Cases, rows: IntArray, decode: Load, evaluator: Evaluator) -> ModeResult:
    """Return the answer rows in disaggregated mode; memory is that of a decode accelerator.

    Parameters
    ----------
    cases : Cases
        All rows.
    rows : IntArray
        Cases of one evaluator whose layouts can run.
    decode : Load
        Requests and parallelism of the decode replicas.
    evaluator : Evaluator
        The model on the accelerator of both kinds of replicas.
    """
    stated = [cases.pools[row] for row in rows.tolist()]
    has_experts = any(isinstance(group.ffn, MoeFfn) for group in evaluator.architecture.groups)
    pools = Pools(
        replace(decode, layouts=Layouts.of([each.prefill.parallelism(has_experts) for each in stated])),
        decode,
        np.array([each.prefill_replicas for each in stated]),
        np.array([each.decode_replicas for each in stated]),
    )
    streamed = np.array([each.streamed_tokens for each in stated])
    state = disaggregated_loop(
        evaluator, pools, cases.load[rows], cases.n_requests[rows].astype(np.float64), streamed
    )
    output = decode.output_tokens
    return ModeResult(
        ttft_ms=state.ttft_ms,
        tpot_ms=state.tpot_ms,
        latency_ms=state.ttft_ms + (output - 1) * state.tpot_ms,
        requests_per_s=state.requests_per_s,
        output_tokens_per_s_per_accelerator=state.requests_per_s * output / pools.accelerators,
        memory_gib_per_accelerator=state.decode.memory.total_gib,
        fits=state.fits,
        by_provenance_ms=state.decode.by_provenance_ms,
        bottleneck=state.decode.bottleneck,
        names=state.decode.names,
    )
