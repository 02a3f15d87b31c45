"""Admission of requests into the batch: the delay between an arrival and its first iteration.

**Iterations ahead.** A server schedules iterations before the running one has ended, so that the accelerator
never waits for the host. A request that arrives meanwhile misses the next iteration and joins the one after.

**Polling.** SGLang's `--scheduler-recv-interval` checks for new requests only every so many decode
iterations. On average, a request waits for half of that interval.

**Gathering.** TensorRT-LLM's `batch_wait_timeout_iters` lets the first waiting prompt gather others for W
iterations. It waits for W iterations, the prompts that join it for W / 2 on average. With x arrivals per
iteration::

    E[wait] = W (1 + x W / 2) / (1 + x W)

With polling and with gathering, all prompts that have arrived are computed together.

Sources: vLLM's `--async-scheduling`, and the overlap schedulers of SGLang and TensorRT-LLM, on by default;
SGLang's server arguments and `SchedulerRecvSkipper` (a decode iteration counts one, one with prompts 1,000,
which ends any shorter interval); TensorRT-LLM's `TorchLlmArgs.batch_wait_timeout_iters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules of one engine.

    Attributes
    ----------
    iterations_ahead : float
        Iterations that are scheduled before the running one has ended.
    polled_iterations : float
        Iterations between two checks for new requests; 1 checks before each.
    gathering_iterations : float
        Iterations for which the first waiting prompt gathers others; 0 for none.
    prompts_apart : bool
        Whether prompts run in separate iterations before any decoding, as in SGLang.
    prompts_aligned : bool
        Whether attention-DP ranks start their prompts together (SGLang's
        `--enable-prefill-delayer`).
    """

    iterations_ahead: float = 0.0
    polled_iterations: float = 1.0
    gathering_iterations: float = 0.0
    prompts_apart: bool = False
    prompts_aligned: bool = False

    def wait_iterations(self, starts: FloatArray) -> FloatArray:
        """Return the mean wait after the iteration that runs at the arrival, shape (n,). [iterations]

        Parameters
        ----------
        starts : FloatArray
            Requests that start per iteration, shape (n,).
        """
        gathered = starts * self.gathering_iterations
        gathering = self.gathering_iterations * (1 + gathered / 2) / (1 + gathered)
        found: FloatArray = self.iterations_ahead + (self.polled_iterations - 1) / 2 + gathering
        return found

    @property
    def joint_iterations(self) -> float:
        """Iterations whose arrivals are computed together. [iterations]"""
        return float(np.maximum(self.polled_iterations, self.gathering_iterations))


EVERY_ITERATION: Final = Admission()
"""Prompts join the next iteration after their arrival."""
